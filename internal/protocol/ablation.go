package protocol

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// AblationQuery says which path is asked for.
type AblationQuery struct {
	// From and To are trials' numbers. Without them the path leads from the
	// median of the trials drawn without a model to the study's recommendation.
	From, To *int
	// Objective is the index of the objective, from 0.
	Objective int
	// Rung is where values are predicted. Without one it is the highest with
	// enough trials.
	Rung *int
}

// Ablation is a path from one trial's configuration to another's that switches
// one parameter at a time, each time the one that improves the prediction most.
// Every value in it is predicted by a surrogate, except those in Measured.
type Ablation struct {
	Study     string               `json:"study"`
	Method    string               `json:"method"`
	Metric    string               `json:"metric"`
	Direction definition.Direction `json:"direction"`
	Rung      int                  `json:"rung"`
	Budget    budget.Budget        `json:"budget"`
	// Surrogate is absent where there are too few trials to make one.
	Surrogate *Surrogate `json:"surrogate,omitempty"`
	// From and To are the path's ends; they are absent where nothing can be predicted.
	From *AblationEnd `json:"from,omitempty"`
	To   *AblationEnd `json:"to,omitempty"`
	// Gain is the whole improvement, positive where the goal is better.
	Gain  float64        `json:"gain" doc:"predicted improvement from the start to the goal; positive is better, whatever the direction"`
	Steps []AblationStep `json:"steps"`
	// Notes are plain sentences on how far the answer can be trusted.
	Notes []string `json:"notes"`
}

// AblationEnd is where a path begins or ends.
type AblationEnd struct {
	Trial  int                 `json:"trial"`
	Params space.Configuration `json:"params"`
	AblationPoint
}

// AblationPoint is what is known of a configuration on the path.
type AblationPoint struct {
	Predicted float64 `json:"predicted" doc:"the surrogate's prediction of the objective"`
	Spread    float64 `json:"spread" doc:"standard deviation of the prediction between the surrogate's trees"`
	// Measured is a trial that really had the configuration at the rung.
	Measured *MeasuredTrial `json:"measured,omitempty"`
}

// MeasuredTrial is a trial and its value at the rung.
type MeasuredTrial struct {
	Trial int         `json:"trial"`
	Value trial.Float `json:"value"`
}

// AblationStep switches one parameter, and with it those that depend on it.
type AblationStep struct {
	// Switched has one change, unless no single one was allowed.
	Switched []ParameterChange `json:"switched"`
	// Dependent came or went with the switched ones.
	Dependent []ParameterChange `json:"dependent,omitempty"`
	Before    float64           `json:"before" doc:"predicted before the step"`
	After     AblationPoint     `json:"after"`
	Gain      float64           `json:"gain" doc:"predicted improvement; positive is better"`
	Share     *float64          `json:"share,omitempty" doc:"part of the whole gain; absent where the whole gain is not positive"`
}

// ParameterChange is a parameter's value before and after; one of them is
// absent where the parameter does not exist.
type ParameterChange struct {
	Parameter string       `json:"parameter"`
	From      *space.Value `json:"from,omitempty"`
	To        *space.Value `json:"to,omitempty"`
}
