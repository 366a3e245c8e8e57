package study_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// in runs a test in a bubble, where time is simulated.
func in(test func(t *testing.T, w *world)) func(*testing.T) {
	return func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, newWorld(t, 1)) })
	}
}

func TestAStudyRunsToItsEnd(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		w.register("worker-1")
		epochs, promoted := 0, 0
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			if lease.Checkpoint != nil {
				promoted++
				if lease.FirstEpoch != lease.Checkpoint.Epoch+1 {
					t.Errorf("trial %d goes on at epoch %d behind a checkpoint of epoch %d", lease.Number, lease.FirstEpoch, lease.Checkpoint.Epoch)
				}
			}
			epochs += w.train(lease)
		}
		view := w.view(created.ID)
		if view.Status != protocol.StudyCompleted {
			t.Fatalf("the study is %s (%s), want completed", view.Status, view.Reason)
		}
		p := view.Progress
		if p.Created != 27 || p.Epochs != epochs || p.Promotions != promoted || p.Resumes != promoted || promoted == 0 {
			t.Errorf("created %d, epochs %d (trained %d), promotions %d and resumes %d (seen %d)", p.Created, p.Epochs, epochs, p.Promotions, p.Resumes, promoted)
		}
		if p.Best == nil || p.Best.Rung != 2 || math.Abs(float64(p.Best.Value)-0.9) > 0.05 {
			t.Errorf("the best is %+v, want about 0.9 at rung 2", p.Best)
		}
		if want := float64(epochs) * 3; float64(p.Energy.Joules) != want || !p.Energy.Estimated() {
			t.Errorf("energy is %+v, want %g joules, estimated", p.Energy, want)
		}
		if p.Trials[trial.Paused]+p.Trials[trial.Queued]+p.Trials[trial.Leased] > 0 {
			t.Errorf("trials are left over: %v", p.Trials)
		}
	})(t)
}

func TestPauseAndResumeTrainsEveryEpochOnce(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("{min: 1, max: 9}", "{min: 1, max: 3}", "trials: 27", "trials: 9")
		w.register("worker-1", "worker-2")
		trained := map[trial.ID][]int{}
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-2") {
			for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
				trained[lease.Trial] = append(trained[lease.Trial], epoch)
			}
			w.train(lease)
		}
		promoted := 0
		for id, epochs := range trained {
			stored := w.trial(id)
			if stored.Promotions == 0 {
				continue
			}
			promoted++
			if !slices.Equal(epochs, []int{1, 2, 3}) || stored.Epochs != 3 || stored.State != trial.Completed || stored.Resumes != 1 {
				t.Errorf("trial %d trained epochs %v, counts %d, and is %s; want 1, 2, 3 once each", stored.Number, epochs, stored.Epochs, stored.State)
			}
		}
		if promoted == 0 {
			t.Error("no trial was promoted")
		}
	})(t)
}

func TestALostTrialComesBackFromItsCheckpoint(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9")
		w.register("worker-1", "worker-2")
		old := w.mustLease("worker-1")
		for epoch := 1; epoch <= 5; epoch++ {
			w.mustReport(old, epoch)
			if epoch == 3 {
				if err := w.checkpoint(old, 3); err != nil {
					t.Fatal(err)
				}
			}
		}
		before := time.Now()
		for w.trial(old.Trial).State != trial.Queued {
			if time.Since(before) > 75*time.Second {
				t.Fatalf("the trial is still %s after 75 s of silence", w.trial(old.Trial).State)
			}
			w.sleep(time.Second)
		}
		if silent := time.Since(before); silent < 60*time.Second {
			t.Errorf("the trial was taken back after %v, before its lease was over", silent)
		}
		fresh := w.mustLease("worker-2")
		if fresh.Trial != old.Trial || fresh.FirstEpoch != 4 || fresh.LeaseEpoch != old.LeaseEpoch+1 {
			t.Fatalf("the next lease is %+v, want the lost trial from epoch 4", fresh)
		}
		if stored := w.trial(old.Trial); stored.Failures != 0 || stored.Losses != 1 {
			t.Errorf("failures %d, losses %d: a loss must not cost a retry", stored.Failures, stored.Losses)
		}
		// The old worker was only slow: nothing it writes counts.
		if _, err := w.report(old, 6); !problem.Is(err, problem.LeaseLost) {
			t.Errorf("a late report was answered %v", err)
		}
		if err := w.checkpoint(old, 5); !problem.Is(err, problem.LeaseLost) {
			t.Errorf("a late checkpoint was answered %v", err)
		}
		if _, err := w.finish(old, protocol.BudgetReached); !problem.Is(err, problem.LeaseLost) {
			t.Errorf("a late finish was answered %v", err)
		}
		w.mustReport(fresh, 4) // trained again, since the checkpoint was older
		if stored := w.trial(old.Trial); stored.Epochs != 5 || stored.State != trial.Running {
			t.Errorf("after epoch 4 was trained again the trial is %s with %d epochs, want running with 5", stored.State, stored.Epochs)
		}
		w.train(fresh)
		if stored := w.trial(old.Trial); stored.Epochs != 9 || stored.State != trial.Completed {
			t.Errorf("the trial is %s with %d epochs, want completed with 9", stored.State, stored.Epochs)
		}
	})(t)
}

