package study_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// cleared is a worker on which the one trial makes way for the study urgent, of
// priority 3, while other studies wait; and the trial, which has not left yet.
func cleared(w *world) *protocol.Lease {
	w.t.Helper()
	w.create(append(named("low", "priority: -1"), oneRung...)...)
	w.rack("worker-a", 1, 0)
	lease := w.mustLease("worker-a")
	w.mustReport(lease, 1)
	if err := w.checkpoint(lease, 1); err != nil {
		w.t.Fatal(err)
	}
	w.create(append(append(named("calm", "priority: 3"), "trials: 27", "trials: 1"), oneRung...)...)
	w.sleep(2 * time.Second)
	w.create(append(append(named("urgent", "priority: 3", "preempt: true"), "trials: 27", "trials: 1"), oneRung...)...)
	w.sleep(2 * time.Second)
	if told := w.beat("worker-a", lease); len(told) != 1 {
		w.t.Fatalf("the trial is told %v", told)
	}
	return lease
}

// TestWhatIsClearedForAStudyIsIts: the place that a trial leaves for one that preempts
// goes to that, and not to one of the same priority that does not preempt and is older,
// whichever way the trial ends and whoever asks first.
func TestWhatIsClearedForAStudyIsIts(t *testing.T) {
	ends := map[string]func(w *world, lease *protocol.Lease){
		"interrupted": func(w *world, lease *protocol.Lease) {
			if _, err := w.finish(lease, protocol.Interrupted); err != nil {
				w.t.Fatal(err)
			}
		},
		"failed": func(w *world, lease *protocol.Lease) {
			if _, err := w.finish(lease, protocol.CommandFailed); err != nil {
				w.t.Fatal(err)
			}
		},
		"trained": func(w *world, lease *protocol.Lease) {
			for epoch := 2; epoch <= 9; epoch++ {
				w.mustReport(lease, epoch)
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				w.t.Fatal(err)
			}
		},
		"lost": func(w *world, _ *protocol.Lease) {
			for range 70 {
				w.sleep(time.Second)
				w.beat("worker-a") // the worker is there, and its trial is not
			}
		},
	}
	for name, end := range ends {
		t.Run(name, in(func(t *testing.T, w *world) {
			end(w, cleared(w))
			// Who asks for a study by its name is no exception.
			if reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-a", Study: "calm"}); err != nil || reply.Lease != nil {
				t.Errorf("calm is given %+v, %v", reply.Lease, err)
			}
			w.rack("worker-a", 1, 0) // it asks for any study again
			if waits := w.view("calm").Waits; !slices.ContainsFunc(waits, func(one protocol.Wait) bool { return one.Cause == protocol.WaitGang }) {
				t.Errorf("calm says that it waits for %+v", waits)
			}
			if lease := w.mustLease("worker-a"); lease.Study != "urgent" {
				t.Errorf("the place went to %s", lease.Study)
			}
			w.rack("worker-b", 1, 0)
			if lease := w.mustLease("worker-b"); lease.Study != "calm" {
				t.Errorf("another place went to %s", lease.Study)
			}
		}))
	}
}

// TestWhatIsClearedIsNotKeptForEver: not for a study that has started elsewhere, has
// ended or waits no more, not when nobody comes for it, and not from one of a higher
// priority.
func TestWhatIsClearedIsNotKeptForEver(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"a higher priority": {func(w *world) { w.create(append(named("highest", "priority: 9"), oneRung...)...) }, "highest"},
		"stopped": {func(w *world) {
			if _, err := w.service.Stop(w.ctx, "urgent"); err != nil {
				w.t.Fatal(err)
			}
			w.sleep(2 * time.Second)
		}, "calm"},
		"paused": {func(w *world) {
			if _, err := w.service.Pause(w.ctx, "urgent"); err != nil {
				w.t.Fatal(err)
			}
			w.sleep(2 * time.Second)
		}, "calm"},
		"started elsewhere": {func(w *world) {
			w.rack("worker-b", 1, 0)
			w.leaseFrom("worker-b", "urgent")
			w.sleep(2 * time.Second)
		}, "calm"},
		"the worker was away": {func(w *world) {
			w.sleep(2 * time.Minute)
			w.rack("worker-a", 1, 0)
		}, "calm"},
		"another that preempts": {func(w *world) {
			if _, err := w.service.Pause(w.ctx, "calm"); err != nil {
				w.t.Fatal(err)
			}
			w.create(append(named("as-urgent", "priority: 3", "preempt: true"), oneRung...)...)
			w.leaseFrom("worker-a", "as-urgent")
			w.rack("worker-b", 1, 0)
		}, ""},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			if _, err := w.finish(cleared(w), protocol.Interrupted); err != nil {
				t.Fatal(err)
			}
			c.change(w)
			if c.want == "" {
				return
			}
			if lease := w.mustLease("worker-a"); lease.Study != c.want {
				t.Errorf("the place went to %s", lease.Study)
			}
		}))
	}
}
