package study_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/trial"
)

// hooked is a store that calls back right behind its own work, before its
// caller hears of it: the moment in which races are decided.
type hooked struct {
	study.Store
	applied func(journal.Change)
	found   func(journal.Study)
	loads   int // how often trials were loaded
}

func (h *hooked) Apply(ctx context.Context, change journal.Change) error {
	err := h.Store.Apply(ctx, change)
	if err == nil && h.applied != nil {
		h.applied(change)
	}
	return err
}

func (h *hooked) Submit(ctx context.Context, change journal.Change) *journal.Outcome {
	outcome := journal.NewOutcome()
	outcome.Settle(h.Apply(ctx, change))
	return outcome
}

func (h *hooked) Study(ctx context.Context, ref string) (journal.Study, error) {
	found, err := h.Store.Study(ctx, ref)
	if err == nil && h.found != nil {
		h.found(found)
	}
	return found, err
}

func (h *hooked) Trials(ctx context.Context, id string) ([]trial.Trial, error) {
	h.loads++
	return h.Store.Trials(ctx, id)
}

// hook puts hooks between the service and its store.
func (w *world) hook() *hooked {
	h := &hooked{Store: w.store}
	w.store = h
	w.start()
	return h
}

func (w *world) leaseUnder(key, worker string) protocol.LeaseReply {
	w.t.Helper()
	reply, err := w.service.Lease(registry.WithIdempotency(w.ctx, key, key), protocol.LeaseRequest{Worker: worker})
	if err != nil {
		w.t.Fatal(err)
	}
	return reply
}

// TestAStudyThatEndsKeepsNobodyFromAnother asks for any trial, under a key, and
// the first study asked turns out to be over: its end must not become the
// answer to that key.
func TestAStudyThatEndsKeepsNobodyFromAnother(t *testing.T) {
	in(func(t *testing.T, w *world) {
		first := w.create("policy: multi", "policy: epochs", "{min: 1, max: 9}", "{min: 9, max: 9}", "trials: 27", "trials: 1", "name: example", "name: first\npriority: 5")
		w.register("worker-1")
		w.train(w.mustLease("worker-1"))
		w.create()
		reply := w.leaseUnder("key", "worker-1")
		if reply.Lease == nil || reply.Lease.Study != "example" || reply.StudyFinished {
			t.Errorf("the worker got %+v, want a trial of the other study", reply)
		}
		if view := w.view(first.ID); view.Status != protocol.StudyCompleted {
			t.Errorf("the first study is %s", view.Status)
		}
	})(t)
}

// TestALostRaceForAKeyIsAnsweredByTheWinner repeats a call whose first attempt
// is stored already: the answer must be the stored one and nothing else.
func TestALostRaceForAKeyIsAnsweredByTheWinner(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("policy: multi", "policy: epochs", "{min: 1, max: 9}", "{min: 9, max: 9}")
		w.register("worker-1")
		first := w.leaseUnder("key", "worker-1")
		other := w.mustLease("worker-1")
		w.mustReport(other, 1)
		if err := w.checkpoint(other, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := w.finish(other, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		again := w.leaseUnder("key", "worker-1")
		want, _ := json.Marshal(first)
		got, _ := json.Marshal(again)
		if string(got) != string(want) {
			t.Errorf("the second attempt was answered\n%s\nand the first\n%s", got, want)
		}
		if next := w.mustLease("worker-1"); next.Trial != other.Trial {
			t.Errorf("the next lease is of trial %s, want the queued %s", next.Trial, other.Trial)
		}
	})(t)
}

// TestAStudyIsInMemoryOnce lets a worker reach a new study between its commit
// and the answer to who created it.
func TestAStudyIsInMemoryOnce(t *testing.T) {
	in(func(t *testing.T, w *world) {
		h := w.hook()
		w.register("worker-1")
		var early *protocol.Lease
		h.applied = func(change journal.Change) {
			if change.Insert == nil {
				return
			}
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-1", Study: "example"})
			if err != nil {
				t.Fatal(err)
			}
			early = reply.Lease
		}
		created := w.create()
		late := w.mustLease("worker-1")
		if late.Number != 1 {
			t.Errorf("the second lease is of trial %d", late.Number)
		}
		w.train(early)
		w.train(late)
		if p := w.view(created.ID).Progress; p.Created != 2 || p.Epochs != early.Budget.Epochs+late.Budget.Epochs {
			t.Errorf("%d trials with %d epochs", p.Created, p.Epochs)
		}
	})(t)
}

// TestADeletedStudyLeavesNothingBehind deletes a study that is just being
// looked up by somebody else.
func TestADeletedStudyLeavesNothingBehind(t *testing.T) {
	in(func(t *testing.T, w *world) {
		h := w.hook()
		w.create("trials: 27", "trials: 27, seconds: 30")
		h.found = func(found journal.Study) {
			h.found = nil
			if err := w.service.Delete(w.ctx, found.ID); err != nil {
				t.Error(err)
			}
		}
		if _, err := w.service.Study(w.ctx, "example"); !problem.Is(err, problem.NotFound) {
			t.Errorf("the deleted study was answered with %v", err)
		}
		w.sleep(time.Minute) // ticks must not fail over it
		w.register("worker-1")
		if lease := w.lease("worker-1"); lease != nil {
			t.Errorf("a trial of a deleted study was leased: %+v", lease)
		}
	})(t)
}

