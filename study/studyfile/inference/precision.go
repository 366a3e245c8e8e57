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
	result.Precision = readNames(s, "precision", trial.Precisions())
	if loss, at := s.Get("accuracy_loss"); loss != nil {
		var may float64
		s.Number("accuracy_loss", 0, 1, &may)
		if result.AccuracyLoss = &may; len(result.Precision) == 0 && len(s.Faults) == 0 {
			s.Fault(at, loss, "needs precision: [fp32, int8], or leave it out")
		}
	}
}

// readNames reads which of all are compared. The first of all is always among them, and first;
// none if there is nothing to compare it with.
func readNames(s tree.Section, field string, all []string) []string {
	n, at := s.Get(field)
	items, paths := tree.Elements(at, n)
	list := all[:1:1]
	seen := map[string]bool{}
	for i, item := range items {
		var name string
		before := len(s.Faults)
		if s.TextOf(paths[i], item, tree.MaxKey, &name); len(s.Faults) > before {
			continue
		}
		switch {
		case !slices.Contains(all, name):
			s.Fault(paths[i], item, "must be one of %s", strings.Join(all, ", "))
		case seen[name]:
			s.Fault(paths[i], item, "comes twice: leave it out")
		case name != all[0]:
			list = append(list, name)
		}
		seen[name] = true
	}
	if len(list) == 1 {
		return nil
	}
	return list
}
