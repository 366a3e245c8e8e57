package definition

import "slices"

// ServerNames are the numbers that the server knows of a trial without its
// script: they can stand in formulas, and be objectives, like metrics.
func ServerNames() []string {
	return []string{"data_fraction", "epochs", TrainCO2, TrainCost, "train_joules", "train_seconds"}
}

// The names of what a training costs, which servers with prices know.
const (
	TrainCost = "train_cost"
	TrainCO2  = "train_co2_g"
)

// Names are the numbers that the objectives and the constraints use.
func (d Definition) Names() (names []string) {
	for _, one := range d.Objectives {
		if formula, err := one.Formula(); err == nil {
			names = append(names, formula.Names()...)
		}
	}
	for _, one := range d.Constraints {
		if formula, err := one.Formula(); err == nil {
			names = append(names, formula.Names()...)
		}
	}
	return names
}

// EdgeNames are the numbers that the server knows of a trial's model on the
// study's first device, if the study has an inference section: of one batch the
// latency, of the process the memory, and of one sample the rest.
func EdgeNames() []string {
	return []string{"edge.joules_per_sample", "edge.latency_ms", EdgeMemory, EdgeP99, "edge.samples_per_second", "inference_joules", "inference_seconds"}
}

const (
	// EdgeP99 is the 99th percentile of waiting and inference under the study's scenario.
	EdgeP99 = "edge.p99_ms"
	// EdgeMemory is what a process takes, in MiB.
	EdgeMemory = "edge.memory_mib"
)

// NeedsReported are the names among those that a script has to report, since
// the server does not know them: it knows of inference what the section asks for.
func (d Definition) NeedsReported(names []string) []string {
	known := ServerNames()
	if d.Inference != nil {
		known = append(known, EdgeNames()...)
	}
	reported := []string{}
	for _, name := range names {
		if !slices.Contains(known, name) && !slices.Contains(reported, name) {
			reported = append(reported, name)
		}
	}
	return reported
}
