package study_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

const multiBudget = "policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}, eta: 3"

// spend reports epochs until the server says that the budget is spent, takes a
// checkpoint and ends; it says which epoch was the last.
func (w *world) spend(lease *protocol.Lease) int {
	w.t.Helper()
	for epoch := lease.FirstEpoch; ; epoch++ {
		switch directive := w.mustReport(lease, epoch); directive.Action {
		case protocol.Continue:
			continue
		case protocol.Finish:
			if err := w.checkpoint(lease, epoch); err != nil {
				w.t.Fatal(err)
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				w.t.Fatal(err)
			}
			return epoch
		default:
			w.t.Fatalf("epoch %d was answered %+v", epoch, directive)
		}
	}
}

// Every epoch of the world takes 2 seconds and 3 joules.
func TestMeasuredBudgetsEndWithTheEpochThatSpendsThem(t *testing.T) {
	for _, c := range []struct {
		budget string
		ends   []int // the last epoch of each rung
		words  string
	}{
		{"policy: seconds, seconds: {min: 3, max: 27}, eta: 3", []int{2, 5, 14}, "s of training"},
		{"policy: seconds, seconds: {min: 4, max: 36}, eta: 3", []int{2, 6, 18}, "s of training"},
		{"joules: {min: 5, max: 45}, eta: 3", []int{2, 5, 15}, "J (an estimate)"},
		{"seconds: {min: 3, max: 27}, epochs: 10, eta: 3", []int{2, 5, 10}, "s of training"},
	} {
		t.Run(c.budget, in(func(t *testing.T, w *world) {
			created := w.create(multiBudget, c.budget)
			w.register("worker-1")
			for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
				if last := w.spend(lease); last != c.ends[lease.Rung] {
					t.Fatalf("rung %d ended with epoch %d, want %d", lease.Rung, last, c.ends[lease.Rung])
				}
			}
			view, err := w.service.Study(w.ctx, created.ID)
			if err != nil || view.Status != protocol.StudyCompleted || view.Progress.Best.Rung != 2 {
				t.Fatalf("%v, %+v", err, view.Progress)
			}
			winner := w.trial(view.Progress.Best.Trial)
			if result := winner.Results[len(winner.Results)-1]; result.Epoch != c.ends[2] || !strings.Contains(winner.Reason, c.words) {
				t.Errorf("%+v, %s", result, winner.Reason)
			}
			if float64(winner.Seconds) != 2*float64(c.ends[2]) {
				t.Errorf("the winner trained for %v s in %d epochs", winner.Seconds, winner.Epochs)
			}
		}))
	}
}

func TestARungThatIsSpentAlreadyTakesNoTraining(t *testing.T) {
	for _, budget := range []string{
		"seconds: {min: 0.2, max: 1.8}, eta: 3",             // the first epoch is longer than all of it
		"seconds: {min: 100, max: 900}, epochs: 3, eta: 3",  // all epochs are shorter than the least of it
		"joules: {min: 0.01, max: 2.99}, epochs: 4, eta: 3", // five rungs in one epoch
	} {
		t.Run(budget, in(func(t *testing.T, w *world) {
			created := w.create(multiBudget, budget)
			w.register("worker-1")
			leases := 0
			for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
				leases++
				w.spend(lease)
			}
			view, err := w.service.Study(w.ctx, created.ID)
			if err != nil || view.Status != protocol.StudyCompleted || leases != 27 {
				t.Fatalf("%v: %s after %d leases", err, view.Status, leases)
			}
			if p := view.Progress; p.Promotions < 5 || p.Resumes != 0 || p.Trials[trial.Completed] < 1 {
				t.Errorf("%+v", p)
			}
			// The log replays, also where one call decided several things.
			events, err := w.store.Events(w.ctx, created.ID, 0, 5000)
			if err != nil {
				t.Fatal(err)
			}
			if decisions, err := session.Replay(view.Definition, events); err != nil || decisions < 60 {
				t.Errorf("%d decisions, and then: %v", decisions, err)
			}
		}))
	}
}

func TestALostEpochCountsOnceInAMeasuredBudget(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(multiBudget, "seconds: {min: 5, max: 45}, eta: 3", "trials: 27", "trials: 1")
		w.register("worker-1", "worker-2")
		lost := w.mustLease("worker-1")
		w.mustReport(lost, 1)
		w.mustReport(lost, 2) // 4 s, and then the worker vanishes
		w.sleep(62 * time.Second)
		lease := w.mustLease("worker-2")
		if lease.Trial != lost.Trial || lease.FirstEpoch != 1 {
			t.Fatalf("%+v", lease)
		}
		for epoch := 1; epoch <= 2; epoch++ {
			if directive := w.mustReport(lease, epoch); directive.Action != protocol.Continue {
				t.Fatalf("epoch %d, trained again, was answered %+v", epoch, directive)
			}
		}
		if directive := w.mustReport(lease, 3); directive.Action != protocol.Finish {
			t.Fatalf("6 of 5 s were answered %+v", directive)
		}
		// The script goes on before it hears of it: nothing of that counts.
		if directive := w.mustReport(lease, 4); directive.Action != protocol.Finish {
			t.Errorf("one epoch too many was answered %+v", directive)
		}
		if stored := w.trial(lease.Trial); stored.Seconds != 6 || stored.Epochs != 3 || len(stored.Results) != 1 {
			t.Errorf("%+v", stored)
		}
	})(t)
}

func TestReportsOfMeasuredBudgetsMustHaveWhatIsMeasured(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("name: example", "name: timed", multiBudget, "seconds: 9")
		w.create("name: example", "name: metered", multiBudget, "joules: 9")
		w.register("worker-1")
		for _, c := range []struct{ study, lacks string }{{"timed", "seconds"}, {"metered", "energy"}} {
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-1", Study: c.study})
			if err != nil {
				t.Fatal(err)
			}
			lease := reply.Lease
			_, err = w.service.Report(w.ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Metrics: map[string]trial.Float{"loss": 1}})
			for _, path := range []string{c.lacks, "metrics.accuracy"} { // any report may be the last
				if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: %v does not name %s", c.study, err, path)
				}
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
			if reason := w.trial(lease.Trial).Reason; !strings.Contains(reason, "before its budget was spent: epoch 0") {
				t.Errorf("%s: %s", c.study, reason)
			}
		}
	})(t)
}
