package study_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// The youngest trial of the lowest class makes way, by checkpoint, and is left in
// peace for a while.
func TestPreemptionWhenAskedFor(t *testing.T) {
	in(func(t *testing.T, w *world) {
		long := []string{"policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9"}
		w.create(append(named("lowest", "priority: -2"), long...)...)
		w.rack("worker-a", 1, 0)
		w.rack("worker-b", 1, 0)
		w.rack("worker-c", 1, 0)
		older := w.mustLease("worker-a")
		w.sleep(time.Second)
		younger := w.mustLease("worker-b")
		w.create(append(named("low", "priority: -1"), long...)...)
		low := w.mustLease("worker-c")
		for _, lease := range []*protocol.Lease{older, younger, low} {
			w.mustReport(lease, 1)
			if err := w.checkpoint(lease, 1); err != nil {
				t.Fatal(err)
			}
		}
		ada := w.as(user("ada"))
		ada.create(append(append(named("urgent", "priority: 3", "preempt: true"), "trials: 27", "trials: 1"), long...)...)
		w.sleep(2 * time.Second)
		told := func() (told []trial.ID) {
			for worker, lease := range map[string]*protocol.Lease{"worker-a": older, "worker-b": younger, "worker-c": low} {
				for id, directive := range w.beat(worker, lease) {
					if directive.Action != protocol.Pause || !strings.Contains(directive.Reason, "makes way for study urgent") {
						t.Errorf("trial %s is told %+v", id, directive)
					}
					told = append(told, id)
				}
			}
			return told
		}
		if got := told(); len(got) != 0 {
			t.Fatalf("ada may not preempt, and %v make way", got)
		}
		ada.wantWait("urgent", "busy", "3 workers that suit it are busy; no trial makes way for it (preempt), as user ada may not ask for that")
		if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{Preempt: true}); err != nil {
			t.Fatal(err)
		}
		w.sleep(5 * time.Second)
		if got := told(); !slices.Equal(got, []trial.ID{younger.Trial}) {
			t.Fatalf("%v make way, want %s alone", got, younger.Trial)
		}
		ada.wantWait("urgent", "preemption", "making way")
		if _, err := w.finish(younger, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if stored := w.trial(younger.Trial); stored.State != trial.Queued || stored.Preemptions != 1 || stored.Preempted == nil || stored.Failures != 0 || stored.Losses != 0 {
			t.Errorf("the trial that made way is %+v", stored)
		}
		if lease := w.mustLease("worker-b"); lease.Study != "urgent" {
			t.Errorf("its place went to %s", lease.Study)
		}
		w.sleep(5 * time.Second)
		for worker, lease := range map[string]*protocol.Lease{"worker-a": older, "worker-c": low} {
			if told := w.beat(worker, lease); len(told) != 0 {
				t.Errorf("the study's only trial runs, and on %s %+v make way", worker, told)
			}
		}
		if view := ada.view("urgent"); len(view.Waits) != 0 {
			t.Errorf("the study's only trial runs, and it waits for %+v", view.Waits)
		}
	})(t)
}

// TestPreemptWithoutTheRightIsSaid when the study is created and when it is looked at, while
// it is so.
func TestPreemptWithoutTheRightIsSaid(t *testing.T) {
	in(func(t *testing.T, w *world) {
		const want = "user ada may not ask for that: an administrator allows it with tandem quota set ada --preempt"
		ada := w.as(user("ada"))
		created := ada.create(named("urgent", "preempt: true")...)
		if seen := ada.view("urgent"); !strings.Contains(created.Useless, want) || seen.Useless != created.Useless {
			t.Errorf("she is told %q when it is created and %q later; want %q", created.Useless, seen.Useless, want)
		}
		if plain := ada.create(named("plain")...); plain.Useless != "" {
			t.Errorf("without preempt she is told %q", plain.Useless)
		}
		if own := w.create(named("own", "preempt: true")...); own.Useless != "" {
			t.Errorf("an administrator is told %q", own.Useless)
		}
		if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{Preempt: true}); err != nil {
			t.Fatal(err)
		}
		if seen := ada.view("urgent"); seen.Useless != "" {
			t.Errorf("she may, and is told %q", seen.Useless)
		}
	})(t)
}

// TestMakingWayNamesNoStudyOfOthers to the user whose trial makes way; the
// administrators are told.
func TestMakingWayNamesNoStudyOfOthers(t *testing.T) {
	for owner, want := range map[string]string{"ada": "study secret, ", "bob": "a study of another user, ", "": "study secret, "} {
		in(func(t *testing.T, w *world) {
			his := w
			if owner != "" {
				his = w.as(user(owner))
			}
			long := []string{"policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9"}
			his.create(append(named("his", "priority: -1"), long...)...)
			w.rack("worker-a", 1, 0)
			lease := w.mustLease("worker-a")
			w.mustReport(lease, 1)
			if err := w.checkpoint(lease, 1); err != nil {
				t.Fatal(err)
			}
			w.as(user("ada")).create(named("secret", "preempt: true")...)
			if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{Preempt: true}); err != nil {
				t.Fatal(err)
			}
			w.sleep(5 * time.Second)
			reason := w.beat("worker-a", lease)[lease.Trial].Reason
			if !strings.Contains(reason, want+"whose priority is higher (0)") {
				t.Errorf("%q is told: %q", owner, reason)
			}
		})(t)
	}
}

