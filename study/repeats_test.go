package study_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// repeating is a study of one rung whose best two are trained three times.
func (w *world) repeating(replace ...string) protocol.StudyView {
	return w.create(append(replace, "epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 1",
		"policy: multi, ", "", "seed: 7}", "seed: 7, repeats: {trials: 2, times: 3}}", "trials: 27", "trials: 6")...)
}

// comes trains a lease of one epoch to the value; NaN fails it.
func (w *world) comes(lease *protocol.Lease, value float64) {
	w.t.Helper()
	outcome := protocol.BudgetReached
	if math.IsNaN(value) {
		outcome = protocol.CommandFailed
	} else {
		w.value(lease, 1, value)
	}
	if _, err := w.finish(lease, outcome); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) recommended(study string) protocol.Recommendation {
	w.t.Helper()
	answer, err := w.service.Recommendation(w.ctx, study)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

func (w *world) board(study string) []protocol.RankedTrial {
	w.t.Helper()
	page, err := w.service.Trials(w.ctx, study, protocol.TrialQuery{})
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Trials
}

// The luckiest trial leads until it is trained again.
func TestTheBestAreTrainedAgainAndRankedByTheirMeans(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.repeating()
		w.register("worker-1")
		first := []float64{0.5, 0.9, 0.6, 0.8, 0.7, 0.1}
		for _, value := range first {
			w.comes(w.mustLease("worker-1"), value)
		}
		if best := w.view(created.ID).Progress.Best; best.Number != 1 || best.Repeated != nil {
			t.Fatalf("before the repeats the best is %+v", best)
		}
		seeds := map[uint64]bool{w.trial(trial.ID(created.ID + "-1")).Seed: true, w.trial(trial.ID(created.ID + "-3")).Seed: true}
		again := []struct {
			of    int
			value float64
		}{{1, 0.6}, {3, 0.78}, {1, 0.63}, {3, 0.76}}
		for i, want := range again {
			lease := w.mustLease("worker-1")
			stored := w.trial(lease.Trial)
			if stored.RepeatOf == nil || *stored.RepeatOf != want.of || stored.Origin != "repeat" || stored.Number != 6+i || lease.FirstEpoch != 1 || seeds[stored.Seed] ||
				stored.Configuration.Key() != w.trial(trial.ID(fmt.Sprintf("%s-%d", created.ID, want.of))).Configuration.Key() {
				t.Fatalf("repeat %d is %+v, want one of trial %d", i, stored, want.of)
			}
			seeds[stored.Seed] = true
			w.comes(lease, want.value)
		}
		if lease := w.lease("worker-1"); lease != nil {
			t.Fatalf("after the repeats comes %+v", lease)
		}
		view := w.view(created.ID)
		if view.Status != protocol.StudyCompleted || view.Progress.Created != 6 || view.Progress.Repeats != 4 || view.Progress.DataPasses != view.Definition.Plan().DataPasses {
			t.Errorf("at the end the study is %s with %+v, planned were %+v", view.Status, view.Progress, view.Definition.Plan())
		}
		answer := w.recommended(created.ID)
		mean, spread := (0.8+0.78+0.76)/3, 0.02/math.Sqrt(3)
		best := answer.Best
		if best.Number != 3 || best.Repeated == nil || best.Repeated.Results != 3 || !slices.Equal(best.Repeated.Trials, []int{3, 7, 9}) ||
			math.Abs(float64(best.Value)-mean) > 1e-12 || math.Abs(float64(best.Repeated.StandardErrors[0])-spread) > 1e-12 {
			t.Errorf("recommended is %+v with %+v", best, best.Repeated)
		}
		if want := "mean of 3 trainings, standard error 0.012"; !slices.Contains(answer.Notes, want) {
			t.Errorf("the notes lack %q: %q", want, answer.Notes)
		}
		if !slices.ContainsFunc(answer.Notes, func(note string) bool { return strings.Contains(note, "repeats alone is 0.77") }) {
			t.Errorf("the notes lack the mean of the repeats: %q", answer.Notes)
		}
		var order []int
		for place, listed := range w.board(created.ID) {
			order = append(order, listed.Number)
			detail, err := w.service.TrialDetail(w.ctx, created.ID, listed.Number)
			wanted := place + 1
			if listed.RepeatOf != nil {
				wanted = 0
			}
			if err != nil || listed.Rank != wanted || detail.Trial.Rank != wanted || (listed.Repeated == nil) != (detail.Trial.Repeated == nil) {
				t.Errorf("trial %d is at place %d with rank %d, and says %d, %v", listed.Number, place+1, listed.Rank, detail.Trial.Rank, err)
			}
			if listed.Number == 1 && listed.Results[0].Values[0] != 0.9 {
				t.Errorf("the leaderboard changed what trial 1 measured: %v", listed.Results)
			}
		}
		if want := []int{3, 1, 4, 2, 0, 5, 6, 7, 8, 9}; !slices.Equal(order, want) {
			t.Errorf("the leaderboard is %v, want %v", order, want)
		}
		// Who begins with its results begins with the means.
		heir := w.create("name: example", "name: heir", "seed: 7}", "seed: 7, warm_start: {studies: [example]}}")
		if sources := heir.Definition.Search.WarmStart.Sources; len(sources) != 1 || sources[0].Observations != 6 {
			t.Errorf("it begins with %+v", sources)
		}
		events, err := w.store.Events(w.ctx, created.ID, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := session.Replay(view.Definition, events); err != nil || n < 20 {
			t.Errorf("%d decisions came out the same: %v", n, err)
		}
	})(t)
}

