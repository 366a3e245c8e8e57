package study_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// populated makes a population of five on a ladder of 2, 4 and 6 epochs.
func (w *world) populated(trials string) protocol.StudyView {
	w.t.Helper()
	return w.create("policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "policy: epochs, growth: linear, epochs: {min: 2, max: 6}",
		"method: bohb", "method: random, promotion: population, population: 5", "stop: {trials: 27}", "stop: {"+trials+"}")
}

// artifact is what the trial had after the epoch.
func artifact(number, epoch int) string { return fmt.Sprintf("%032x%032x", number, epoch) }

// measure trains a lease to its budget with one value, and a checkpoint if
// there is to be one.
func (w *world) measure(lease *protocol.Lease, value float64, keep bool) {
	w.t.Helper()
	last := lease.Budget.Epochs
	w.value(lease, last, value)
	if keep {
		if err := w.service.CommitCheckpoint(w.ctx, lease.Trial, protocol.CheckpointCommit{
			LeaseEpoch: lease.LeaseEpoch, Epoch: last, Artifact: artifact(lease.Number, last), Bytes: 10,
		}); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
		w.t.Fatal(err)
	}
}

// firstRung measures all five at the first rung, trial 0 worst and 4 best.
func (w *world) firstRung(keep bool) (worst, best trial.ID) {
	w.t.Helper()
	for number := range 5 {
		lease := w.mustLease("worker-1")
		if lease.Number != number || lease.Rung != 0 {
			w.t.Fatalf("lease %d is of trial %d at rung %d", number, lease.Number, lease.Rung)
		}
		if number == 0 {
			worst = lease.Trial
		}
		best = lease.Trial
		w.measure(lease, 0.1+0.1*float64(number), keep)
	}
	return worst, best
}

func TestAChildContinuesItsParent(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.populated("trials: 20")
		w.register("worker-1")
		worst, best := w.firstRung(true)
		// The best go on first, and the parent has a newer checkpoint by then.
		for range 4 {
			lease := w.mustLease("worker-1")
			if lease.Rung != 1 || lease.FirstEpoch != 3 || lease.Trial == worst {
				t.Fatalf("trial %d goes on at rung %d, epoch %d", lease.Number, lease.Rung, lease.FirstEpoch)
			}
			w.measure(lease, 0.1*float64(lease.Number), true)
		}
		child := w.mustLease("worker-1")
		parent := w.trial(best)
		if child.Number != 5 || child.Rung != 1 || child.FirstEpoch != 3 || child.Checkpoint == nil || child.Checkpoint.Artifact != artifact(parent.Number, 2) || child.Checkpoint.Trial != parent.ID {
			t.Fatalf("the child is %+v with checkpoint %+v", child, child.Checkpoint)
		}
		stored, loser := w.trial(child.Trial), w.trial(worst)
		if stored.Parent == nil || *stored.Parent != 4 || stored.Inherited != 2 || stored.Origin != "population" || stored.Resumes != 1 || stored.Epochs != 0 {
			t.Errorf("the child is stored as %+v", stored)
		}
		if !strings.Contains(stored.Reason, "continues trial 4; resumes at epoch 3") {
			t.Errorf("the reason is %q", stored.Reason)
		}
		if loser.State != trial.Pruned || loser.Finished == nil || !strings.Contains(loser.Reason, "beaten at rung 0: trial 5 takes its place, which continues trial 4") {
			t.Errorf("the loser is %s: %s", loser.State, loser.Reason)
		}
		theirs, _ := parent.Configuration["x"].Number()
		if x, _ := child.Params["x"].Number(); x == theirs {
			t.Errorf("the child trains with its parent's x = %v", x)
		}
		if parent.Checkpoint.Epoch != 4 {
			t.Errorf("the parent's checkpoint is of epoch %d", parent.Checkpoint.Epoch)
		}
		// What the parent trained is not the child's to train, and what others
		// may continue from is not garbage.
		w.value(child, 2, 0.9)
		if again := w.trial(child.Trial); again.Epochs != 0 || again.State != trial.Running {
			t.Errorf("after a report of its parent's epoch the child is %s with %d epochs", again.State, again.Epochs)
		}
		if err := w.checkpoint(child, 3); err == nil {
			t.Error("a checkpoint of an epoch that nobody trained was taken")
		}
		w.kept(artifact(4, 2), true)
		w.kept(artifact(4, 4), true)
		w.kept(artifact(3, 2), true) // of nobody's latest
		w.measure(child, 0.9, true)
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			w.measure(lease, 0.1*float64(lease.Number), true)
		}
		view := w.view(created.ID)
		if view.Status != protocol.StudyCompleted || view.Progress.Trials[trial.Completed] != 5 || view.Progress.Created != 7 || view.Progress.Trials[trial.Pruned] != 2 {
			t.Errorf("the study is %s with %v", view.Status, view.Progress.Trials)
		}
		w.kept(artifact(4, 2), false)
		w.kept(artifact(3, 2), false)
		w.kept(artifact(4, 6), true)
		w.reportsReplayed(created.ID)
	})(t)
}

