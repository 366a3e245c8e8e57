package study_test

import (
	"fmt"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// A lease's first report that is kept has the broker's word, also where the lease began with
// epochs that are known; no other has it.
func TestEachLeaseKeepsTheBrokersWordOnce(t *testing.T) {
	in(func(t *testing.T, w *world) {
		made := w.create("min: 1", "min: 9", "objective:", "encryption: {recipients: ["+aRecipient+"]}\nconfidential: {policy: "+aPolicy+", metrics: {accuracy: {low: 0, high: 1, round: 0.01}}}\nobjective:")
		rack := w.as(workerOf("rack"))
		rack.registerConfidential("cvm", aPolicy)
		for _, last := range []int{2, 4} {
			lease := rack.mustLease("cvm")
			for epoch := 1; epoch <= last; epoch++ {
				report := protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: 1, Metrics: map[string]trial.Float{"accuracy": 0.12}, Attestation: fmt.Sprintf("signed %d", lease.LeaseEpoch)}
				if _, err := rack.service.Report(rack.ctx, lease.Trial, report); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := rack.service.Finish(rack.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Interrupted}); err != nil {
				t.Fatal(err)
			}
		}
		reports, err := w.store.Reports(w.ctx, w.trials(made.ID)[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		words := []string{}
		for _, one := range reports {
			words = append(words, one.Attestation)
		}
		if fmt.Sprintf("%q", words) != `["signed 1" "" "signed 2" ""]` {
			t.Errorf("its reports have %q", words)
		}
	})(t)
}
