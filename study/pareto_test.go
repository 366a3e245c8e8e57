package study_test

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

// twoMetrics is a study of one rung with two objectives and a constraint.
var twoMetrics = []string{
	oneMetric, "[{metric: accuracy, direction: maximize, reference: 0}, {metric: latency, direction: minimize}]\nconstraints: {metric: size, max: 10}",
	"epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 1, data_fraction: 1", "method: bohb", "method: random",
}

// measured trains the next trial of a study of one rung.
func (w *world) measured(accuracy, latency, size trial.Float) {
	w.t.Helper()
	w.firstResult(map[string]trial.Float{"accuracy": accuracy, "latency": latency, "size": size}, nil)
}

func numbersOf(answer protocol.Pareto) []int {
	numbers := []int{}
	for _, t := range answer.Trials {
		numbers = append(numbers, t.Number)
	}
	return numbers
}

func TestTheFrontOfAStudy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(twoMetrics...)
		w.register("worker-1")
		front := func() protocol.Pareto {
			t.Helper()
			answer, err := w.service.Pareto(w.ctx, created.Name)
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		if early := front(); len(early.Trials) != 0 || len(early.Notes) != 1 || early.Hypervolume != nil {
			t.Errorf("before any trial: %+v", early)
		}
		w.measured(0.99, 1, 20) // 0: infeasible by 1
		w.measured(0.99, 1, 15) // 1: infeasible by 0.5
		early, err := w.service.Recommendation(w.ctx, created.Name)
		if err != nil || early.Best == nil || early.Best.Number != 1 || early.Best.Violation != 0.5 || !strings.Contains(strings.Join(early.Notes, "\n"), "no trial keeps to the constraints") {
			t.Errorf("without a feasible trial: %+v, %v", early, err)
		}
		w.measured(0.9, 50, 10)                      // 2: one end
		w.measured(0.5, 10, 1)                       // 3: the other
		w.measured(0.85, 15, 2)                      // 4: the compromise
		w.measured(0.8, 20, 1)                       // 5: beaten by 4
		w.measured(trial.Float(math.NaN()), 1, 1)    // 6: diverged
		w.measured(0.99, 1, trial.Float(math.NaN())) // 7: nobody knows its size
		answer := front()
		if got, want := numbersOf(answer), []int{4, 2, 3}; !slices.Equal(got, want) || answer.Measured != 4 {
			t.Errorf("the front is %v of %d, want %v", got, answer.Measured, want)
		}
		// Between the references 0 and 50, the worst latency of a feasible trial.
		want := 0.5*40 + 0.35*35
		if answer.Hypervolume == nil || math.Abs(*answer.Hypervolume-want) > 1e-9 || *answer.Objectives[1].Reference != 50 || answer.Objectives[1].Given || !answer.Objectives[0].Given {
			t.Errorf("the hypervolume is %v from %+v, want %v", answer.Hypervolume, answer.Objectives, want)
		}
		page, err := w.service.Trials(w.ctx, created.Name, protocol.TrialQuery{})
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		for _, one := range page.Trials {
			order = append(order, one.Number)
		}
		if want := []int{4, 2, 3, 5, 1, 0, 7, 6}; !slices.Equal(order, want) {
			t.Errorf("the leaderboard is %v, want %v", order, want)
		}
		best, err := w.service.Recommendation(w.ctx, created.Name)
		if err != nil || best.Best.Number != 4 || !reflect.DeepEqual(best.Best.Values, []trial.Float{0.85, 15}) || best.Pareto == nil || !slices.Equal(numbersOf(*best.Pareto), numbersOf(answer)) {
			t.Errorf("recommended is %+v, %v", best, err)
		}
		if !strings.Contains(strings.Join(best.Notes, "\n"), "3 trials are on the Pareto front") {
			t.Errorf("the notes are %q", best.Notes)
		}
	})(t)
}

func TestAStudyEndsWhenAFeasibleTrialMeetsAllTargets(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(oneMetric, "[{metric: accuracy, direction: maximize, target: 0.8}, {metric: latency, direction: minimize, target: 20}]\nconstraints: {metric: size, max: 10}",
			"epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 1, data_fraction: 1", "trials: 27", "trials: 27, target_reached: true")
		w.register("worker-1")
		for _, one := range [][3]trial.Float{{0.9, 30, 1}, {0.7, 10, 1}, {0.9, 10, 11}, {trial.Float(math.NaN()), 10, 1}} {
			w.measured(one[0], one[1], one[2])
			if status := w.view(created.ID).Status; status != protocol.StudyRunning {
				t.Fatalf("the study is %s after %v", status, one)
			}
		}
		w.measured(0.8, 20, 10)
		if view := w.view(created.ID); view.Status != protocol.StudyCompleted || !strings.Contains(view.Reason, "trial 4 reached") {
			t.Errorf("the study is %s: %s", view.Status, view.Reason)
		}
	})(t)
}