func TestFailuresUseUpRetriesAndThenTheTrial(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("stop: {trials: 27}", "stop: {trials: 27, failures: 3}\nretry: {failures: 1}")
		w.register("worker-1")
		for i := range 6 {
			lease := w.mustLease("worker-1")
			if lease.Number != i/2 {
				t.Fatalf("lease %d is of trial %d, want a retry of each", i, lease.Number)
			}
			if _, err := w.finish(lease, protocol.CommandFailed); err != nil {
				t.Fatal(err)
			}
		}
		view := w.view(created.ID)
		if view.Status != protocol.StudyFailed || view.Progress.Trials[trial.Failed] != 3 {
			t.Errorf("the study is %s with %v", view.Status, view.Progress.Trials)
		}
		if w.lease("worker-1") != nil {
			t.Error("a failed study still gives leases")
		}
	})(t)
}

func TestACommandThatEndsEarlyHasFailed(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9")
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		w.mustReport(lease, 1)
		for range 2 { // the second one is the default's only retry
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
			if stored := w.trial(lease.Trial); stored.State == trial.Failed {
				if !strings.Contains(stored.Reason, "after epoch 1 of 9") {
					t.Errorf("the reason is %q", stored.Reason)
				}
				return
			}
			lease = w.mustLease("worker-1")
			w.mustReport(lease, 1)
		}
		t.Errorf("the trial is %s", w.trial(lease.Trial).State)
	})(t)
}

func TestADrainedTrialCostsNothing(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9")
		w.register("worker-1", "worker-2")
		lease := w.mustLease("worker-1")
		w.mustReport(lease, 1)
		w.mustReport(lease, 2)
		if err := w.checkpoint(lease, 2); err != nil {
			t.Fatal(err)
		}
		reply, err := w.finish(lease, protocol.Interrupted)
		if err != nil || reply.State != trial.Queued {
			t.Fatalf("giving back was answered %+v, %v", reply, err)
		}
		next := w.mustLease("worker-2")
		if next.Trial != lease.Trial || next.FirstEpoch != 3 {
			t.Errorf("the next lease is trial %d from epoch %d", next.Number, next.FirstEpoch)
		}
		if stored := w.trial(lease.Trial); stored.Failures+stored.Losses != 0 {
			t.Errorf("giving back cost %d failures, %d losses", stored.Failures, stored.Losses)
		}
	})(t)
}

func TestPausedStudyHandsOutNothing(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9")
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		w.mustReport(lease, 1)
		if _, err := w.service.Pause(w.ctx, created.Name); err != nil {
			t.Fatal(err)
		}
		if got := w.mustReport(lease, 2); got.Action != protocol.Pause {
			t.Errorf("a report under a paused study was answered %q", got.Action)
		}
		if err := w.checkpoint(lease, 2); err != nil {
			t.Fatal(err)
		}
		if _, err := w.finish(lease, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if w.lease("worker-1") != nil {
			t.Error("a paused study gave a lease")
		}
		elapsed := w.view(created.ID).Progress.ElapsedSeconds
		w.sleep(time.Hour)
		if later := w.view(created.ID).Progress.ElapsedSeconds; later != elapsed {
			t.Errorf("a paused study's time went from %g to %g s", elapsed, later)
		}
		if _, err := w.service.Resume(w.ctx, created.Name); err != nil {
			t.Fatal(err)
		}
		if next := w.mustLease("worker-1"); next.Trial != lease.Trial || next.FirstEpoch != 3 {
			t.Errorf("it goes on with trial %d at epoch %d", next.Number, next.FirstEpoch)
		}
	})(t)
}

