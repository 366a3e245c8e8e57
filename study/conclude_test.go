package study_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// fails ends the lease because the command failed, for the reason.
func (w *world) fails(lease *protocol.Lease, reason string) {
	w.t.Helper()
	request := protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.CommandFailed, Reason: reason}
	if _, err := w.service.Finish(w.ctx, lease.Trial, request); err != nil {
		w.t.Fatal(err)
	}
}

// plain is a study of so many trials, each of nine epochs and without a retry.
func (w *world) plain(stop string) protocol.StudyView {
	w.t.Helper()
	return w.create("epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 9, data_fraction: 1",
		"{trials: 27}", "{"+stop+"}\nretry: {failures: 0}")
}

// ended checks how a study is over, in its view, its log and after a restart.
func (w *world) ended(id string, want protocol.StudyStatus, reason string) {
	w.t.Helper()
	view := w.view(id)
	if view.Status != want || !strings.HasPrefix(view.Reason, reason) {
		w.t.Errorf("the study is %s: %s\nwant %s: %s", view.Status, view.Reason, want, reason)
	}
	events, err := w.store.Events(w.ctx, id, 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	last := events[len(events)-1]
	if last.Kind != journal.StatusChange || last.State != string(want) || last.Reason != view.Reason {
		w.t.Errorf("the log ends with %+v", last)
	}
	answer, err := w.service.Recommendation(w.ctx, id)
	if err != nil || answer.Best == nil && !strings.Contains(strings.Join(answer.Notes, "\n"), view.Reason) {
		w.t.Errorf("the recommendation is %+v, %v", answer, err)
	}
	if count := w.service.Census().Ended[want]; count != 1 {
		w.t.Errorf("%d studies are counted as %s", count, want)
	}
	w.start()
	if again := w.view(id); again.Status != want || again.Reason != view.Reason {
		w.t.Errorf("after a restart the study is %s: %s", again.Status, again.Reason)
	}
}

func TestAStudyInWhichEveryTrialFailedHasFailed(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.plain("trials: 3")
		w.register("worker-1")
		for _, reason := range []string{"exit code 1: no GPU\nTraceback", "exit code 2: no data", "exit code 1: no GPU\nanother end"} {
			w.fails(w.mustLease("worker-1"), reason)
		}
		if w.lease("worker-1") != nil {
			t.Error("there is another trial")
		}
		w.ended(created.ID, protocol.StudyFailed, "the search is finished, and no trial was measured: 3 of 3 failed; "+
			"the commonest reason (2 of 3): exit code 1: no GPU; see trial 2 and its log")
	})(t)
}

func TestAStudyWhoseTrialsWereAllLostHasFailed(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.plain("trials: 1")
		for _, worker := range []string{"worker-1", "worker-2", "worker-3"} {
			w.register(worker)
			w.mustLease(worker)
			w.sleep(75 * time.Second)
		}
		w.register("worker-4")
		w.lease("worker-4")
		w.ended(created.ID, protocol.StudyFailed, "the search is finished, and no trial was measured: 1 of 1 lost; the commonest reason (1 of 1): worker ")
	})(t)
}

func TestAStudyWithAResultIsCompletedWhateverFailed(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.plain("trials: 3")
		w.register("worker-1")
		w.fails(w.mustLease("worker-1"), "exit code 1")
		w.train(w.mustLease("worker-1"))
		w.fails(w.mustLease("worker-1"), "exit code 1")
		w.lease("worker-1")
		w.ended(created.ID, protocol.StudyCompleted, "the search is finished")
	})(t)
}

func TestAStudyOfNaNSaysSo(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("min: 1, max: 9", "min: 1, max: 1", "trials: 27", "trials: 2")
		w.register("worker-1")
		for range 2 {
			lease := w.mustLease("worker-1")
			if err := w.reportAll(lease, 1, map[string]trial.Float{"accuracy": trial.Float(math.NaN())}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
		w.ended(created.ID, protocol.StudyCompleted, "the search is finished, and no trial measured a number: 2 of 2 reported NaN")
	})(t)
}

