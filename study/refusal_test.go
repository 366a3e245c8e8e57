package study_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// TestAWorkerThatRefusesAStudyIsNotAskedAgain: the trial waits for another one,
// at no cost, and people see why.
func TestAWorkerThatRefusesAStudyIsNotAskedAgain(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		other := w.create("name: example", "name: other")
		w.register("careful", "willing")
		lease := w.mustLease("careful")
		const reason = "worker careful does not run it: its owner does not allow the command"
		reply, err := w.service.Finish(w.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Refused, Reason: reason})
		if err != nil || reply.State != trial.Queued {
			t.Fatalf("the trial is %s, %v", reply.State, err)
		}
		if got := w.trial(lease.Trial); got.Failures != 0 || got.Losses != 0 || got.Reason != reason {
			t.Errorf("the trial has %d failures, %d losses, and the reason %q", got.Failures, got.Losses, got.Reason)
		}
		if next := w.mustLease("careful"); next.StudyID == lease.StudyID {
			t.Errorf("it is offered %s again", next.Study)
		}
		if reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "careful", Study: lease.StudyID}); err != nil || reply.Lease != nil {
			t.Errorf("asked for that study alone it gets %+v, %v", reply, err)
		}
		var refused map[string]string
		for _, worker := range w.service.Workers(w.ctx) {
			if worker.ID == "careful" {
				refused = worker.Refuses
			}
		}
		if len(refused) != 1 || refused[lease.StudyID] != reason {
			t.Errorf("it is said to refuse %v", refused)
		}
		again := w.mustLease("willing")
		if again.Trial != lease.Trial || again.LeaseEpoch != lease.LeaseEpoch+1 {
			t.Errorf("another worker gets %s under lease %d", again.Trial, again.LeaseEpoch)
		}
		w.train(again)
		// One that starts anew may have been told otherwise.
		w.register("careful")
		if next := w.mustLease("careful"); next.StudyID != created.ID && next.StudyID != other.ID {
			t.Errorf("it gets %s", next.Study)
		}
		if workers := w.service.Workers(w.ctx); len(workers[0].Refuses)+len(workers[1].Refuses) > 0 {
			t.Errorf("something is refused still: %+v", workers)
		}
	})(t)
}

func TestAStrictStudyWaitsForAWorkerWithAllLayers(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("command: [train]", "command: [train]\nsandbox: strict\nsecrets: [HF_TOKEN]")
		for name, sandbox := range map[string]*protocol.Sandbox{
			"silent": nil, "open": {Mode: "off"}, "lacking": {Mode: "auto", Layers: []string{"limits"}, Missing: []string{"files: no Landlock"}}, "nothing": {Mode: "auto"},
		} {
			if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: name, Name: name, Slots: 1, Sandbox: sandbox}); err != nil {
				t.Fatal(err)
			}
			if lease := w.lease(name); lease != nil {
				t.Errorf("worker %s gets a strict study's trial", name)
			}
		}
		if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: "closed", Name: "closed", Slots: 1, Sandbox: &protocol.Sandbox{Mode: "auto", Layers: []string{"limits", "files"}}}); err != nil {
			t.Fatal(err)
		}
		lease := w.mustLease("closed")
		if lease.Sandbox != protocol.StrictSandbox || strings.Join(lease.Secrets, " ") != "HF_TOKEN" {
			t.Errorf("the lease says sandbox %q, secrets %q", lease.Sandbox, lease.Secrets)
		}
	})(t)
}
