package protocol_test

import (
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

func TestWhatWasNotMeasuredIsAnEstimate(t *testing.T) {
	guess := trial.Energy{Joules: 9, Method: "estimate: 10 W per busy core"}
	measured := &trial.InferenceCost{Device: "this-machine", Method: "measured", EnergyMethod: "estimate: 10 W per busy core"}
	metered := &trial.InferenceCost{Device: "this-machine", Method: "measured", EnergyMethod: "rapl"}
	estimated := &trial.InferenceCost{Device: "raspberry-pi-4", Method: "estimate: from what the device is made of"}
	for name, test := range map[string]struct {
		names    []string
		reported map[string]trial.Float
		trial    trial.Trial
		want     bool
	}{
		"a metric":                      {[]string{"accuracy"}, map[string]trial.Float{"accuracy": 1}, trial.Trial{Energy: guess, Inference: estimated}, false},
		"joules of the training":        {[]string{"train_joules"}, nil, trial.Trial{Energy: guess}, true},
		"metered joules":                {[]string{"train_joules"}, nil, trial.Trial{Energy: trial.Energy{Joules: 9, Method: "rapl"}}, false},
		"an estimated latency":          {[]string{"accuracy", "edge.latency_ms"}, nil, trial.Trial{Inference: estimated}, true},
		"reported under that name":      {[]string{"edge.latency_ms"}, map[string]trial.Float{"edge.latency_ms": 3}, trial.Trial{Inference: estimated}, false},
		"a measured latency":            {[]string{"inference_seconds"}, nil, trial.Trial{Inference: measured}, false},
		"joules beside it":              {[]string{"inference_joules"}, nil, trial.Trial{Inference: measured}, true},
		"a meter's beside it":           {[]string{"inference_joules"}, nil, trial.Trial{Inference: metered}, false},
		"joules of an earlier version":  {[]string{"edge.joules_per_sample"}, nil, trial.Trial{Inference: estimated}, true},
		"a study that is not about it":  {[]string{"train_seconds"}, nil, trial.Trial{Inference: estimated}, false},
		"a trial that saved no model":   {[]string{"edge.latency_ms"}, nil, trial.Trial{}, false},
		"a section without any devices": {[]string{"edge.latency_ms"}, nil, trial.Trial{Inference: &trial.InferenceCost{}}, false},
	} {
		if got := protocol.Estimated(test.names, test.reported, test.trial); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