func TestStopTellsRunningTrials(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9")
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		w.mustReport(lease, 1)
		if _, err := w.service.Stop(w.ctx, created.ID); err != nil {
			t.Fatal(err)
		}
		if got := w.mustReport(lease, 2); got.Action != protocol.Stop {
			t.Errorf("a report under a stopped study was answered %q", got.Action)
		}
		reply, err := w.finish(lease, protocol.Interrupted)
		if err != nil || reply.State != trial.Cancelled {
			t.Errorf("the end was answered %+v, %v", reply, err)
		}
		if stored := w.trial(lease.Trial); stored.Epochs != 1 {
			t.Errorf("%d epochs count, want the one before the stop", stored.Epochs)
		}
		if _, err := w.service.Stop(w.ctx, created.ID); !problem.Is(err, problem.Conflict) {
			t.Errorf("stopping twice was answered %v", err)
		}
	})(t)
}

func TestTargetEndsTheStudy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("direction: maximize", "direction: maximize, target: 0.3", "trials: 27", "trials: 27, target_reached: true")
		w.register("worker-1")
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			w.train(lease)
		}
		view := w.view(created.ID)
		if view.Status != protocol.StudyCompleted || !strings.Contains(view.Reason, "target") || view.Progress.Created == 27 {
			t.Errorf("the study is %s after %d trials: %s", view.Status, view.Progress.Created, view.Reason)
		}
	})(t)
}

// Every epoch of the world takes 2 s and 3 J; the ladder's first rung has 1
// epoch of a ninth of the data.
func TestASpentBudgetEndsTheStudy(t *testing.T) {
	for name, c := range map[string]struct {
		bound  string
		reason string
		over   func(protocol.Progress) bool // by less than one epoch
	}{
		"data passes": {"data_passes: 5", "5 passes over the data", func(p protocol.Progress) bool {
			return p.DataPasses > 5-1e-9 && p.DataPasses < 6
		}},
		"seconds of training": {"training_seconds: 41", "41 seconds of training", func(p protocol.Progress) bool {
			return p.TrialSeconds == 42
		}},
		"joules": {"joules: 60", "60 joules (an estimate)", func(p protocol.Progress) bool { return p.Energy.Joules == 60 }},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			created := w.create("trials: 27", "trials: 1000, "+c.bound)
			w.register("worker-1", "worker-2")
			w.train(w.mustLease("worker-1"))
			running := w.mustLease("worker-2")
			w.start() // what was spent is known after a restart
			w.register("worker-1", "worker-2")
			for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
				for epoch := lease.FirstEpoch; w.mustReport(lease, epoch).Action == protocol.Continue; {
					epoch++
				}
				if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
					t.Fatal(err)
				}
			}
			view := w.view(created.ID)
			if view.Status != protocol.StudyCompleted || !strings.Contains(view.Reason, c.reason) || !c.over(view.Progress) {
				t.Errorf("the study is %s (%s) after %+v", view.Status, view.Reason, view.Progress)
			}
			directive, err := w.report(running, 1)
			if err != nil || directive.Action != protocol.Stop {
				t.Errorf("a trial that still trains is told %+v, %v", directive, err)
			}
		}))
	}
}

func TestNaNIsNeverTheBest(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("min: 1, max: 9", "min: 1, max: 1", "trials: 27", "trials: 3")
		w.register("worker-1")
		for _, value := range []trial.Float{trial.Float(math.NaN()), 0.2, trial.Float(math.NaN())} {
			lease := w.mustLease("worker-1")
			_, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{
				LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Metrics: map[string]trial.Float{"accuracy": value},
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
		if best := w.view(created.ID).Progress.Best; best == nil || best.Number != 1 {
			t.Errorf("the best is %+v, want trial 1", best)
		}
		page, err := w.service.Trials(w.ctx, created.ID, protocol.TrialQuery{})
		if err != nil || len(page.Trials) != 3 || page.Trials[0].Number != 1 || !page.Trials[2].Results[0].Values[0].IsNaN() {
			t.Errorf("the leaderboard is %+v, %v", page.Trials, err)
		}
	})(t)
}

