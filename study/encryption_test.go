package study_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// aRecipient is a public key whose identity nobody has.
const aRecipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"

func (w *world) registerWithKey(id string, recipients ...string) {
	w.t.Helper()
	if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Recipients: recipients}); err != nil {
		w.t.Fatal(err)
	}
}

// Trials of an encrypted study go to workers that hold its key, which run nothing else,
// and no checkpoint of one that is in the clear is taken.
func TestEncryptedStudiesRunWhereTheirKeyIs(t *testing.T) {
	in(func(t *testing.T, w *world) {
		made := w.create("objective:", "encryption: {recipients: ["+aRecipient+"]}\nobjective:")
		if made.Definition.Recipients()[0] != aRecipient {
			t.Errorf("the study has %+v", made.Definition.Encryption)
		}
		rack := w.as(workerOf("rack"))
		rack.register("box")
		rack.registerWithKey("other", aRecipient[:len(aRecipient)-1]+"q")
		for _, worker := range []string{"box", "other"} {
			if lease := rack.lease(worker); lease != nil {
				t.Errorf("%s has %+v", worker, lease)
			}
		}
		if waits := w.view(made.ID).Waits; len(waits) != 1 || !strings.Contains(waits[0].Reason, "holds the key "+aRecipient) || !strings.Contains(waits[0].Reason, "--identity FILE") {
			t.Errorf("it waits for %+v", waits)
		}
		if wanted, err := w.service.Wanted(w.ctx); err != nil || wanted.Studies[0].Recipient != aRecipient {
			t.Errorf("a launcher is told %+v, %v", wanted, err)
		}
		rack.registerWithKey("keyed", "age1another", aRecipient)
		lease := rack.mustLease("keyed")
		if len(lease.Recipients) != 1 || lease.Recipients[0] != aRecipient {
			t.Errorf("the lease has the recipients %v", lease.Recipients)
		}
		rack.mustReport(lease, 1)
		if err := rack.checkpoint(lease, 1); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "not encrypted") {
			t.Errorf("a checkpoint in the clear: %v", err)
		}
		if err := rack.service.LogArtifact(rack.ctx, lease.Trial, protocol.ArtifactLog{LeaseEpoch: lease.LeaseEpoch, Name: "a.png", Artifact: strings.Repeat("5", 64), Bytes: 10}); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "is encrypted") {
			t.Errorf("an artifact: %v", err)
		}
		artifact := strings.Repeat("5", 64)
		rack.service.Uploaded(rack.ctx, artifact, 10, true)
		if err := rack.service.CommitCheckpoint(rack.ctx, lease.Trial, protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Artifact: artifact, Bytes: 10}); err != nil {
			t.Error(err)
		}
	})(t)
}

func TestAWorkerWithKeysRunsNothingInTheClear(t *testing.T) {
	in(func(t *testing.T, w *world) {
		made := w.create()
		rack := w.as(workerOf("rack"))
		rack.registerWithKey("keyed", aRecipient)
		if lease := rack.lease("keyed"); lease != nil {
			t.Errorf("it has %+v", lease)
		}
		if waits := w.view(made.ID).Waits; len(waits) != 1 || !strings.Contains(waits[0].Reason, "encrypted studies only") {
			t.Errorf("it waits for %+v", waits)
		}
		rack.register("box")
		lease := rack.mustLease("box")
		rack.mustReport(lease, 1)
		if err := rack.checkpoint(lease, 1); err != nil || len(lease.Recipients) > 0 {
			t.Errorf("a study without encryption: %v, %v", lease.Recipients, err)
		}
	})(t)
}
