package study_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/study/session"
)

// TestTheBestIsComparedWithThePresentSettings trains the best and the first trial again
// until they can be told apart.
func TestTheBestIsComparedWithThePresentSettings(t *testing.T) {
	for name, one := range map[string]struct {
		present, best []float64 // what the repeats come to
		repeats       int
		wanted        string
	}{
		"better":  {[]float64{0.50, 0.51, 0.49}, []float64{0.80, 0.86, 0.79}, 6, "63.3% better than your present settings (trial 0): 95% interval +34% to +93%, from 3 repeats of each"},
		"placebo": {[]float64{0.50, 0.55, 0.45, 0.60, 0.40}, []float64{0.52, 0.47, 0.57, 0.44, 0.58}, 10, "no difference found to your present settings (trial 0): +3.2%, 95% interval "},
		"luck":    {[]float64{0.50, 0.51, 0.49}, []float64{0.30, 0.32, 0.29}, 6, "no settings were found that are better than your present ones (trial 0)"},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			created := w.repeating("seed: 7}", "seed: 7, repeats: {trials: 1, times: 6, present: true}, initial: [{}]}")
			w.register("worker-1")
			for _, value := range []float64{0.5, 0.4, 0.9, 0.3, 0.2, 0.1} {
				w.comes(w.mustLease("worker-1"), value)
			}
			came := map[int][]float64{0: one.present, 2: one.best}
			for number := range one.repeats {
				lease := w.mustLease("worker-1")
				of := w.trial(lease.Trial).RepeatOf
				if of == nil || len(came[*of]) == 0 {
					t.Fatalf("repeat %d is of %v", number, of)
				}
				w.comes(lease, came[*of][0])
				came[*of] = came[*of][1:]
			}
			if lease := w.lease("worker-1"); lease != nil {
				t.Fatalf("after %d repeats comes %+v", one.repeats, lease)
			}
			answer := w.recommended(created.ID)
			if !slices.ContainsFunc(answer.Notes, func(note string) bool { return strings.HasPrefix(note, one.wanted) }) {
				t.Errorf("the notes are %q", answer.Notes)
			}
			claimed := slices.ContainsFunc(answer.Notes, func(note string) bool { return strings.Contains(note, "better than your present settings") })
			if claimed != (name == "better") {
				t.Errorf("the notes are %q", answer.Notes)
			}
			events, err := w.store.Events(w.ctx, created.ID, 0, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := session.Replay(w.view(created.ID).Definition, events); err != nil {
				t.Error(err)
			}
		}))
	}
}

// TestPresentSettingsThatWereNotPromotedAreComparedAtTheTop: their repeats have the full
// budget, and what the first trial came to on the lowest rung is not in their mean.
func TestPresentSettingsThatWereNotPromotedAreComparedAtTheTop(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.repeating("epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: {min: 1, max: 3}, data_fraction: 1",
			"seed: 7}", "seed: 7, repeats: {trials: 1, times: 4, present: true}, initial: [{}]}", "trials: 27", "trials: 2")
		w.register("worker-1")
		values := map[int]float64{0: 0.1, 1: 0.8}
		repeats := 0
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			of, value := w.trial(lease.Trial).RepeatOf, values[lease.Number]
			if of != nil {
				repeats++
				value = values[*of] + 0.4*float64(1-*of) + 0.01*float64(repeats/2%2)
			}
			for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
				w.value(lease, epoch, value)
			}
			if _, err := w.finish(lease, "budget_reached"); err != nil {
				t.Fatal(err)
			}
		}
		for _, listed := range w.board(created.ID) {
			if listed.Number == 0 && (listed.Repeated == nil || listed.Repeated.Mean[0] < 0.5 || slices.Contains(listed.Repeated.Trials, 0)) {
				t.Errorf("the present settings came to %+v", listed.Repeated)
			}
		}
		if notes := w.recommended(created.ID).Notes; !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, "better than your present settings") }) {
			t.Errorf("after %d repeats the notes are %q", repeats, notes)
		}
	})(t)
}

// TestOneRepeatThatMissesAConstraintDoesNotMakeItInfeasible, as most of them keep to it.
func TestOneRepeatThatMissesAConstraintDoesNotMakeItInfeasible(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.repeating("objective:", "constraints: {metric: accuracy, min: 0.5}\nobjective:")
		w.register("worker-1")
		for _, value := range []float64{0.9, 0.8, 0.1, 0.1, 0.1, 0.1} {
			w.comes(w.mustLease("worker-1"), value)
		}
		for _, value := range []float64{0.49, 0.49, 0.85, 0.49} { // of trials 0, 1, 0, 1
			w.comes(w.mustLease("worker-1"), value)
		}
		if best := w.recommended(created.ID).Best; best.Number != 0 || best.Violation != 0 {
			t.Errorf("recommended is %+v", best)
		}
		for _, listed := range w.board(created.ID) {
			if listed.Number == 1 && listed.Rank != 2 {
				t.Errorf("trial 1, of which most results miss the constraint, has rank %d", listed.Rank)
			}
		}
	})(t)
}