// TestRoomForAGangIsKeptWhileItIsMade: two trials make way for one that needs both
// their GPUs, one after the other. What the first leaves goes to nobody of a lower
// priority meanwhile, or the second would have made way for nothing.
func TestRoomForAGangIsKeptWhileItIsMade(t *testing.T) {
	in(func(t *testing.T, w *world) {
		long := []string{"policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9"}
		bob := w.as(user("bob"))
		bob.create(append(named("low", "priority: -1", "resources: {gpus: 1}"), long...)...)
		w.rack("worker-rack", 8, 2)
		leases := []*protocol.Lease{w.mustLease("worker-rack"), w.mustLease("worker-rack")}
		for _, lease := range leases {
			w.mustReport(lease, 1)
			if err := w.checkpoint(lease, 1); err != nil {
				t.Fatal(err)
			}
		}
		view := w.create(append(named("urgent", "priority: 3", "preempt: true", "resources: {gpus: 2}"), long...)...)
		w.sleep(2 * time.Second)
		if told := w.beat("worker-rack", leases...); len(told) != 2 {
			t.Fatalf("told to make way are %+v, want both", told)
		}
		if _, err := w.finish(leases[0], protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if lease := w.lease("worker-rack"); lease != nil {
			t.Fatalf("half of the room that is made for urgent went to %s", lease.Trial)
		}
		bob.wantWait("low", "gang", "trials on worker rack are making way for a study of higher priority (3)")
		if _, err := w.service.Pause(w.ctx, view.Name); err != nil {
			t.Fatal(err)
		}
		w.sleep(2 * time.Second)
		again := w.mustLease("worker-rack")
		if again.Study != "low" {
			t.Errorf("with urgent paused %s is served", again.Study)
		}
		if _, err := w.service.Resume(w.ctx, view.Name); err != nil {
			t.Fatal(err)
		}
		for _, lease := range []*protocol.Lease{again, leases[1]} {
			if _, err := w.finish(lease, protocol.Interrupted); err != nil {
				t.Fatal(err)
			}
		}
		if lease := w.mustLease("worker-rack"); lease.Study != "urgent" || len(lease.GPUs) != 2 {
			t.Errorf("the room went to %s with GPUs %v", lease.Trial, lease.GPUs)
		}
	})(t)
}

// TestRoomThatItsStudyMayNotHaveIsNotKept: while a worker is reserved for another
// user, what trials leave there for an urgent study goes to that user, who hears of it
// at once; behind the reservation it is kept for the urgent study again.
func TestRoomThatItsStudyMayNotHaveIsNotKept(t *testing.T) {
	in(func(t *testing.T, w *world) {
		long := []string{"policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9"}
		bob := w.as(user("bob"))
		bob.create(append(named("low", "priority: -1", "resources: {gpus: 1}"), long...)...)
		w.rack("worker-rack", 8, 2)
		leases := []*protocol.Lease{w.mustLease("worker-rack"), w.mustLease("worker-rack")}
		for _, lease := range leases {
			w.mustReport(lease, 1)
			if err := w.checkpoint(lease, 1); err != nil {
				t.Fatal(err)
			}
		}
		w.create(append(named("urgent", "priority: 3", "preempt: true", "resources: {gpus: 2}"), long...)...)
		w.sleep(2 * time.Second)
		if told := w.beat("worker-rack", leases...); len(told) != 2 {
			t.Fatalf("told to make way are %+v, want both", told)
		}
		if _, err := w.finish(leases[0], protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		made, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{User: "bob", Worker: "rack", To: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		w.sleep(2 * time.Second)
		again := w.mustLease("worker-rack")
		if again.Study != "low" {
			t.Errorf("bob's worker runs %s", again.Study)
		}
		if err := w.service.Unreserve(w.ctx, made.ID); err != nil {
			t.Fatal(err)
		}
		w.sleep(2 * time.Second)
		if _, err := w.finish(again, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if lease := w.lease("worker-rack"); lease != nil {
			t.Errorf("behind the reservation half of the room went to %s", lease.Trial)
		}
		if _, err := w.finish(leases[1], protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if lease := w.mustLease("worker-rack"); lease.Study != "urgent" || len(lease.GPUs) != 2 {
			t.Errorf("the room went to %s with GPUs %v", lease.Trial, lease.GPUs)
		}
	})(t)
}
