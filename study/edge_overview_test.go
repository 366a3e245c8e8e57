package study_test

import (
	"fmt"
	"strings"
	"testing"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

func TestEdgeOverview(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("name: example", "name: edge\ninference: {devices: [raspberry-pi-4, this-machine], batch_size: {low: 1, high: 4}}",
			"{metric: accuracy, direction: maximize}", "{expression: edge.latency_ms, name: latency, direction: minimize}, {metric: accuracy, direction: maximize}",
			"policy: multi", "policy: epochs", "min: 1, max: 9", "min: 1, max: 1", "method: bohb", "method: random")
		b := w.box(true)
		overview := func() protocol.EdgeOverview {
			t.Helper()
			answer, err := w.service.EdgeOverview(w.ctx, "edge")
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		if early := overview(); len(early.Trials) != 0 || early.Recommended != nil || early.Metric != "accuracy" || len(early.Notes) != 1 || !strings.Contains(early.Notes[0], "trial.save_model") {
			t.Errorf("before any trial: %+v", early)
		}
		for i, accuracy := range []float64{0.7, 0.9, 0.8} { // the first two share an architecture
			b.id = fmt.Sprintf("box-%d", i)
			b.register()
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: b.id, Study: "edge"})
			if err != nil || reply.Lease == nil {
				t.Fatalf("%+v, %v", reply, err)
			}
			lease, report := reply.Lease, architecture(t, reply.Lease, int64(8*(1+i/2)))
			if _, err := w.service.Architecture(w.ctx, lease.Trial, report); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				runs := protocol.InferenceReport{LeaseEpoch: lease.LeaseEpoch, Key: report.Key}
				for _, batch := range []int{1, 2, 4} {
					for threads := 1; threads <= 2; threads++ {
						seconds := 0.01 * float64(batch) / float64(threads)
						runs.Runs = append(runs.Runs, emu.Run{Batch: batch, Threads: threads, Seconds: seconds, Low: seconds, High: seconds, P90: seconds, P99: seconds, Repetitions: 9, Joules: 3, EnergyMethod: "meter"})
					}
				}
				if _, err := w.service.Inferences(w.ctx, lease.Trial, runs); err != nil {
					t.Fatal(err)
				}
			}
			_, err = w.service.Report(w.ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: 1, Metrics: map[string]trial.Float{"accuracy": trial.Float(accuracy)}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
		answer := overview()
		best := w.view("edge").Progress.Best
		if answer.Architectures != 2 || len(answer.Trials) != 2 || *answer.Recommended != best.Number || answer.Metric != "accuracy" || answer.Direction != "maximize" {
			t.Fatalf("%+v", answer)
		}
		for _, one := range answer.Trials {
			want := map[int]struct {
				value   trial.Float
				sharing int
			}{1: {0.9, 2}, 2: {0.8, 1}}[one.Number]
			if one.Value != want.value || one.Sharing != want.sharing || len(one.Deployments) != 2 || one.Deployments[0].Device != "raspberry-pi-4" || one.Deployments[1].Device != "this-machine" || len(one.Deployments[0].Front) == 0 {
				t.Errorf("%+v, want %+v", one, want)
			}
			if !one.Deployments[0].Estimated() {
				t.Errorf("trial %d: nothing ran on the Raspberry Pi, and it says %q", one.Number, one.Deployments[0].Method)
			}
			ran := 0
			for _, front := range one.Deployments[1].Front {
				if front.Outcome.Measured {
					ran++
				}
			}
			if (ran > 0) != (one.Number == 1) {
				t.Errorf("trial %d: %d configurations of its front were measured here", one.Number, ran)
			}
		}
	})(t)
}

func TestEdgeOverviewNeedsAnInferenceSection(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		answer, err := w.service.EdgeOverview(w.ctx, created.Name)
		if err != nil || len(answer.Devices)+len(answer.Trials) > 0 || len(answer.Notes) != 1 || !strings.Contains(answer.Notes[0], "inference section") {
			t.Errorf("%+v: %v", answer, err)
		}
	})(t)
}