// TestAStudyEndsWithItsLastTrial: nobody has to ask for another one to hear that there
// is none.
func TestAStudyEndsWithItsLastTrial(t *testing.T) {
	t.Run("measured", in(func(t *testing.T, w *world) {
		created := w.plain("trials: 2")
		w.register("worker-1", "worker-2")
		last := w.mustLease("worker-2")
		w.train(w.mustLease("worker-1"))
		if view := w.view(created.ID); view.Status != protocol.StudyRunning {
			t.Fatalf("with a trial out the study is %s", view.Status)
		}
		w.train(last)
		w.ended(created.ID, protocol.StudyCompleted, "the search is finished")
	}))
	t.Run("measured on a ladder", in(func(t *testing.T, w *world) {
		created := w.create("trials: 27", "trials: 2")
		w.register("worker-1")
		rungs := map[int]int{}
		for w.view(created.ID).Status == protocol.StudyRunning {
			lease := w.mustLease("worker-1")
			rungs[lease.Rung]++
			w.train(lease)
		}
		if rungs[2] != 1 {
			t.Errorf("%v trials were trained on the rungs, want one at the top", rungs)
		}
		w.ended(created.ID, protocol.StudyCompleted, "the search is finished")
	}))
	t.Run("failed", in(func(t *testing.T, w *world) {
		created := w.plain("trials: 1")
		w.register("worker-1")
		w.fails(w.mustLease("worker-1"), "exit code 1")
		w.ended(created.ID, protocol.StudyFailed, "the search is finished, and no trial was measured")
	}))
	t.Run("given up", in(func(t *testing.T, w *world) {
		created := w.plain("trials: 1")
		for _, worker := range []string{"worker-1", "worker-2", "worker-3"} {
			w.register(worker)
			w.mustLease(worker)
			w.sleep(75 * time.Second)
		}
		w.ended(created.ID, protocol.StudyFailed, "the search is finished, and no trial was measured")
	}))
	t.Run("stopped early", in(func(t *testing.T, w *world) {
		created := w.medianStudy()
		w.register("worker-1", "worker-2")
		good, bad := w.mustLease("worker-1"), w.mustLease("worker-2")
		w.train(good)
		w.value(bad, 1, -1)
		w.value(bad, 2, -1)
		w.ended(created.ID, protocol.StudyCompleted, "the search is finished")
	}))
	t.Run("the last point of a grid", in(func(t *testing.T, w *world) {
		created := w.create("epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 9, data_fraction: 1",
			"method: bohb", "method: grid, grid_points: 2")
		w.register("worker-1")
		w.train(w.mustLease("worker-1"))
		w.train(w.mustLease("worker-1"))
		w.ended(created.ID, protocol.StudyCompleted, "the search is finished")
	}))
	t.Run("the last repeat", in(func(t *testing.T, w *world) {
		created := w.create("epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 9, data_fraction: 1",
			"seed: 7", "seed: 7, repeats: {trials: 1, times: 2}", "trials: 27", "trials: 1")
		w.register("worker-1")
		w.train(w.mustLease("worker-1"))
		w.train(w.mustLease("worker-1"))
		w.ended(created.ID, protocol.StudyCompleted, "the search is finished")
	}))
	t.Run("but not before what was enqueued", in(func(t *testing.T, w *world) {
		created := w.create("epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 9, data_fraction: 1",
			"method: bohb", "method: grid, grid_points: 2")
		w.register("worker-1")
		w.train(w.mustLease("worker-1"))
		last := w.mustLease("worker-1")
		if _, err := w.enqueue(created.ID, 0.3); err != nil {
			t.Fatal(err)
		}
		w.train(last)
		if view := w.view(created.ID); view.Status != protocol.StudyRunning {
			t.Fatalf("with a configuration that waits the study is %s", view.Status)
		}
		w.train(w.mustLease("worker-1"))
		w.ended(created.ID, protocol.StudyCompleted, "the search is finished")
	}))
}

// TestATrialThatNobodyTriedIsNotPruned when the study ends: one that has trained is.
func TestATrialThatNobodyTriedIsNotPruned(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.plain("trials: 27, seconds: 30")
		w.register("worker-1", "worker-2", "worker-3")
		given, tried, held := w.mustLease("worker-1"), w.mustLease("worker-2"), w.mustLease("worker-3")
		if _, err := w.finish(given, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		w.mustReport(tried, 1)
		w.sleep(40 * time.Second)
		w.ended(created.ID, protocol.StudyCompleted, "its time of 30 s is up")
		for lease, want := range map[*protocol.Lease]trial.State{given: trial.Cancelled, tried: trial.Pruned, held: trial.Cancelled} {
			if one := w.trial(lease.Trial); one.State != want || want == trial.Cancelled && !strings.HasPrefix(one.Reason, "it was not tried before the study ended: its time") {
				t.Errorf("trial %d is %s: %s; want %s", one.Number, one.State, one.Reason, want)
			}
		}
	})(t)
}

// TestATrialThatFailsHigherUpLeavesItsResult: what it came to at the first rung counts.
func TestATrialThatFailsHigherUpLeavesItsResult(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("trials: 27}", "trials: 1}\nretry: {failures: 0}")
		w.register("worker-1")
		w.train(w.mustLease("worker-1"))
		w.fails(w.mustLease("worker-1"), "exit code 1")
		w.lease("worker-1")
		w.ended(created.ID, protocol.StudyCompleted, "the search is finished")
	})(t)
}

// TestAStudyThatOnlyStoppedTrialsEarlyHasNotFailed: its rule saw them, though none was
// trained to its end.
func TestAStudyThatOnlyStoppedTrialsEarlyHasNotFailed(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 9, data_fraction: 1",
			"seed: 7}", "seed: 7, early_stopping: {rule: median, min_trials: 1}}", "trials: 27}", "trials: 2}\nretry: {failures: 0}")
		w.register("worker-1", "worker-2")
		good, bad := w.mustLease("worker-1"), w.mustLease("worker-2")
		for epoch := 1; epoch <= 2; epoch++ {
			w.value(good, epoch, 0.8)
			w.value(bad, epoch, 0.1)
		}
		if w.trial(bad.Trial).State != trial.Pruned {
			t.Fatalf("the loser is %s", w.trial(bad.Trial).State)
		}
		w.fails(good, "exit code 1")
		w.lease("worker-1")
		w.ended(created.ID, protocol.StudyCompleted, "the search is finished")
	})(t)
}

