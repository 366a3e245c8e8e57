package study_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

// value reports an epoch with a value of its own.
func (w *world) value(lease *protocol.Lease, epoch int, value float64) protocol.Directive {
	w.t.Helper()
	directive, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Metrics: map[string]trial.Float{"accuracy": trial.Float(value)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return directive
}

// medianStudy trains nine epochs and stops what one other trial beats.
func (w *world) medianStudy() protocol.StudyView {
	return w.create("epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 9, data_fraction: 1",
		"seed: 7}", "seed: 7, early_stopping: {rule: median, min_trials: 1}}", "trials: 27", "trials: 2")
}

func TestALoserIsStoppedByTheAnswerToItsReport(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.medianStudy()
		w.register("worker-1", "worker-2", "worker-3")
		good, bad := w.mustLease("worker-1"), w.mustLease("worker-2")
		for epoch := 1; epoch <= 2; epoch++ {
			if got := w.value(good, epoch, 0.8); got.Action != protocol.Continue {
				t.Fatalf("the first trial was answered %+v", got)
			}
		}
		if got := w.value(bad, 1, 0.1); got.Action != protocol.Continue {
			t.Fatalf("within its grace it was answered %+v", got)
		}
		if err := w.checkpoint(bad, 1); err != nil {
			t.Fatal(err)
		}
		stop := w.value(bad, 2, 0.2)
		const why = "stopped early: after epoch 2 at rung 0 1 of 1 other trials had a better value"
		if stop.Action != protocol.Stop || !strings.HasPrefix(stop.Reason, why) {
			t.Fatalf("the loser was answered %+v", stop)
		}
		stored := w.trial(bad.Trial)
		if stored.State != trial.Pruned || stored.Epochs != 2 || stored.Finished == nil || stored.Reason != stop.Reason {
			t.Errorf("the loser is %s after %d epochs: %s", stored.State, stored.Epochs, stored.Reason)
		}
		// Whatever its worker still sends changes nothing.
		if again := w.value(bad, 2, 0.9); again.Reason != stop.Reason {
			t.Errorf("the report sent twice was answered %+v", again)
		}
		if late := w.value(bad, 3, 0.9); late.Reason != stop.Reason {
			t.Errorf("a late report was answered %+v", late)
		}
		if err := w.checkpoint(bad, 2); !problem.Is(err, problem.LeaseLost) {
			t.Errorf("a late checkpoint was answered %v", err)
		}
		beat, err := w.service.Heartbeat(w.ctx, "worker-2", protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: bad.Trial, LeaseEpoch: bad.LeaseEpoch}}})
		if err != nil || beat.Directives[bad.Trial].Reason != stop.Reason {
			t.Errorf("a late heartbeat was answered %+v, %v", beat, err)
		}
		if reply, err := w.finish(bad, protocol.Interrupted); err != nil || reply.State != trial.Pruned {
			t.Errorf("the end was answered %+v, %v", reply, err)
		}
		if after := w.trial(bad.Trial); after.Epochs != 2 || after.Losses != 0 || after.Checkpoint == nil || after.Checkpoint.Epoch != 1 {
			t.Errorf("the loser became %+v", after)
		}
		w.sleep(2 * time.Minute / 3) // the leases of two workers are still alive, the loser's is gone
		for _, one := range w.service.Workers(w.ctx) {
			if one.ID == "worker-2" && len(one.Trials) > 0 {
				t.Errorf("worker-2 still holds %v", one.Trials)
			}
		}
		for epoch := 3; epoch <= 9; epoch++ {
			w.value(good, epoch, 0.8)
		}
		if _, err := w.finish(good, protocol.BudgetReached); err != nil {
			t.Fatal(err)
		}
		if w.lease("worker-3") != nil {
			t.Error("there was a third trial")
		}
		view := w.view(created.ID)
		if view.Status != protocol.StudyCompleted || view.Progress.Trials[trial.Pruned] != 1 || view.Progress.Best.Number != good.Number {
			t.Errorf("the study is %s with %v", view.Status, view.Progress.Trials)
		}
		w.reportsReplayed(created.ID)
	})(t)
}

