package study_test

import (
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestATunedNumberOfGPUsIsGiven: what the configuration says of a lease, not what
// the one before had, is how many GPUs its command sees.
func TestATunedNumberOfGPUsIsGiven(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(named("tuned", "system: {gpus: {values: [1, 2]}}")...)
		machine := protocol.Machine{Host: "box", Cores: 8, GPUs: []string{"A100", "A100"}, Knobs: []string{"gpus"}}
		if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: "worker-box", Name: "box", Slots: 1, Machine: machine}); err != nil {
			t.Fatal(err)
		}
		lease := w.mustLease("worker-box")
		want, _ := lease.System["gpus"].Number()
		if lease.GPUCount == nil || float64(*lease.GPUCount) != want || len(lease.GPUs) != int(want) || want == 0 {
			t.Errorf("its configuration is %v, and it is given %v", lease.System, lease.GPUs)
		}
	})(t)
}
