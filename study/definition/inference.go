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
	// Objective is what the best deployment is best in, and keeps to what.
	Objective InferenceObjective `json:"objective"`
}

// BatchRange are the batch sizes that are searched.
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
	for _, text := range i.Objective.Constraints {
		constraint, err := tuning.ParseConstraint(text)
		if err != nil {
			return settings, err
		}
		settings.Constraints = append(settings.Constraints, constraint)
	}
	return settings, nil
}
