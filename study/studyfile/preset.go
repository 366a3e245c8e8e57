package studyfile

import (
	"strings"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
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

// readPreset reads an objective that names a preset, as the formula that it is.
func readPreset(d *tree.Decoder, at string, n *tree.Node) definition.Objective {
	var o definition.Objective
	known := []string{"preset", "accuracy", "inference_seconds", "inference_joules", "name", "direction", "target", "reference"}
	s, _ := d.Open(at, n, known...)
	var name string
	before := len(d.Faults)
	chosen, at := s.Get("preset")
	d.TextOf(at, chosen, tree.MaxKey, &name)
	p, found := presets()[name]
	if !found {
		if len(d.Faults) == before {
			d.Fault(at, chosen, "must be %s or %s: other ratios are written as expression:", runtimeRatio, energyRatio)
		}
		return o
	}
	accuracy, inference := "accuracy", p.inference
	if metric, at := s.Get("accuracy"); metric != nil {
		readMetric(d, at, metric, &accuracy)
	}
	for _, field := range []string{"inference_seconds", "inference_joules"} {
		metric, at := s.Get(field)
		switch {
		case metric == nil:
		case field != p.inference:
			d.Fault(at, metric, "is no part of %s, which has %s", name, p.inference)
		default:
			readMetric(d, at, metric, &inference)
		}
	}
	o.Name, o.Direction = name, definition.Minimize
	if shown, at := s.Get("name"); shown != nil {
		readMetric(d, at, shown, &o.Name)
	}
	if direction, at := s.Get("direction"); direction != nil && readDirection(d, at, direction) == definition.Maximize {
		d.Fault(at, direction, "must be minimize: a preset is a cost")
	}
	o.Expression = strings.Join([]string{p.training, inference}, " * ") + " / " + accuracy
	readAims(s, &o)
	return o
}
