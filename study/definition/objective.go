package definition

import (
	"math"
	"regexp"
	"slices"
)

// objectives reads one objective, as a mapping or as a list of one.
func (d *decoder) objectives(s section) []Objective {
	n, at := s.need("objective", "say what to improve, such as {metric: accuracy, direction: maximize}")
	if n == nil {
		return nil
	}
	if n.kind == list && len(n.items) == 0 {
		d.fault(at, n, "is empty: say what to improve, such as {metric: accuracy, direction: maximize}")
	}
	items, paths := elements(at, n)
	var objectives []Objective
	for i, item := range items {
		if i == 1 {
			d.fault(paths[i], item, "is a second objective, and this version supports one: keep the most important")
		}
		objectives = append(objectives, d.objective(paths[i], item))
	}
	return objectives
}

func (d *decoder) objective(at string, n *node) Objective {
	var o Objective
	s, ok := d.section(at, n, "metric", "direction", "target")
	if !ok {
		return o
	}
	if metric, at := s.need("metric", "the name the script reports it under, such as accuracy"); metric != nil {
		d.metric(at, metric, &o.Metric)
	}
	if direction, at := s.need("direction", "maximize or minimize"); direction != nil {
		var name string
		before := len(d.faults)
		d.textOf(at, direction, maxKey, &name)
		o.Direction = Direction(name)
		if o.Direction != Maximize && o.Direction != Minimize && len(d.faults) == before {
			d.fault(at, direction, "must be maximize or minimize")
		}
	}
	if target, at := s.get("target"); target != nil {
		var value float64
		if d.numberOf(at, target, -math.MaxFloat64, math.MaxFloat64, &value) {
			o.Target = &value
		}
	}
	return o
}

func (d *decoder) metric(at string, n *node, target *string) {
	before := len(d.faults)
	d.textOf(at, n, maxKey, target)
	valid, _ := regexp.MatchString(`^[A-Za-z_][A-Za-z0-9_]*$`, *target)
	switch {
	case len(d.faults) > before:
	case !valid:
		d.fault(at, n, "must be one name of letters, digits and _, as the script reports it, such as accuracy: this version supports no expressions and no metrics of other devices")
	case slices.Contains([]string{"epoch", "checkpoint"}, *target):
		d.fault(at, n, "is a word of the report itself: give the metric another name")
	}
}
