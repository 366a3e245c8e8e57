package definition

import (
	"github.com/tandem-tune/tandem/study/objective"
)

// Constraint is what a trial's outcome must keep to: a metric, or a formula
// over metrics, within bounds. A trial that does not keep to it is infeasible.
type Constraint struct {
	// Metric is the name the script reports it under; empty for a formula.
	Metric string `json:"metric,omitempty"`
	// Expression is the formula, Name what it is shown under.
	Expression string `json:"expression,omitempty"`
	Name       string `json:"name,omitempty"`
	// Min and Max are the bounds, both allowed values; one at least is set.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
}

// Label is what the constraint is shown under.
func (c Constraint) Label() string {
	switch {
	case c.Metric != "":
		return c.Metric
	case c.Name != "":
		return c.Name
	}
	return c.Expression
}

// Formula is what computes the constraint's number. A checked definition's
// compiles.
func (c Constraint) Formula() (objective.Formula, error) {
	return objective.NewFormula(c.Metric, c.Expression)
}

// Bounds are the constraint's.
func (c Constraint) Bounds() objective.Bounds { return objective.Bounds{Min: c.Min, Max: c.Max} }
