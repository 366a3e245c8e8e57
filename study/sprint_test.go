package study_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// sprintingBeat is a heartbeat of a worker whose owner lets trials sprint.
func (w *world) sprintingBeat(worker string, joules, watts float64) {
	w.t.Helper()
	beat := protocol.Heartbeat{Sprint: &protocol.SprintAccount{Joules: joules, Of: 1000, Watts: watts, ExtraWatts: 90}}
	if _, err := w.service.Heartbeat(w.ctx, worker, beat); err != nil {
		w.t.Fatal(err)
	}
}

// epochs trains what is left of a lease, epoch by epoch; from one on it sprints, and
// then takes half the time.
func (w *world) epochs(lease *protocol.Lease, from int) {
	w.t.Helper()
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
		report := protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Metrics: map[string]trial.Float{"accuracy": 0.5}, Seconds: 10}
		if from > 0 && epoch >= from {
			report.Seconds, report.SprintSeconds = 5, 5
		}
		w.sleep(time.Duration(float64(report.Seconds) * float64(time.Second)))
		if _, err := w.service.Report(w.ctx, lease.Trial, report); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
		w.t.Fatal(err)
	}
}

// The timeout of sprints is half of a training until it was seen what a sprint
// does, and then the earliest that the account pays for.
func TestTheServerChoosesWhenTrialsSprint(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("name: example", "name: fast\nsprint: {auto: true}", "policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}, eta: 3", "epochs: 6", "search: {method: bohb, seed: 7}", "search: {method: random, seed: 7}")
		w.register("worker-1")
		w.sleep(6 * time.Second)
		if told := w.deflation("fast"); told.SprintAfter != nil || !strings.Contains(told.SprintWhy, "no worker that is heard of allows any") {
			t.Errorf("without an account: %+v", told)
		}
		lease := w.leaseFrom("worker-1", "fast")
		if lease.Sprint != nil {
			t.Errorf("the first lease sprints after %g s", lease.Sprint.AfterSeconds)
		}
		w.epochs(lease, 0)
		for range 3 {
			w.sprintingBeat("worker-1", 0, 30)
			w.sleep(6 * time.Second)
			lease = w.leaseFrom("worker-1", "fast")
			if told := w.deflation("fast"); lease.Sprint == nil || told.SprintAfter == nil || lease.Sprint.AfterSeconds != *told.SprintAfter || lease.Sprint.AfterSeconds < 15 || lease.Sprint.AfterSeconds > 30 || !strings.Contains(told.SprintWhy, "half of what they take") {
				t.Fatalf("while it is learned: %+v, told %+v", lease.Sprint, told)
			}
			w.epochs(lease, 4)
		}
		after := map[float64]float64{}
		for _, watts := range []float64{0.5, 30, 1000} {
			w.sprintingBeat("worker-1", 0, watts)
			w.sleep(6 * time.Second)
			told := w.deflation("fast")
			if told.SprintAfter == nil || told.SprintSpeed == nil || *told.SprintSpeed != 2 || !strings.Contains(told.SprintWhy, "as early as") {
				t.Fatalf("with %g W it is %+v", watts, told)
			}
			after[watts] = *told.SprintAfter
		}
		if !(after[0.5] > after[30] && after[30] > 0 && after[1000] == 0) {
			t.Errorf("the timeouts by watts are %v", after)
		}
		w.sleep(31 * time.Second)
		w.start()
		w.register("worker-1")
		w.sprintingBeat("worker-1", 0, 1000)
		w.sleep(6 * time.Second)
		if told := w.deflation("fast"); told.SprintSpeed == nil || *told.SprintSpeed != 2 || told.SprintAfter == nil || *told.SprintAfter != 0 {
			t.Errorf("after a restart it is %+v", told)
		}
	})(t)
}

// A study that says itself when its trials sprint is not overruled.
func TestAStudysOwnTimeoutHolds(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("name: example", "name: fast\nsprint: {after_seconds: 60}")
		w.register("worker-1")
		w.sprintingBeat("worker-1", 1000, 30)
		w.sleep(6 * time.Second)
		if lease := w.leaseFrom("worker-1", "fast"); lease.Sprint == nil || lease.Sprint.AfterSeconds != 60 {
			t.Errorf("the lease sprints with %+v", lease.Sprint)
		}
		if told := w.deflation("fast"); told.SprintAfter != nil || told.SprintWhy != "" {
			t.Errorf("%+v", told)
		}
	})(t)
}

// Trials of a lower priority are hurried on exactly as long as a trial waits for
// their worker of a study that wants that.
func TestTrialsSprintForThoseThatWait(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.register("worker-1", "worker-2")
		w.create("name: example", "name: low\npriority: -1")
		low := w.mustLease("worker-1")
		w.create("name: example", "name: alike\npriority: 5")
		alike := w.mustLease("worker-2")
		hurried := func(worker string, lease *protocol.Lease) []trial.ID {
			t.Helper()
			reply, err := w.service.Heartbeat(w.ctx, worker, protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch}}})
			if err != nil {
				t.Fatal(err)
			}
			return reply.Hurried
		}
		w.sleep(6 * time.Second)
		if got := hurried("worker-1", low); got != nil {
			t.Errorf("with nobody who wants it %v are hurried", got)
		}
		urgent := w.create("name: example", "name: urgent\npriority: 5\nsprint: {while_waiting: true}")
		w.sleep(6 * time.Second)
		if got := hurried("worker-1", low); len(got) != 1 || got[0] != low.Trial {
			t.Errorf("%v are hurried, want %s", got, low.Trial)
		}
		if got := hurried("worker-2", alike); got != nil {
			t.Errorf("%v are hurried, which are no less urgent", got)
		}
		if _, err := w.service.Pause(w.ctx, urgent.ID); err != nil {
			t.Fatal(err)
		}
		w.sleep(6 * time.Second)
		if got := hurried("worker-1", low); got != nil {
			t.Errorf("while the urgent study is paused %v are hurried", got)
		}
	})(t)
}

// A study that runs as many trials as it may waits for no worker.
func TestNobodySprintsForWhoIsNotHeldUp(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.register("worker-1", "worker-2")
		w.create("name: example", "name: low\npriority: -1")
		low := w.mustLease("worker-1")
		w.create("name: example", "name: urgent\npriority: 5\nparallel: 1\nsprint: {while_waiting: true}")
		if lease := w.mustLease("worker-2"); lease.Study != "urgent" {
			t.Fatalf("the second worker has a trial of %s", lease.Study)
		}
		w.sleep(6 * time.Second)
		reply, err := w.service.Heartbeat(w.ctx, "worker-1", protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: low.Trial, LeaseEpoch: low.LeaseEpoch}}})
		if err != nil || reply.Hurried != nil {
			t.Errorf("%v are hurried for a study that has all it may have: %v", reply.Hurried, err)
		}
	})(t)
}
