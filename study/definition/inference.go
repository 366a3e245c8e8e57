package definition

import (
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// Inference is the inference section: where the models will run, and what is
// wanted there.
type Inference struct {
	// Devices are names of the catalogue, or "this-machine" for the worker's
	// own. Objectives are about the first one.
	Devices []string `json:"devices"`
	// BatchSize bounds the batch that is searched.
	BatchSize BatchRange `json:"batch_size"`
	// Cores bounds the cores; a device with fewer has all of its own. Nil: all may be used.
	Cores *BatchRange `json:"cores,omitempty"`
	// MemoryMiB is what weights and activations may take at most; 0: the device's memory.
	MemoryMiB int `json:"memory_mib,omitempty"`
	// Objective is what the best deployment is best in, and keeps to what.
	Objective InferenceObjective `json:"objective"`
}

// BatchRange are the batch sizes, or the numbers of cores, that are searched.
type BatchRange struct {
	Low  int `json:"low"`
	High int `json:"high"`
}

// InferenceObjective is what a deployment is chosen by.
type InferenceObjective struct {
	Metric tuning.Metric `json:"metric"`
	// Constraints are as they were written, such as "latency_ms <= 50".
	Constraints []string `json:"constraints,omitempty"`
}

// Settings are what the search for deployments takes. A checked definition's
// constraints can be read.
func (i Inference) Settings() (deployment.Settings, error) {
	settings := deployment.Settings{BatchLow: i.BatchSize.Low, BatchHigh: i.BatchSize.High, Objective: i.Objective.Metric}
	settings.MemoryBytes = int64(i.MemoryMiB) << 20
	if i.Cores != nil {
		settings.CoresLow, settings.CoresHigh = i.Cores.Low, i.Cores.High
	}
	for _, text := range i.Objective.Constraints {
		constraint, err := tuning.ParseConstraint(text)
		if err != nil {
			return settings, err
		}
		settings.Constraints = append(settings.Constraints, constraint)
	}
	return settings, nil
}
