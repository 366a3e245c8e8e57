package protocol

import "github.com/tandem-tune/tandem/study/space"

// Impact says how far each outcome of a study varies with each parameter alone,
// in the classes of Rocha's figures 5.6 and 5.7.
type Impact struct {
	Study string `json:"study"`
	// Outcomes are the objectives, then what training and inference take.
	Outcomes []ImpactOutcome `json:"outcomes"`
}

// ImpactOutcome is one outcome with the parameters that it varies with.
type ImpactOutcome struct {
	// Name is an objective's, or training_seconds, training_joules,
	// inference_seconds, inference_joules.
	Name string `json:"name"`
	// Unit is empty for an objective.
	Unit string `json:"unit,omitempty" enum:"s,J"`
	// What says of what the outcome is, in words.
	What string `json:"what"`
	// Medium and High are the least variations of these classes.
	Medium float64 `json:"medium"`
	High   float64 `json:"high"`
	// Rung is the one that the trials were measured at; absent where rungs make no
	// difference.
	Rung *int `json:"rung,omitempty"`
	// Trials is how many the answer stands on.
	Trials int `json:"trials"`
	// Estimated says that the outcome itself is an estimate, and Method by what.
	Estimated bool   `json:"estimated,omitempty"`
	Method    string `json:"method,omitempty"`
	// Surrogate is the model that predicted; absent where there was none.
	Surrogate *Surrogate `json:"surrogate,omitempty"`
	// Parameters are in the order of the space, then knobs of the system; those of
	// which nothing is known are absent.
	Parameters []ParameterImpact `json:"parameters"`
	// Notes are plain sentences on how far to trust it, and on what is missing.
	Notes []string `json:"notes"`
}

// The classes of an impact.
const (
	HighImpact   = "high"
	MediumImpact = "medium"
	LowImpact    = "low"
)

// ParameterImpact is how far an outcome varies with one parameter alone.
type ParameterImpact struct {
	Name  string     `json:"name"`
	Kind  space.Kind `json:"kind"`
	Class string     `json:"class" enum:"high,medium,low"`
	// Variation is the distance between Lowest and Highest, in parts of the one
	// that is further from 0.
	Variation float64 `json:"variation"`
	Lowest    float64 `json:"lowest"`
	Highest   float64 `json:"highest"`
	// LowestAt and HighestAt are values of the parameter at which that is so.
	LowestAt  space.Value `json:"lowest_at"`
	HighestAt space.Value `json:"highest_at"`
	// Measured says that the ends were measured, within the same runs; else a model
	// predicted them.
	Measured bool `json:"measured" doc:"both ends were measured within the same runs; else a model of the trials predicted them"`
	// Runs is how many runs compared values of the parameter, where it was measured.
	Runs int `json:"runs,omitempty"`
	// Chance is the probability of such differences if the parameter did nothing,
	// where it was predicted.
	Chance *float64 `json:"chance,omitempty" doc:"probability of such differences if the parameter did nothing; above 0.05 the class means nothing"`
}