// TestAHeartbeatBeforeTheFirstTickIsOneTerm wakes a server that slept for hours
// by a heartbeat: the lease must not be postponed by those hours again.
func TestAHeartbeatBeforeTheFirstTickIsOneTerm(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		w.sleep(5 * time.Second)
		time.Sleep(10 * time.Hour)
		beat := protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch}}}
		if _, err := w.service.Heartbeat(w.ctx, "worker-1", beat); err != nil {
			t.Fatal(err)
		}
		w.sleep(75 * time.Second) // and then the worker dies
		if state := w.trial(lease.Trial).State; state != trial.Queued {
			t.Errorf("the dead worker's trial is %s after a term and 15 s", state)
		}
	})(t)
}

// TestAServerThatSleptBeforeItsFirstTickBlamesNoWorker stops a server in its
// first second.
func TestAServerThatSleptBeforeItsFirstTickBlamesNoWorker(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		time.Sleep(10 * time.Hour)
		w.sleep(50 * time.Second)
		if stored := w.trial(lease.Trial); stored.Losses != 0 || !stored.State.Held() {
			t.Errorf("the trial was lost %d times and is %s, before its worker could be heard", stored.Losses, stored.State)
		}
		w.sleep(25 * time.Second)
		if stored := w.trial(lease.Trial); stored.Losses != 1 {
			t.Errorf("after a term of silence the trial was lost %d times", stored.Losses)
		}
	})(t)
}

// TestARenewalCountsUntilTheLeaseIsTaken renews a lease while the tick that
// found it expired is still busy with another one.
func TestARenewalCountsUntilTheLeaseIsTaken(t *testing.T) {
	in(func(t *testing.T, w *world) {
		h := w.hook()
		w.create()
		w.create("name: example", "name: other")
		w.register("worker-1", "worker-2")
		var leases [2]*protocol.Lease
		for i, name := range []string{"example", "other"} {
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-" + string(rune('1'+i)), Study: name})
			if err != nil {
				t.Fatal(err)
			}
			leases[i] = reply.Lease
			time.Sleep(time.Millisecond)
		}
		h.applied = func(journal.Change) {
			h.applied = nil
			reply, err := w.service.Heartbeat(w.ctx, "worker-2", protocol.Heartbeat{
				Leases: []protocol.HeldLease{{Trial: leases[1].Trial, LeaseEpoch: leases[1].LeaseEpoch}},
			})
			if err != nil || len(reply.Lost) > 0 {
				t.Errorf("the late heartbeat was answered %+v, %v", reply, err)
			}
		}
		w.sleep(62 * time.Second)
		if one, two := w.trial(leases[0].Trial), w.trial(leases[1].Trial); one.Losses != 1 || two.Losses != 0 || !two.State.Held() {
			t.Errorf("the silent worker's trial was lost %d times; the renewed one %d times, and is %s", one.Losses, two.Losses, two.State)
		}
	})(t)
}

func TestNothingIsLeasedToACallerThatHungUp(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		w.register("worker-1")
		ctx, hangUp := context.WithCancel(w.ctx)
		hangUp()
		reply, err := w.service.Lease(ctx, protocol.LeaseRequest{Worker: "worker-1", WaitSeconds: 30})
		if !errors.Is(err, context.Canceled) || reply.Lease != nil {
			t.Errorf("a caller that is gone got %+v, %v", reply.Lease, err)
		}
		if p := w.view(created.ID).Progress; p.Created != 0 {
			t.Errorf("%d trials were created for nobody", p.Created)
		}
	})(t)
}

// TestASearchThatDisagreesStopsNoOtherStudy restarts a server on a log whose
// decisions it would not take today.
func TestASearchThatDisagreesStopsNoOtherStudy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		bad := w.create("name: example", "name: changed")
		w.register("worker-1")
		reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-1", Study: bad.ID})
		if err != nil {
			t.Fatal(err)
		}
		w.train(reply.Lease)
		held, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-1", Study: bad.ID})
		if err != nil {
			t.Fatal(err)
		}
		w.store = forger{w.store, bad.ID}
		w.start()
		w.register("worker-1")
		if lease := w.mustLease("worker-1"); lease.Study != "example" {
			t.Errorf("a trial of study %s was leased", lease.Study)
		}
		if view := w.view(bad.ID); !strings.Contains(view.Reason, "decided") || view.Progress.Created != 2 {
			t.Errorf("the study with %d trials says %q", view.Progress.Created, view.Reason)
		}
		if _, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-1", Study: bad.ID}); !problem.Is(err, problem.Unavailable) {
			t.Errorf("a lease from the study was answered %v", err)
		}
		w.mustReport(held.Lease, held.Lease.FirstEpoch) // its workers can still hand in what they have
		w.sleep(2 * time.Minute)
		if view, err := w.service.Stop(w.ctx, bad.ID); err != nil || view.Status != protocol.StudyStopped {
			t.Errorf("the study cannot be stopped: %v", err)
		}
		if err := w.service.Delete(w.ctx, bad.ID); err != nil {
			t.Errorf("the study cannot be deleted: %v", err)
		}
	})(t)
}