// A repeat that fails is trained once more, and what failed again is given up.
func TestFailedRepeatsEnd(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.repeating("stop: {trials: 27}", "stop: {trials: 6}\nretry: {failures: 0}")
		w.register("worker-1")
		for number := range 6 {
			w.comes(w.mustLease("worker-1"), float64(number)/10)
		}
		repeats := 0
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			value := math.NaN()
			if of := *w.trial(lease.Trial).RepeatOf; of == 4 && repeats > 4 {
				value = 0.4
			}
			w.comes(lease, value)
			repeats++
		}
		view, answer := w.view(created.ID), w.recommended(created.ID)
		if view.Status != protocol.StudyCompleted || repeats != 8 {
			t.Errorf("after %d repeats the study is %s: %s", repeats, view.Status, view.Reason)
		}
		// All repeats of trial 5 failed: nothing says whether it was lucky.
		if best := answer.Best; best.Number != 4 || best.Repeated.Results != 3 || best.Value != 0.4 {
			t.Errorf("recommended is %+v with %+v", best, best.Repeated)
		}
		for _, want := range []string{"all came to the same accuracy", "2 of its repeats failed"} {
			if !slices.ContainsFunc(answer.Notes, func(note string) bool { return strings.Contains(note, want) }) {
				t.Errorf("the notes lack %q: %q", want, answer.Notes)
			}
		}
	})(t)
}

// Results that are alike have no error, not even that of rounding: 0.9 is not the sum of
// three thirds of it.
func TestRepeatsThatAreAlikeHaveNoError(t *testing.T) {
	for off, alike := range map[float64]bool{0: true, 1e-6: false} {
		in(func(t *testing.T, w *world) {
			created := w.repeating("stop: {trials: 27}", "stop: {trials: 6}")
			w.register("worker-1")
			for number := range 6 {
				w.comes(w.mustLease("worker-1"), float64(number)/10+0.4)
			}
			for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
				w.comes(lease, float64(*w.trial(lease.Trial).RepeatOf)/10+0.4+off)
			}
			answer := w.recommended(created.ID)
			said := strings.Contains(strings.Join(answer.Notes, "; "), "all came to the same accuracy")
			if spread := answer.Best.Repeated.StandardErrors[0]; answer.Best.Number != 5 || (spread == 0) != alike || said != alike {
				t.Errorf("repeats that differ by %g: trial %d, standard error %g, %q", off, answer.Best.Number, float64(spread), answer.Notes)
			}
		})(t)
	}
}

