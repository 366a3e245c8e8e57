package definition

import (
	"math"

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

// maxConstraints bounds what is computed of each result.
const maxConstraints = 16

// constraints reads what outcomes must keep to.
func (d *decoder) constraints(s section) []Constraint {
	n, at := s.get("constraints")
	if n == nil {
		return nil
	}
	items, paths := elements(at, n)
	if len(items) > maxConstraints {
		d.fault(at, n, "has %d constraints: at most %d", len(items), maxConstraints)
		return nil
	}
	var constraints []Constraint
	for i, item := range items {
		constraints = append(constraints, d.constraint(paths[i], item))
	}
	return constraints
}

func (d *decoder) constraint(at string, n *node) Constraint {
	var c Constraint
	s, ok := d.section(at, n, "metric", "expression", "name", "min", "max")
	if !ok {
		return c
	}
	metric, metricAt := s.get("metric")
	expression, expressionAt := s.get("expression")
	name, nameAt := s.get("name")
	switch {
	case metric != nil && expression != nil:
		d.fault(metricAt, metric, "is given beside an expression: keep one of the two")
	case expression != nil:
		d.expression(expressionAt, expression, &c.Expression)
		if name != nil {
			d.metric(nameAt, name, &c.Name)
		}
	case metric != nil && name != nil:
		d.fault(nameAt, name, "belongs to an expression: a metric is shown under its own name")
	default:
		if metric, at := s.need("metric", "the name the script reports it under, such as latency_ms; or write expression: for a formula over metrics"); metric != nil {
			d.metric(at, metric, &c.Metric)
		}
	}
	c.Min, c.Max = s.bound("min"), s.bound("max")
	low, _ := s.get("min")
	high, highAt := s.get("max")
	switch {
	case low == nil && high == nil:
		d.fault(at, n, "has no bound: give it min, max or both, such as max: 20")
	case c.Min != nil && c.Max != nil && *c.Min > *c.Max:
		d.fault(highAt, high, "must be at least min, or no trial can keep to it")
	}
	return c
}

func (s section) bound(name string) *float64 {
	n, at := s.get(name)
	var value float64
	if n == nil || !s.numberOf(at, n, -math.MaxFloat64, math.MaxFloat64, &value) {
		return nil
	}
	return &value
}