// forger shows a log in which the first configuration of a study is another.
type forger struct {
	study.Store
	study string
}

func (f forger) Events(ctx context.Context, id string, after int64, limit int) ([]journal.Event, error) {
	events, err := f.Store.Events(ctx, id, after, limit)
	for i := range events {
		if id == f.study && events[i].Kind == journal.Searched {
			events[i].Data = json.RawMessage(strings.Replace(string(events[i].Data), `"kind":"create"`, `"kind":"finish"`, 1))
		}
	}
	return events, err
}

// TestWhatWasMeasuredAtTheTopIsCompleted ends a study between a trial's last
// report and its finish.
func TestWhatWasMeasuredAtTheTopIsCompleted(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("policy: multi", "policy: epochs", "{min: 1, max: 9}", "{min: 9, max: 9}")
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		w.mustReport(lease, 9)
		if _, err := w.service.Stop(w.ctx, created.ID); err != nil {
			t.Fatal(err)
		}
		reply, err := w.finish(lease, protocol.BudgetReached)
		if err != nil || reply.State != trial.Completed {
			t.Errorf("the measured trial is %s, %v", reply.State, err)
		}
	})(t)
}

// TestAnOldCheckpointReplacesNoNewer repeats a commit late and without a key.
func TestAnOldCheckpointReplacesNoNewer(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("policy: multi", "policy: epochs", "{min: 1, max: 9}", "{min: 9, max: 9}")
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		w.mustReport(lease, 1)
		w.mustReport(lease, 2)
		for _, epoch := range []int{1, 2, 1} {
			if err := w.checkpoint(lease, epoch); err != nil {
				t.Fatal(err)
			}
		}
		if at := w.trial(lease.Trial).Checkpoint.Epoch; at != 2 {
			t.Errorf("the trial would go on from epoch %d", at)
		}
	})(t)
}

// TestTimesThatCannotBeAddedAreRefused: a sum beyond every number could be
// shown to nobody, and hide the study.
func TestTimesThatCannotBeAddedAreRefused(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("policy: multi", "policy: epochs", "{min: 1, max: 9}", "{min: 9, max: 9}")
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		for epoch := 1; epoch <= 2; epoch++ {
			_, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{
				LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: 1.5e308, Metrics: map[string]trial.Float{"accuracy": 1},
			})
			if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "seconds") {
				t.Errorf("epoch %d of 1.5e308 seconds was answered %v", epoch, err)
			}
		}
		if _, err := json.Marshal(w.view(created.ID)); err != nil {
			t.Errorf("the study cannot be shown any more: %v", err)
		}
	})(t)
}

// TestAStudyThatIsOverLeavesMemory: the trials of studies that are over are left
// to the store, and lists of studies do not bring them back.
func TestAStudyThatIsOverLeavesMemory(t *testing.T) {
	in(func(t *testing.T, w *world) {
		h := w.hook()
		created := w.create("policy: multi", "policy: epochs", "{min: 1, max: 9}", "{min: 9, max: 9}")
		w.register("worker-1")
		w.train(w.mustLease("worker-1"))
		over, err := w.service.Stop(w.ctx, created.ID)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := json.Marshal(over)
		seen := func(what string, loads int, look func() (protocol.StudyView, error)) {
			t.Helper()
			h.loads = 0
			view, err := look()
			if got, _ := json.Marshal(view); err != nil || string(got) != string(want) || h.loads != loads {
				t.Errorf("%s: %d loads, want %d, %v\n%s\nwant\n%s", what, h.loads, loads, err, got, want)
			}
		}
		one := func() (protocol.StudyView, error) { return w.service.Study(w.ctx, created.ID) }
		list := func() (protocol.StudyView, error) {
			views, err := w.service.Studies(w.ctx)
			return views[0], err
		}
		seen("at once", 0, one)
		w.sleep(11 * time.Minute)
		seen("looked at when it left", 1, one)
		seen("looked at again", 0, one)
		w.sleep(11 * time.Minute)
		seen("listed when it left", 0, list)
		w.start()
		seen("listed by a new server", 1, list)
		seen("listed again", 0, list)
		seen("looked at behind the list", 1, one)
		if err := w.service.Delete(w.ctx, created.ID); err != nil {
			t.Error(err)
		}
		if views, err := w.service.Studies(w.ctx); err != nil || len(views) > 0 {
			t.Errorf("after it was deleted: %v, %v", views, err)
		}
	})(t)
}
