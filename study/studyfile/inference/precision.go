package inference

import (
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
	"github.com/tandem-tune/tandem/trial"
)

// readPrecision reads in which precisions a trained model is compared, and what it may
// lose. fp32 is always among them, and first.
func readPrecision(s tree.Section, result *definition.Inference) {
	n, at := s.Get("precision")
	if n != nil {
		items, paths := tree.Elements(at, n)
		list := []string{trial.FP32}
		seen := map[string]bool{}
		for i, item := range items {
			var name string
			before := len(s.Faults)
			if s.TextOf(paths[i], item, tree.MaxKey, &name); len(s.Faults) > before {
				continue
			}
			switch {
			case !slices.Contains(trial.Precisions(), name):
				s.Fault(paths[i], item, "must be one of %s", strings.Join(trial.Precisions(), ", "))
			case seen[name]:
				s.Fault(paths[i], item, "comes twice: leave it out")
			case name != trial.FP32:
				list = append(list, name)
			}
			seen[name] = true
		}
		if len(list) > 1 { // else there is nothing to compare
			result.Precision = list
		}
	}
	if loss, at := s.Get("accuracy_loss"); loss != nil {
		var may float64
		s.Number("accuracy_loss", 0, 1, &may)
		if result.AccuracyLoss = &may; len(result.Precision) == 0 && len(s.Faults) == 0 {
			s.Fault(at, loss, "needs precision: [fp32, int8], or leave it out")
		}
	}
}