// reportsReplayed puts the study's log to a new search, and counts the reports in it.
func (w *world) reportsReplayed(id string) (reported int) {
	w.t.Helper()
	stored, err := w.store.Study(w.ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	events, err := w.store.Events(w.ctx, id, 0, 1<<30)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := session.Replay(stored.Definition, events); err != nil {
		w.t.Error(err)
	}
	for _, event := range events {
		if event.Kind == journal.Searched && strings.Contains(string(event.Data), `"kind":"reported"`) {
			reported++
		}
	}
	return reported
}

func TestOnlyEarlyStoppingLogsReportsForTheSearch(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.medianStudy()
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		w.value(lease, 1, 0.5)
		w.value(lease, 3, 0.5) // out of order
		w.value(lease, 2, 0.5)
		w.value(lease, 2, 0.6) // twice
		w.start()              // a restarted server goes on from the log
		w.register("worker-1")
		if _, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{ // without the objective
			LeaseEpoch: lease.LeaseEpoch, Epoch: 4, Metrics: map[string]trial.Float{"loss": 1},
		}); err != nil {
			t.Fatal(err)
		}
		w.value(lease, 9, 0.5)
		w.value(lease, 8, 0.5) // behind the result
		if n := w.reportsReplayed(created.ID); n != 3 {
			t.Errorf("the search was told %d reports, want those of epochs 1, 3 and 2", n)
		}
		plain := w.create("name: example", "name: plain")
		other := w.mustLease("worker-1")
		for other.StudyID != plain.ID {
			if _, err := w.finish(other, protocol.Interrupted); err != nil {
				t.Fatal(err)
			}
			if _, err := w.service.Stop(w.ctx, created.ID); err != nil {
				t.Fatal(err)
			}
			other = w.mustLease("worker-1")
		}
		w.train(other)
		if n := w.reportsReplayed(plain.ID); n != 0 {
			t.Errorf("a study without early stopping logs %d reports for its search", n)
		}
	})(t)
}

func TestAStopWakesWhoWaits(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.medianStudy()
		w.register("worker-1", "worker-2", "worker-3")
		good, bad := w.mustLease("worker-1"), w.mustLease("worker-2")
		if w.lease("worker-3") != nil {
			t.Fatal("there is a third trial")
		}
		w.value(good, 2, 0.8)
		w.value(bad, 2, 0.2)
		w.value(good, 9, 0.8)
		if _, err := w.finish(good, protocol.BudgetReached); err != nil {
			t.Fatal(err)
		}
		reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-3", Study: "example"})
		if err != nil || !reply.StudyFinished {
			t.Errorf("after the last trial was stopped the answer is %+v, %v", reply, err)
		}
	})(t)
}

// A write that is refused must not leave a trial stopped in memory only.
func TestARefusedStopStopsNothing(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.medianStudy()
		w.register("worker-1", "worker-2")
		good, bad := w.mustLease("worker-1"), w.mustLease("worker-2")
		w.value(good, 2, 0.8)
		broken := &refusing{Store: w.store}
		w.store = broken
		w.start()
		w.register("worker-1", "worker-2")
		broken.refuse = true
		if _, err := w.report(bad, 2); err == nil {
			t.Fatal("the write was not refused")
		}
		broken.refuse = false
		if stored := w.trial(bad.Trial); stored.State != trial.Leased || stored.Epochs != 0 {
			t.Errorf("the trial is %s with %d epochs", stored.State, stored.Epochs)
		}
		if got := w.value(bad, 2, 0.2); got.Action != protocol.Stop {
			t.Errorf("sent again it was answered %+v", got)
		}
		w.reportsReplayed(created.ID)
	})(t)
}

// refusing is a store that can be told to refuse every change.
type refusing struct {
	study.Store
	refuse bool
}

func (r *refusing) Submit(ctx context.Context, change journal.Change) *journal.Outcome {
	if r.refuse {
		refused := journal.NewOutcome()
		refused.Settle(errors.New("the disk is full"))
		return refused
	}
	return r.Store.Submit(ctx, change)
}
