package studyfile

import (
	"math"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// maxConstraints bounds what is computed of each result.
const maxConstraints = 16

// readConstraints reads what outcomes must keep to.
func readConstraints(s tree.Section) []definition.Constraint {
	n, at := s.Get("constraints")
	items, paths := tree.Elements(at, n)
	if len(items) > maxConstraints {
		s.Fault(at, n, "has %d constraints: at most %d", len(items), maxConstraints)
		return nil
	}
	var constraints []definition.Constraint
	for i, item := range items {
		constraints = append(constraints, readConstraint(s.Decoder, paths[i], item))
	}
	return constraints
}

func readConstraint(d *tree.Decoder, at string, n *tree.Node) definition.Constraint {
	var c definition.Constraint
	s, ok := d.Open(at, n, "metric", "expression", "name", "min", "max")
	if !ok {
		return c
	}
	metric, metricAt := s.Get("metric")
	expression, expressionAt := s.Get("expression")
	name, nameAt := s.Get("name")
	switch {
	case metric != nil && expression != nil:
		d.Fault(metricAt, metric, "is given beside an expression: keep one of the two")
	case expression != nil:
		readExpression(d, expressionAt, expression, &c.Expression)
		if name != nil {
			readMetric(d, nameAt, name, &c.Name)
		}
	case metric != nil && name != nil:
		d.Fault(nameAt, name, "belongs to an expression: a metric is shown under its own name")
	default:
		if metric, at := s.Need("metric", "the name the script reports it under, such as latency_ms; or write expression: for a formula over metrics"); metric != nil {
			readReported(d, at, metric, &c.Metric)
		}
	}
	c.Min, c.Max = readBound(s, "min"), readBound(s, "max")
	low, _ := s.Get("min")
	high, highAt := s.Get("max")
	switch {
	case low == nil && high == nil:
		d.Fault(at, n, "has no bound: give it min, max or both, such as max: 20")
	case c.Min != nil && c.Max != nil && *c.Min > *c.Max:
		d.Fault(highAt, high, "must be at least min, or no trial can keep to it")
	}
	return c
}

func readBound(s tree.Section, name string) *float64 {
	n, at := s.Get(name)
	var value float64
	if n == nil || !s.NumberOf(at, n, -math.MaxFloat64, math.MaxFloat64, &value) {
		return nil
	}
	return &value
}
