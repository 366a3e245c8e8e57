package protocol

import (
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Estimated reports whether one of the numbers that a formula uses of a trial was not
// measured: the joules of a training that no meter told, or what inference takes
// where it did not run. Joules of inference may be an estimate where its latency is
// none. What the script reported under a name goes before what the server knows.
func Estimated(names []string, reported map[string]trial.Float, t trial.Trial) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, own := reported[name]
		switch {
		case own:
			return false
		case name == "train_joules":
			return t.Energy.Estimated()
		case name == definition.TrainCost || name == definition.TrainCO2:
			return t.Cost.Estimated()
		case t.Inference == nil || t.Inference.Device == "" || !slices.Contains(definition.EdgeNames(), name):
			return false
		case name == definition.EdgeP99:
			return true // it is simulated
		case strings.Contains(name, "joules"):
			return t.Inference.EnergyEstimated()
		}
		return t.Inference.Estimated()
	})
}
