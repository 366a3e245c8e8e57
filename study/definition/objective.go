package definition

import (
	"github.com/tandem-tune/tandem/study/objective"
)

// Objective is one thing to improve: a metric, or a formula over metrics.
type Objective struct {
	// Metric is the name the script reports it under; empty for a formula.
	Metric string `json:"metric,omitempty"`
	// Expression is the formula (see package objective), Name what it is shown
	// under. Both are empty for a plain metric.
	Expression string    `json:"expression,omitempty"`
	Name       string    `json:"name,omitempty"`
	Direction  Direction `json:"direction"`
	// Target, if set, is the value at which the study may stop.
	Target *float64 `json:"target,omitempty"`
	// Reference, if set, is a value that is worse than any of interest: of
	// several objectives they bound the hypervolume.
	Reference *float64 `json:"reference,omitempty"`
}

// Label is what the objective is shown under.
func (o Objective) Label() string {
	if o.Metric != "" {
		return o.Metric
	}
	return o.Name
}

// Formula is what computes the objective. A checked definition's compiles.
func (o Objective) Formula() (objective.Formula, error) {
	return objective.NewFormula(o.Metric, o.Expression)
}

// MaxObjectives is how many objectives a study may have.
const MaxObjectives = 4