// What the repeats come to decides nothing but the ranking: a lucky one does
// not reach the target, and nobody learns from it.
func TestARepeatIsNoTrialOfItsOwn(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.repeating("direction: maximize", "direction: maximize, target: 0.95", "stop: {trials: 27}", "stop: {trials: 6, target_reached: true}")
		w.register("worker-1", "worker-2")
		for range 6 {
			w.comes(w.mustLease("worker-1"), 0.5)
		}
		one, two := w.mustLease("worker-1"), w.mustLease("worker-2")
		w.comes(one, 0.99)
		if view := w.view(created.ID); view.Status != protocol.StudyRunning {
			t.Errorf("a repeat above the target made the study %s: %s", view.Status, view.Reason)
		}
		_, err := w.service.Enqueue(w.ctx, created.ID, protocol.EnqueueRequest{Configurations: []space.Configuration{{"x": space.Float(0.5)}}})
		if !problem.Is(err, problem.Conflict) {
			t.Errorf("enqueued while the best are trained again: %v", err)
		}
		w.comes(two, 0.2)
		w.start() // a restarted server goes on with the third
		w.register("worker-1")
		if third := w.mustLease("worker-1"); third.Number != 8 {
			t.Errorf("the third repeat is trial %d", third.Number)
		}
		if _, err := w.service.Stop(w.ctx, created.ID); err != nil {
			t.Fatal(err)
		}
		if answer := w.recommended(created.ID); answer.Best.Number != 0 || answer.Best.Repeated.Results != 2 {
			t.Errorf("recommended is %+v", answer.Best)
		}
		importance, err := w.service.Importance(w.ctx, created.ID, protocol.ImportanceQuery{})
		if err != nil || len(importance.Rungs) > 0 && importance.Rungs[0].Trials != 6 {
			t.Errorf("the importance counts %+v, %v", importance.Rungs, err)
		}
	})(t)
}

// Ended before its repeats, a study says so.
func TestAStudyWithoutItsRepeatsSaysSo(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.repeating("stop: {trials: 27}", "stop: {trials: 6, data_passes: 6}")
		w.register("worker-1")
		for range 6 {
			w.comes(w.mustLease("worker-1"), 0.5)
		}
		if view := w.view(created.ID); view.Status != protocol.StudyCompleted {
			t.Fatalf("the study is %s", view.Status)
		}
		if notes := w.recommended(created.ID).Notes; !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, "ended before its best trials were repeated") }) {
			t.Errorf("the notes are %q", notes)
		}
	})(t)
}

// With several objectives each has a mean, and the front keeps those that were
// trained once.
func TestRepeatsOfSeveralObjectives(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.repeating("objective: [{metric: accuracy, direction: maximize}]",
			"objective: [{metric: accuracy, direction: maximize}, {metric: cost, direction: minimize}]")
		w.register("worker-1")
		send := func(accuracy, cost float64) {
			lease := w.mustLease("worker-1")
			if _, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1,
				Metrics: map[string]trial.Float{"accuracy": trial.Float(accuracy), "cost": trial.Float(cost)}}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 6 { // all on one front
			send(float64(i)/10, float64(i))
		}
		for range 4 {
			send(0.5, 5)
		}
		answer := w.recommended(created.ID)
		if best := answer.Best; best.Repeated == nil || len(best.Repeated.Mean) != 2 || !slices.Equal(best.Values, best.Repeated.Mean) || len(best.Repeated.StandardErrors) != 2 {
			t.Errorf("recommended is %+v", answer.Best)
		}
		if front := answer.Pareto; len(front.Trials) < 4 || front.Measured != 6 || front.Trials[0].Repeated == nil {
			t.Errorf("the front is %+v", front)
		}
	})(t)
}