func TestWrongReportsAreRefused(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		for name, report := range map[string]protocol.Report{
			"beyond the budget": {Epoch: 2, Metrics: map[string]trial.Float{"accuracy": 1}},
			"no objective":      {Epoch: 1, Metrics: map[string]trial.Float{"loss": 1}},
			"negative seconds":  {Epoch: 1, Metrics: map[string]trial.Float{"accuracy": 1}, Seconds: -1},
			"NaN joules":        {Epoch: 1, Metrics: map[string]trial.Float{"accuracy": 1}, Energy: &trial.Energy{Joules: trial.Float(math.NaN()), Method: "rapl"}},
			"a NaN in a profile": {Epoch: 1, Metrics: map[string]trial.Float{"accuracy": 1},
				Profile: &trial.Profile{Events: map[string]trial.Float{"cpu-cycles": trial.Float(math.NaN())}}},
		} {
			report.LeaseEpoch = lease.LeaseEpoch
			if _, err := w.service.Report(w.ctx, lease.Trial, report); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s: answered %v", name, err)
			}
		}
		if stored := w.trial(lease.Trial); stored.Epochs != 0 || stored.State != trial.Leased {
			t.Errorf("refused reports left %d epochs, state %s", stored.Epochs, stored.State)
		}
		if err := w.checkpoint(lease, 1); !problem.Is(err, problem.Invalid) {
			t.Errorf("a checkpoint of an epoch that was not reported was answered %v", err)
		}
	})(t)
}

func TestProfilesComeBackWithTheirReports(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		sent := trial.Profile{Level: "user mode only", Events: map[string]trial.Float{"page-faults": 12.5}, Host: map[string]trial.Float{"tree.threads": 3}}
		if _, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{
			LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Metrics: map[string]trial.Float{"accuracy": 1}, Profile: &sent,
		}); err != nil {
			t.Fatal(err)
		}
		detail, err := w.service.TrialDetail(w.ctx, lease.StudyID, lease.Number)
		if err != nil {
			t.Fatal(err)
		}
		if len(detail.Reports) != 1 || detail.Reports[0].Profile == nil || !reflect.DeepEqual(*detail.Reports[0].Profile, sent) {
			t.Errorf("the reports are %+v", detail.Reports)
		}
		for _, event := range detail.Events {
			if text, err := json.Marshal(event); err != nil || strings.Contains(string(text), "page-faults") {
				t.Errorf("the log carries the profile: %s, %v", text, err)
			}
		}
	})(t)
}

func TestEpochsBehindTheCheckpointNeverCountAgain(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("trials: 27", "trials: 9", "method: bohb", "method: bohb, brackets: 1")
		w.register("worker-1")
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			if lease.Checkpoint == nil {
				w.train(lease)
				continue
			}
			before := w.trial(lease.Trial).Epochs
			w.mustReport(lease, 1) // a script that starts from the beginning
			if after := w.trial(lease.Trial).Epochs; after != before {
				t.Errorf("epoch 1 was counted again: %d, then %d epochs", before, after)
			}
			return
		}
		t.Error("no trial was promoted")
	})(t)
}

func TestAResultOutlivesItsWorker(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		w.mustReport(lease, 1) // the last of its budget, and then the worker dies
		w.sleep(75 * time.Second)
		stored := w.trial(lease.Trial)
		if stored.State != trial.Paused || stored.Losses != 0 || !stored.MeasuredAt(0) {
			t.Errorf("the trial is %s with %d losses, want paused with its result", stored.State, stored.Losses)
		}
	})(t)
}

func TestATrialThatKillsItsWorkersIsGivenUp(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9")
		var first trial.ID
		for _, worker := range []string{"worker-1", "worker-2", "worker-3"} {
			w.register(worker)
			lease := w.mustLease(worker)
			if first == "" {
				first = lease.Trial
			}
			if lease.Trial != first {
				t.Fatalf("%s got another trial", worker)
			}
			w.sleep(75 * time.Second)
		}
		if stored := w.trial(first); stored.State != trial.Lost || stored.Failures != 0 {
			t.Errorf("after three vanished workers the trial is %s with %d failures, want lost with none", stored.State, stored.Failures)
		}
	})(t)
}
