package report_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// A device on which the model does not run has a reason instead of numbers and a
// program, and joules that no meter told are an estimate beside a measured latency.
func TestAReportSaysWhereTheModelDoesNotRun(t *testing.T) {
	t.Parallel()
	e := study(t, 3)
	small := deployment.Deployment{Device: "small-board", Title: "A small board", Method: "no configuration", EnergyMethod: "no configuration", Unmet: []string{"no configuration can run the model: a batch of 1 needs 9 MiB"}}
	here := deployment.Deployment{Device: "this-machine", Title: "The machine", Feasible: true, Configuration: tuning.Configuration{BatchSize: 1, Cores: 2}, LatencySeconds: deployment.Band{Value: 0.01, Low: 0.009, High: 0.011},
		SamplesPerSecond: 100, JoulesPerSample: deployment.Band{Value: 0.2, Low: 0.2, High: 0.2}, Method: "measured", EnergyMethod: "estimate: 10 W per busy core", Code: "import onnxruntime"}
	for name, test := range map[string]struct {
		devices []deployment.Deployment
		figure  bool
	}{"one runs": {[]deployment.Deployment{small, here}, true}, "none runs": {[]deployment.Deployment{small}, false}} {
		t.Run(name, func(t *testing.T) {
			e.Recommendation.Deployments = test.devices
			page := written(t, e.source(t))
			if !strings.Contains(page, "small-board: no configuration can run the model: a batch of 1 needs 9 MiB.") {
				t.Error("the reason is not told")
			}
			if strings.Contains(page, "A small board") || strings.Contains(page, "batch 0") {
				t.Error("there are numbers, or a program, for a device on which nothing runs")
			}
			if got := strings.Contains(page, `id="edge"`); got != test.figure {
				t.Errorf("a figure: %v, want %v", got, test.figure)
			}
			if got := strings.Contains(page, "0.2 (estimate)") && strings.Contains(page, "Joules of inference on The machine: estimate: 10 W per busy core."); got != test.figure {
				t.Errorf("joules are labelled: %v, want %v", got, test.figure)
			}
		})
	}
}
