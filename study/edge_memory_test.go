package study_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// A worker runs a model once whose memory matters on a device that is not there: what it
// took counts there, and a model that takes too much is never recommended. Where memory
// does not matter, nothing is run.
func TestMemoryOfARunCountsOnOtherDevices(t *testing.T) {
	for bound, runs := range map[string]int{", memory_mib: 64": 2, "": 0} {
		in(func(t *testing.T, w *world) {
			edgeStudy(w, "[raspberry-pi-4]"+bound)
			for number, peak := range []int64{80 << 20, 20 << 20} {
				lease := w.leaseOf(t, "edge")
				report := architecture(t, lease, int64(8*(1+number)))
				told, err := w.service.Architecture(w.ctx, lease.Trial, report)
				if err != nil || len(told.Run) != runs || !told.Deployments[0].Runs() {
					t.Fatalf("%q: %+v, %v", bound, told, err)
				}
				epoch := protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: 1, Metrics: map[string]trial.Float{"accuracy": trial.Float(0.9 - 0.8*float64(number))}}
				if _, err := w.service.Report(w.ctx, lease.Trial, epoch); err != nil {
					t.Fatal(err)
				}
				sent := protocol.InferenceReport{LeaseEpoch: lease.LeaseEpoch, Key: report.Key}
				for _, cell := range told.Run {
					sent.Runs = append(sent.Runs, emu.Run{Batch: cell.Batch, Threads: cell.Threads, Seconds: 1, Low: 1, High: 1, P90: 1, P99: 1, Repetitions: 9, MemoryBytes: peak})
				}
				if runs > 0 {
					if _, err := w.service.Inferences(w.ctx, lease.Trial, sent); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
					t.Fatal(err)
				}
			}
			want := 0
			if runs > 0 {
				want = 1
			}
			answer, err := w.service.Recommendation(w.ctx, "edge")
			if err != nil || answer.Best.Number != want {
				t.Errorf("%q: %+v, %v", bound, answer.Best, err)
			}
			lease := w.leaseOf(t, "edge")
			told, err := w.service.Architecture(w.ctx, lease.Trial, architecture(t, lease, 8))
			if err != nil || len(told.Run) != 0 || told.Deployments[0].Runs() != (runs == 0) || !told.Deployments[0].Estimated() {
				t.Fatalf("%q: %+v, %v", bound, told, err)
			}
			if unmet := strings.Join(told.Deployments[0].Unmet, " "); runs > 0 && !strings.Contains(unmet, "a batch of 1 needs 80 MiB by a run, more than the 64 MiB that it may take (inference.memory_mib)") {
				t.Errorf("it says %q", unmet)
			}
		})(t)
	}
}
