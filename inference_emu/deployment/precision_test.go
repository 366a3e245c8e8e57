package deployment_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// took is a variant whose batches of one took so long, between ends that are as far from it
// as the spread says; nothing was measured if that is 0.
func took(t *testing.T, precision string, width int64, seconds, spread, value float64) deployment.Variant {
	t.Helper()
	a := network(t, width)
	if seconds > 0 {
		a.Runs = []emu.Run{{Machine: "raspberry-pi-4", Batch: 1, Threads: 1, Seconds: seconds, Low: seconds / spread, High: seconds * spread, P90: seconds, P99: seconds, Repetitions: 50}}
	}
	return deployment.Variant{Precision: precision, Architecture: a, Value: value, Samples: 1000}
}

// guessed and metered are the variant with so many joules.
func guessed(v deployment.Variant, joules float64) deployment.Variant {
	return withJoules(v, joules, "estimate: a guess")
}

func metered(v deployment.Variant, joules float64) deployment.Variant {
	return withJoules(v, joules, "rapl")
}

func withJoules(v deployment.Variant, joules float64, method string) deployment.Variant {
	v.Architecture.Runs = slices.Clone(v.Architecture.Runs)
	v.Architecture.Runs[0].Joules, v.Architecture.Runs[0].EnergyMethod = joules, method
	return v
}

// A precision is recommended where it is measured to be better, and keeps enough of what the
// model is worth: never on an estimate, however good that is.
func TestPrecisionsAreRankedByMeasurements(t *testing.T) {
	target := deployment.Target{Device: find(t, "raspberry-pi-4"), Machine: "raspberry-pi-4"}
	target.Device.Name = "this-machine" // where joules may be a worker's estimate
	limit, err := tuning.ParseConstraint("latency_ms <= 1")
	if err != nil {
		t.Fatal(err)
	}
	bounded := fastest
	bounded.Constraints = []tuning.Constraint{limit}
	thrifty := deployment.Settings{BatchLow: 1, BatchHigh: 1, CoresHigh: 1, Objective: tuning.Energy}
	fp32 := took(t, "fp32", 32, 2e-3, 1.05, 0.9)
	for name, one := range map[string]struct {
		settings  deployment.Settings
		tolerance deployment.Tolerance
		fp32      deployment.Variant
		others    []deployment.Variant
		want, why string
	}{
		"faster":                 {fastest, deployment.Tolerance{Loss: 0.01}, fp32, []deployment.Variant{took(t, "int8", 16, 1e-3, 1.05, 0.899)}, "int8", "2 times as good"},
		"slower":                 {fastest, deployment.Tolerance{Loss: 0.01}, fp32, []deployment.Variant{took(t, "int8", 16, 3e-3, 1.05, 0.95)}, "fp32", "0.667 times"},
		"no faster than noise":   {fastest, deployment.Tolerance{Loss: 0.01}, fp32, []deployment.Variant{took(t, "int8", 16, 1.9e-3, 1.05, 0.9)}, "fp32", "vary by a factor"},
		"loses too much":         {fastest, deployment.Tolerance{Loss: 0.01}, fp32, []deployment.Variant{took(t, "int8", 16, 1e-3, 1.05, 0.85)}, "fp32", "loses 5.56%"},
		"a loss that grows":      {fastest, deployment.Tolerance{Loss: 0.01, Minimize: true}, fp32, []deployment.Variant{took(t, "int8", 16, 1e-3, 1.05, 0.95)}, "fp32", "loses 5.56%"},
		"may lose that":          {fastest, deployment.Tolerance{Loss: 0.1}, fp32, []deployment.Variant{took(t, "int8", 16, 1e-3, 1.05, 0.85)}, "int8", "2 times"},
		"estimated to be faster": {fastest, deployment.Tolerance{Loss: 0.01}, fp32, []deployment.Variant{took(t, "int8", 1, 0, 1, 0.9)}, "fp32", "estimates do not rank"},
		"the other is estimated": {fastest, deployment.Tolerance{Loss: 0.01}, took(t, "fp32", 64, 0, 1, 0.9), []deployment.Variant{took(t, "int8", 1, 1e-6, 1, 0.9)}, "fp32", "fp32 was not measured"},
		"the only one in time":   {bounded, deployment.Tolerance{Loss: 0.01}, fp32, []deployment.Variant{took(t, "int8", 16, 0.9e-3, 1.01, 0.9)}, "int8", "keeps to the constraints"},
		"the best of two":        {fastest, deployment.Tolerance{Loss: 0.01}, fp32, []deployment.Variant{took(t, "fp16", 8, 1.5e-3, 1.01, 0.9), took(t, "int8", 16, 1e-3, 1.01, 0.9)}, "int8", "int8 is better still"},
		"the first of two is it": {fastest, deployment.Tolerance{Loss: 0.01}, fp32, []deployment.Variant{took(t, "fp16", 8, 1e-3, 1.01, 0.9), took(t, "int8", 16, 1.5e-3, 1.01, 0.9)}, "fp16", "2 times"},
		"less energy and faster": {thrifty, deployment.Tolerance{Loss: 0.01}, fp32, []deployment.Variant{took(t, "int8", 16, 1e-3, 1.01, 0.9)}, "int8", "its energy is"},
		"less energy by a guess": {thrifty, deployment.Tolerance{Loss: 0.01}, guessed(fp32, 2), []deployment.Variant{guessed(took(t, "int8", 16, 3e-3, 1.01, 0.9), 1)}, "fp32", "0.667 times"},
		"less energy by a meter": {thrifty, deployment.Tolerance{Loss: 0.01}, metered(fp32, 2), []deployment.Variant{metered(took(t, "int8", 16, 3e-3, 1.01, 0.9), 1)}, "int8", "2 times"},
	} {
		answer, err := deployment.Compare(append([]deployment.Variant{one.fp32}, one.others...), target, nil, one.settings, one.tolerance)
		if err != nil {
			t.Fatal(name, err)
		}
		if answer.Configuration.Precision != one.want || len(answer.Precisions) != 1+len(one.others) {
			t.Errorf("%s: it is %s, want %s: %+v", name, answer.Configuration.Precision, one.want, answer.Precisions)
		}
		var whys []string
		for i, each := range answer.Precisions {
			if each.Chosen != (each.Precision == one.want) || each.Samples != 1000 || (each.Measured == nil) != (len(append([]deployment.Variant{one.fp32}, one.others...)[i].Architecture.Runs) == 0) {
				t.Errorf("%s: %+v", name, each)
			}
			whys = append(whys, each.String())
		}
		if !strings.Contains(strings.Join(whys, "\n"), one.why) {
			t.Errorf("%s: it says %q, want %q", name, whys, one.why)
		}
		if chosen := slices.IndexFunc(answer.Precisions, func(c deployment.ComparedPrecision) bool { return c.Chosen }); chosen > 0 && answer.Architecture == one.fp32.Architecture.Key {
			t.Errorf("%s: the answer is about %s", name, answer.Architecture)
		}
	}
}
