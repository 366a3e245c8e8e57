package study_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

const gigabyte = 1 << 30

// seenAlone is what a trial was seen to use of a GPU of 16 GiB that it had to
// itself.
func seenAlone(utilization, seconds float64, gigabytes int64) *trial.GPUUse {
	return &trial.GPUUse{Utilization: utilization, Seconds: seconds, MemoryBytes: gigabytes * gigabyte, GPUMemoryBytes: 16 * gigabyte, Alone: true, Method: trial.GPUUseByProcess}
}

// reportUse reports an epoch with what was seen of the GPU.
func (w *world) reportUse(lease *protocol.Lease, epoch int, use *trial.GPUUse) error {
	_, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: 2, Metrics: map[string]trial.Float{"accuracy": accuracy(lease, epoch)}, GPUUse: use,
	})
	return err
}

// TestATrialKnowsWhatItUsedOfItsGPU: what reports and ends of leases say adds up,
// an epoch that is told twice counts once, and another lease's word not at all.
func TestATrialKnowsWhatItUsedOfItsGPU(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("{min: 1, max: 9}", "{min: 9, max: 9}")
		w.register("worker")
		lease := w.mustLease("worker")
		for _, told := range []struct {
			epoch int
			use   *trial.GPUUse
		}{{1, nil}, {2, seenAlone(0.2, 20, 3)}, {2, seenAlone(1, 500, 9)}, {3, seenAlone(0.5, 40, 2)}} {
			if err := w.reportUse(lease, told.epoch, told.use); err != nil {
				t.Fatal(err)
			}
		}
		end := protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Interrupted, GPUUse: seenAlone(0.4, 60, 5)}
		if _, err := w.service.Finish(w.ctx, lease.Trial, end); err != nil {
			t.Fatal(err)
		}
		if _, err := w.service.Finish(w.ctx, lease.Trial, end); !problem.Is(err, problem.LeaseLost) {
			t.Errorf("the lease ended twice: %v", err)
		}
		w.start()
		use := w.trial(lease.Trial).GPUUse
		if use == nil || math.Abs(use.Utilization-0.4) > 1e-9 || use.Seconds != 120 || use.MemoryBytes != 5*gigabyte || !use.Alone {
			t.Errorf("seen is %+v", use)
		}
	})(t)
}

// TestWhatWasSeenOfAGPUIsChecked names the field that cannot be.
func TestWhatWasSeenOfAGPUIsChecked(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		w.register("worker")
		lease := w.mustLease("worker")
		for field, use := range map[string]trial.GPUUse{
			"gpu_use.utilization":      {Utilization: 1.5},
			"gpu_use.seconds":          {Seconds: math.NaN()},
			"gpu_use.memory_bytes":     {MemoryBytes: -1},
			"gpu_use.gpu_memory_bytes": {GPUMemoryBytes: -1},
		} {
			if err := w.reportUse(lease, 1, &use); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), field) {
				t.Errorf("the report with a wrong %s: %v", field, err)
			}
			_, err := w.service.Finish(w.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Interrupted, GPUUse: &use})
			if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), field) {
				t.Errorf("the end with a wrong %s: %v", field, err)
			}
		}
		if use := w.trial(lease.Trial).GPUUse; use != nil {
			t.Errorf("noted is %+v", use)
		}
	})(t)
}