func TestAStudyThatAUserStopsHasNotFailed(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.plain("trials: 3")
		w.register("worker-1")
		w.fails(w.mustLease("worker-1"), "exit code 1")
		if _, err := w.service.Stop(w.ctx, created.ID); err != nil {
			t.Fatal(err)
		}
		w.ended(created.ID, protocol.StudyStopped, "stopped by a user")
	})(t)
}

// TestAStudyThatRunsOutOfTimeOrBudgetWithNothingMeasured has failed if trials of it
// did; one that only had too little of it is completed, and says so.
func TestAStudyThatRunsOutOfTimeOrBudgetWithNothingMeasured(t *testing.T) {
	t.Run("time, after a failure", in(func(t *testing.T, w *world) {
		created := w.plain("trials: 27, seconds: 30")
		w.register("worker-1")
		w.fails(w.mustLease("worker-1"), "exit code 1")
		w.mustLease("worker-1") // and one that is not done in time
		w.sleep(40 * time.Second)
		w.ended(created.ID, protocol.StudyFailed, "its time of 30 s is up, and no trial was measured: 1 of 2 failed; the commonest reason (1 of 1): exit code 1; see trial 0 and its log")
	}))
	t.Run("training, after a failure", in(func(t *testing.T, w *world) {
		created := w.plain("trials: 27, training_seconds: 3")
		w.register("worker-1")
		w.fails(w.mustLease("worker-1"), "exit code 1")
		lease := w.mustLease("worker-1")
		for epoch := 1; w.mustReport(lease, epoch).Action == protocol.Continue; {
			epoch++
		}
		w.ended(created.ID, protocol.StudyFailed, "its budget of 3 seconds of training is spent, and no trial was measured: 1 of 2 failed; ")
	}))
	t.Run("time, without a failure", in(func(t *testing.T, w *world) {
		created := w.plain("trials: 27, seconds: 30")
		w.register("worker-1")
		w.mustLease("worker-1")
		w.sleep(40 * time.Second)
		w.ended(created.ID, protocol.StudyCompleted, "its time of 30 s is up, and no trial was measured")
	}))
}

// TestAStudyThatEndsAtStopFailuresSaysWhatMostFailedOf names the bound that ended it.
func TestAStudyThatEndsAtStopFailuresSaysWhatMostFailedOf(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.plain("trials: 27, failures: 2")
		w.register("worker-1")
		w.fails(w.mustLease("worker-1"), "exit code 1")
		w.fails(w.mustLease("worker-1"), "exit code 1")
		w.ended(created.ID, protocol.StudyFailed, "the first trials failed, as many as stop.failures allows (2), and no trial was measured: 2 of 2 failed; the commonest reason (2 of 2): exit code 1; ")
	})(t)
}

// TestAStudyEndsAfterFailuresInARow: behind something measured, too, and not where one
// succeeds in between or the bound is left out. A retry goes on, and counts anew.
func TestAStudyEndsAfterFailuresInARow(t *testing.T) {
	for stop, ends := range map[string]bool{"trials: 27, failures_in_a_row: 2": true, "trials: 27": false, "trials: 27, failures_in_a_row: 4": false} {
		in(func(t *testing.T, w *world) {
			created := w.plain(stop)
			w.register("worker-1")
			for _, fails := range []bool{false, true, false, true, true} {
				w.sleep(time.Second)
				if lease := w.mustLease("worker-1"); fails {
					w.fails(lease, "exit code 1: KeyError\nstandard error ended with: ...")
				} else {
					w.train(lease)
				}
			}
			if !ends {
				if view := w.view(created.ID); view.Status != protocol.StudyRunning {
					t.Errorf("%s: it is %s: %s", stop, view.Status, view.Reason)
				}
				return
			}
			w.ended(created.ID, protocol.StudyFailed, "2 trials in a row failed (stop.failures_in_a_row), the last one: exit code 1: KeyError; mend that, and 'tandem study retry example --failed' goes on")
			if answer, err := w.service.Recommendation(w.ctx, created.ID); err != nil || answer.Best == nil {
				t.Errorf("what was measured is not recommended: %+v, %v", answer, err)
			}
			w.register("worker-1")
			w.sleep(time.Second)
			w.extend(created.ID, protocol.ExtendRequest{RetryFailed: true})
			w.start()
			w.register("worker-1")
			for _, want := range []protocol.StudyStatus{protocol.StudyRunning, protocol.StudyFailed} {
				w.sleep(time.Second)
				w.fails(w.mustLease("worker-1"), "exit code 1: KeyError")
				if view := w.view(created.ID); view.Status != want {
					t.Errorf("after a retry it is %s: %s", view.Status, view.Reason)
				}
			}
			w.reportsReplayed(created.ID)
		})(t)
	}
}
