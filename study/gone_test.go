package study_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// launched registers a worker that a launcher has started on the machine.
func (w *world) launched(host, id, launch string) error {
	_, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Launch: launch, Machine: protocol.Machine{Host: host}})
	return err
}

// TestAPreemptedTrialGoesOnAtOnce: what the engine knows ends the lease, costs the trial
// nothing, and the worker, should it still run, is not heard.
func TestAPreemptedTrialGoesOnAtOnce(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(append(oneRung, "trials: 27", "trials: 1")...)
		if err := w.launched("one", "worker-0", "L-0"); err != nil {
			t.Fatal(err)
		}
		lease := w.mustLease("worker-0")
		w.mustReport(lease, 1)
		gone := protocol.Gone{Launch: "L-0", Cause: protocol.Preempted, Why: "preempted for a job that goes first"}
		for launch, want := range map[string]problem.Code{"L-1": problem.Invalid, "": problem.Invalid} {
			if _, err := w.service.Gone(w.ctx, "worker-0", protocol.Gone{Launch: launch, Cause: protocol.Preempted}); !problem.Is(err, want) {
				t.Errorf("launch %q: %v", launch, err)
			}
		}
		w.registerOn("three", "unlaunched")
		if _, err := w.service.Gone(w.ctx, "unlaunched", protocol.Gone{Cause: protocol.Preempted}); !problem.Is(err, problem.Invalid) {
			t.Errorf("a worker that nobody launched: %v", err)
		}
		if _, err := w.service.Heartbeat(w.ctx, "unlaunched", protocol.Heartbeat{}); err != nil {
			t.Errorf("it is not heard any more: %v", err)
		}
		reply, err := w.service.Gone(w.ctx, "worker-0", gone)
		if err != nil || len(reply.Trials) != 1 || reply.Trials[0] != lease.Trial {
			t.Fatalf("it held %v, %v", reply.Trials, err)
		}
		stored := w.trial(lease.Trial)
		if stored.State != trial.Queued || stored.Losses != 1 || stored.Explained != 1 || len(stored.LostOn) != 0 || !strings.Contains(stored.Reason, "known reason 1 of at most 100") {
			t.Errorf("it is %s after %d losses, %d of them explained, on %v: %s", stored.State, stored.Losses, stored.Explained, stored.LostOn, stored.Reason)
		}
		// The zombie goes on.
		if _, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 2, Metrics: map[string]trial.Float{"accuracy": 0.9}}); !problem.Is(err, problem.LeaseLost) {
			t.Errorf("its report: %v", err)
		}
		if _, err := w.service.Heartbeat(w.ctx, "worker-0", protocol.Heartbeat{}); !problem.Is(err, problem.NotFound) {
			t.Errorf("its heartbeat: %v", err)
		}
		if err := w.launched("one", "worker-0", "L-0"); !problem.Is(err, problem.Forbidden) {
			t.Errorf("it registers again: %v", err)
		}
		if _, err := w.service.Gone(w.ctx, "worker-0", gone); !problem.Is(err, problem.NotFound) {
			t.Errorf("told again: %v", err)
		}
		w.registerOn("two", "worker-1")
		if rest := w.again("worker-1", lease.Trial); rest > 0 {
			t.Errorf("it rested for %v", rest)
		}
	})(t)
}

// TestExplainedLossesCountForThemselves preempts a trial again and again: after 100
// times it is given up. A worker that crashed is a loss like any other.
func TestExplainedLossesCountForThemselves(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(append(oneRung, "trials: 27", "trials: 1")...)
		lose := func(life int, cause protocol.Cause) trial.Trial {
			id, launch := "worker-"+strings.Repeat("x", life), "L-"+strings.Repeat("x", life)
			host := []string{"one", "two", "three", "four"}[life%4]
			if err := w.launched(host, id, launch); err != nil {
				t.Fatal(err)
			}
			lease := w.mustLease(id)
			if _, err := w.service.Gone(w.ctx, id, protocol.Gone{Launch: launch, Cause: cause}); err != nil {
				t.Fatal(err)
			}
			return w.trial(lease.Trial)
		}
		if stored := lose(1, protocol.Crashed); stored.Losses != 1 || stored.Explained != 0 || len(stored.LostOn) != 1 || !strings.Contains(stored.Reason, "lost 1 of at most 20 times") {
			t.Errorf("after a crash: %d, %d: %s", stored.Losses, stored.Explained, stored.Reason)
		}
		for life := 2; life < 52; life++ {
			if stored := lose(life, protocol.NodeFailed); stored.State != trial.Queued || stored.Explained != life-1 {
				t.Fatalf("after %d: %s: %s", life, stored.State, stored.Reason)
			}
			time.Sleep(time.Millisecond)
		}
		for life := 2; life < 51; life++ {
			if stored := lose(life+50, protocol.Evicted); stored.State != trial.Queued {
				t.Fatalf("after %d more: %s: %s", life, stored.State, stored.Reason)
			}
		}
		if stored := lose(200, protocol.Preempted); stored.State != trial.Lost || stored.Failures != 0 || !strings.Contains(stored.Reason, "lost 100 times, each for a known reason") {
			t.Errorf("it is %s: %s", stored.State, stored.Reason)
		}
	})(t)
}
