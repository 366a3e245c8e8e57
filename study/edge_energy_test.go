package study_test

import (
	"strings"
	"testing"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// Joules that no meter told are an estimate, also where the latency was measured:
// the value of an objective that is about them says so, and one about the latency not.
func TestJoulesBesideAMeasuredLatencyMayBeAnEstimate(t *testing.T) {
	for name, test := range map[string]struct {
		expression, method string
		estimated          bool
	}{
		"assumed watts":      {"edge.joules_per_sample / accuracy", "estimate: 10 W per busy core", true},
		"a meter":            {"edge.joules_per_sample / accuracy", "rapl", false},
		"about the latency":  {"edge.latency_ms / accuracy", "estimate: 10 W per busy core", false},
		"about both of them": {"edge.latency_ms * inference_joules / accuracy", "estimate: 10 W per busy core", true},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			w.create("name: example", "name: edge\ninference: {devices: [this-machine]}",
				"{metric: accuracy, direction: maximize}", "{expression: "+test.expression+", name: cost, direction: minimize}")
			lease := w.leaseOf(t, "edge")
			if _, err := w.service.Architecture(w.ctx, lease.Trial, architecture(t, lease, 8)); err != nil {
				t.Fatal(err)
			}
			ran := protocol.InferenceReport{LeaseEpoch: lease.LeaseEpoch, Key: "architecture-8"}
			for threads := 1; threads <= 2; threads++ {
				ran.Runs = append(ran.Runs, emu.Run{Batch: 1, Threads: threads, Seconds: 0.1, Low: 0.1, High: 0.1, P90: 0.1, P99: 0.1, Repetitions: 9, Joules: 3, EnergyMethod: test.method})
			}
			if _, err := w.service.Inferences(w.ctx, lease.Trial, ran); err != nil {
				t.Fatal(err)
			}
			report := protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: 1, Metrics: map[string]trial.Float{"accuracy": 0.5}}
			if _, err := w.service.Report(w.ctx, lease.Trial, report); err != nil {
				t.Fatal(err)
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
			one := trialsOf(t, w, "edge")[0]
			if one.Inference.Method != "measured" || one.Inference.EnergyMethod != test.method || one.Results[0].Estimated != test.estimated {
				t.Errorf("%+v of %+v", one.Results[0], one.Inference)
			}
			answer, err := w.service.Recommendation(w.ctx, "edge")
			noted := strings.Contains(strings.Join(answer.Notes, "\n"), "the joules of inference on this-machine are an estimate: 10 W per busy core")
			if err != nil || noted != strings.HasPrefix(test.method, "estimate") {
				t.Errorf("%v, the notes are %q", err, answer.Notes)
			}
		}))
	}
}
