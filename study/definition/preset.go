package definition

import (
	"slices"
	"strings"
)

// preset is an objective with a name of its own: the cost of training and of
// inference for what they bring (Rocha's thesis, section 7.4.4).
type preset struct {
	training  string // what the server knows of a trial
	inference string // the metric it takes, and the field that names another
}

const (
	runtimeRatio = "runtime_ratio"
	energyRatio  = "energy_ratio"
)

// presets returns the presets by name.
func presets() map[string]preset {
	return map[string]preset{
		runtimeRatio: {training: "train_seconds", inference: "inference_seconds"},
		energyRatio:  {training: "train_joules", inference: "inference_joules"},
	}
}

// preset reads an objective that names a preset, as the formula that it is.
func (d *decoder) preset(at string, n *node) Objective {
	var o Objective
	known := []string{"preset", "accuracy", "inference_seconds", "inference_joules", "name", "direction", "target", "reference"}
	s, _ := d.section(at, n, known...)
	var name string
	before := len(d.faults)
	chosen, at := s.get("preset")
	d.textOf(at, chosen, maxKey, &name)
	p, found := presets()[name]
	if !found {
		if len(d.faults) == before {
			d.fault(at, chosen, "must be %s or %s: other ratios are written as expression:", runtimeRatio, energyRatio)
		}
		return o
	}
	accuracy, inference := "accuracy", p.inference
	if metric, at := s.get("accuracy"); metric != nil {
		d.metric(at, metric, &accuracy)
	}
	for _, field := range []string{"inference_seconds", "inference_joules"} {
		metric, at := s.get(field)
		switch {
		case metric == nil:
		case field != p.inference:
			d.fault(at, metric, "is no part of %s, which has %s", name, p.inference)
		default:
			d.metric(at, metric, &inference)
		}
	}
	o.Name, o.Direction = name, Minimize
	if shown, at := s.get("name"); shown != nil {
		d.metric(at, shown, &o.Name)
	}
	if direction, at := s.get("direction"); direction != nil && d.direction(at, direction) == Maximize {
		d.fault(at, direction, "must be minimize: a preset is a cost")
	}
	o.Expression = strings.Join([]string{p.training, inference}, " * ") + " / " + accuracy
	s.aims(&o)
	return o
}

// ServerNames are the numbers that the server knows of a trial without its
// script: they can stand in formulas, and be objectives, like metrics.
func ServerNames() []string {
	return []string{"data_fraction", "epochs", "train_joules", "train_seconds"}
}

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