// TestASearchSeesViolations: it is told them, and a restarted server decides
// as one that was never stopped.
func TestASearchSeesViolations(t *testing.T) {
	var decided []string
	for _, restarts := range []bool{false, true} {
		in(func(t *testing.T, w *world) {
			created := w.create(oneMetric, "[{metric: accuracy, direction: maximize}, {metric: latency, direction: minimize}]\nconstraints: {metric: size, max: 10}")
			w.register("worker-1")
			for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
				x, _ := lease.Params["x"].Number()
				for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
					metrics := map[string]trial.Float{"accuracy": trial.Float(x), "latency": trial.Float(x * x), "size": trial.Float(20 * x)}
					if err := w.reportAll(lease, epoch, metrics, nil); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
					t.Fatal(err)
				}
				if restarts && lease.Number%5 == 0 {
					w.start()
					w.register("worker-1")
				}
			}
			events, err := w.store.Events(w.ctx, created.ID, 0, 10000)
			if err != nil {
				t.Fatal(err)
			}
			log, violations := "", 0
			for _, event := range events {
				if event.Kind == journal.Searched {
					log += string(event.Data) + "\n"
					violations += strings.Count(string(event.Data), `"violation":`)
				}
			}
			if violations == 0 {
				t.Error("no violation was shown to the search")
			}
			if n, err := session.Replay(created.Definition, events); err != nil || n == 0 {
				t.Errorf("%d decisions replayed: %v", n, err)
			}
			page, err := w.service.Trials(w.ctx, created.ID, protocol.TrialQuery{})
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range page.Trials {
				if x, _ := one.Configuration["x"].Number(); x > 0.5 != (one.Results[0].Violation > 0) {
					t.Errorf("trial %d with a size of %v has %+v", one.Number, 20*x, one.Results)
				}
			}
			decided = append(decided, log)
		})(t)
	}
	if len(decided) != 2 || decided[0] != decided[1] {
		t.Error("a server that was restarted decided otherwise")
	}
}

// TestRanksOfSeveralObjectives compares the leaderboard with the definition:
// nobody stands before one that beats them, and feasible trials come first.
func TestRanksOfSeveralObjectives(t *testing.T) {
	t.Parallel()
	value := rapid.SampledFrom([]trial.Float{0, 1, 2, 3, trial.Float(math.NaN()), trial.Float(math.Inf(1))})
	rapid.Check(t, func(rt *rapid.T) {
		outcomes := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) [3]trial.Float {
			return [3]trial.Float{value.Draw(rt, "accuracy"), value.Draw(rt, "latency"), rapid.SampledFrom([]trial.Float{1, 1, 1, 11, 20}).Draw(rt, "size")}
		}), 1, 12).Draw(rt, "outcomes")
		var faults []string // for rt: what fails t is neither made smaller nor printed
		in(func(t *testing.T, w *world) {
			created := w.create(twoMetrics...)
			w.register("worker-1")
			for _, one := range outcomes {
				w.measured(one[0], one[1], one[2])
			}
			page, err := w.service.Trials(w.ctx, created.ID, protocol.TrialQuery{})
			if err != nil || len(page.Trials) != len(outcomes) {
				faults = append(faults, fmt.Sprintf("%d trials, %v", len(page.Trials), err))
				return
			}
			for i, a := range page.Trials {
				for _, b := range page.Trials[i+1:] {
					if before(outcomes[b.Number], outcomes[a.Number]) {
						faults = append(faults, fmt.Sprintf("%v stands before %v", outcomes[a.Number], outcomes[b.Number]))
					}
				}
				detail, err := w.service.TrialDetail(w.ctx, created.ID, a.Number)
				if err != nil || detail.Trial.Rank != a.Rank || a.Rank != i+1 {
					faults = append(faults, fmt.Sprintf("trial %d is at place %d with rank %d, and says %d, %v", a.Number, i+1, a.Rank, detail.Trial.Rank, err))
				}
			}
			if best := w.view(created.ID).Progress.Best; best != nil && best.Number != page.Trials[0].Number {
				faults = append(faults, fmt.Sprintf("the best is trial %d, the first of the leaderboard %d", best.Number, page.Trials[0].Number))
			}
		})(t)
		if len(faults) > 0 {
			rt.Fatalf("of %v:\n%s", outcomes, strings.Join(faults, "\n"))
		}
	})
}

// before reports whether the outcome a must stand before b.
func before(a, b [3]trial.Float) bool {
	diverged := func(o [3]trial.Float) bool { return o[0].IsNaN() || o[1].IsNaN() || math.IsInf(float64(o[1]), 1) }
	if diverged(a) != diverged(b) {
		return !diverged(a)
	}
	if diverged(a) {
		return false
	}
	if feasible := a[2] <= 10; feasible != (b[2] <= 10) {
		return feasible
	}
	if a[2] > 10 {
		return a[2] < b[2]
	}
	return a[0] >= b[0] && a[1] <= b[1] && cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(b[1], a[1])) != 0
}