// kept checks whether an artifact counts as used.
func (w *world) kept(artifact string, want bool) {
	w.t.Helper()
	used, err := w.service.Referenced(w.ctx)
	if err != nil || used[artifact] != want {
		w.t.Errorf("artifact %s is kept: %v (%v), want %v", artifact, used[artifact], err, want)
	}
}

func TestAChildWithoutACheckpointStartsFromScratch(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.populated("trials: 20")
		w.register("worker-1")
		w.firstRung(false)
		for range 4 {
			w.measure(w.mustLease("worker-1"), 0.5, false)
		}
		child := w.mustLease("worker-1")
		stored := w.trial(child.Trial)
		if child.Number != 5 || child.FirstEpoch != 1 || child.Checkpoint != nil || stored.Inherited != 0 || stored.Parent == nil {
			t.Errorf("the child is %+v", child)
		}
		if !strings.Contains(stored.Reason, "starts from scratch, as trial 4 has no checkpoint of rung 0 to continue from") {
			t.Errorf("the reason is %q", stored.Reason)
		}
	})(t)
}

func TestLosersGoUpWhenTheTrialsAreUsedUp(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.populated("trials: 5")
		w.register("worker-1")
		worst, _ := w.firstRung(true)
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			w.measure(lease, 0.1*float64(lease.Number), true)
		}
		view := w.view(created.ID)
		if loser := w.trial(worst); loser.State != trial.Completed || loser.Promotions != 2 || view.Progress.Created != 5 {
			t.Errorf("of %d trials the worst is %s after %d promotions", view.Progress.Created, loser.State, loser.Promotions)
		}
	})(t)
}

func TestAFailedMemberIsReplaced(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.populated("trials: 20}\nretry: {failures: 0")
		w.register("worker-1")
		for number := range 5 {
			lease := w.mustLease("worker-1")
			if number == 2 {
				if _, err := w.finish(lease, protocol.CommandFailed); err != nil {
					t.Fatal(err)
				}
				continue
			}
			w.measure(lease, 0.5, true)
		}
		for range 4 {
			if lease := w.mustLease("worker-1"); lease.Number > 4 || lease.Number == 2 {
				t.Fatalf("trial %d goes on", lease.Number)
			}
		}
		child := w.mustLease("worker-1")
		if failed := w.trial(trialOf(child, 2)); child.Number != 5 || failed.State != trial.Failed {
			t.Errorf("trial %d was created, and the failed one is %s", child.Number, failed.State)
		}
		if w.lease("worker-1") != nil {
			t.Error("there is more to do while all are out")
		}
	})(t)
}

// trialOf is the id of another trial of the lease's study.
func trialOf(lease *protocol.Lease, number int) trial.ID {
	return trial.ID(fmt.Sprintf("%s-%d", lease.StudyID, number))
}
