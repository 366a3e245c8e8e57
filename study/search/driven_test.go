package search

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// studyOf returns a search over d floats without random draws once it has a
// model, on a ladder of rungs.
func studyOf(t testing.TB, d, rungs int) *Method {
	t.Helper()
	settings := Settings{Method: "bohb", Seed: 5, Eta: 3, Brackets: 1, Maximize: []bool{true}}
	for i := range rungs {
		settings.Rungs = append(settings.Rungs, budget.Rung{Index: i, Budget: budget.Budget{Epochs: i + 1, DataFraction: 1}})
	}
	for i := range d {
		settings.Space.Parameters = append(settings.Space.Parameters,
			space.Parameter{Name: fmt.Sprintf("x%d", i), Kind: space.Training, Type: space.FloatType, Low: 0, High: 1})
	}
	method, err := New(settings)
	if err != nil {
		t.Fatal(err)
	}
	return method
}

func (a *Method) request(t testing.TB) Action {
	t.Helper()
	actions, err := a.Handle(Event{Kind: Request})
	if err != nil {
		t.Fatal(err)
	}
	return actions[0]
}

// measure gives the trial a value: minus its squared distance from 0.5.
func (a *Method) measure(t testing.TB, action Action) {
	t.Helper()
	value := 0.0
	for _, x := range a.history.Points[action.Trial] {
		value -= (x - 0.5) * (x - 0.5)
	}
	if _, err := a.Handle(Event{Kind: Measured, Trial: action.Trial, Rung: action.Rung, Values: []trial.Float{trial.Float(value)}}); err != nil {
		t.Fatal(err)
	}
}

// A model that was fitted before a restore is forgotten, though the restored
// history has as many observations.
func TestRestoreForgetsTheModel(t *testing.T) {
	a, b := prepared(t, 2, 30, 0), studyOf(t, 2, 1)
	for range 30 {
		action := b.request(t)
		x := b.history.Points[action.Trial][0]
		if _, err := b.Handle(Event{Kind: Measured, Trial: action.Trial, Values: []trial.Float{trial.Float(x)}}); err != nil {
			t.Fatal(err)
		}
	}
	b.request(t)
	state, err := a.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Restore(state); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if here, there := a.request(t).Configuration.Key(), b.request(t).Configuration.Key(); here != there {
			t.Fatalf("%s before the restore, %s after it", here, there)
		}
	}
}

// barren draws and has nothing.
type barren struct{}

func (barren) Propose(_ *ladder.History, r *rand.Rand) (ladder.Proposal, bool) {
	r.Float64()
	return ladder.Proposal{}, false
}

// A request for which there is no configuration leaves no trace: the study
// does not log it.
func TestARequestInVainChangesNothing(t *testing.T) {
	a := prepared(t, 1, 2, 1)
	a.proposer = barren{}
	before, err := a.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if action := a.request(t); action.Kind != Wait {
		t.Fatalf("got %s with a trial out", action.Kind)
	}
	if after, err := a.Snapshot(); err != nil || string(after) != string(before) {
		t.Errorf("%s became %s (%v)", before, after, err)
	}
	if _, err := a.Handle(Event{Kind: Failed, Trial: 2}); err != nil {
		t.Fatal(err)
	}
	if action := a.request(t); action.Kind != Finish {
		t.Errorf("got %s with no trial out", action.Kind)
	}
}

// In a space of twelve configurations, twelve trials try all of them.
func TestNothingIsTriedTwiceWhileThereIsMore(t *testing.T) {
	for _, method := range []string{"bohb", "random"} {
		settings := Settings{
			Method: method, Seed: 1, Eta: 2, Maximize: []bool{true}, RandomFraction: 1. / 3,
			Rungs: []budget.Rung{{Budget: budget.Budget{Epochs: 1, DataFraction: 1}}},
			Space: space.Space{Parameters: []space.Parameter{{Name: "n", Kind: space.Training, Type: space.IntType, Low: 1, High: 12}}},
		}
		made, err := New(settings)
		if err != nil {
			t.Fatal(err)
		}
		a := made
		for range 14 {
			a.measure(t, a.request(t))
		}
		if len(a.history.Taken) != 12 {
			t.Errorf("%s: 14 trials tried %d of 12 configurations", method, len(a.history.Taken))
		}
	}
}

// BenchmarkRequest is the time of one decision and of taking its result in,
// with n measured trials of d parameters, 64 more being out; at each the model
// has to be fitted again.
func BenchmarkRequest(b *testing.B) {
	for _, method := range []string{"bohb", "tpe", "cma-es", "gp", "sobol"} {
		for _, size := range [][2]int{{100, 10}, {1_000, 4}, {1_000, 10}, {10_000, 10}, {10_000, 20}, {100_000, 20}} {
			n, d := size[0], size[1]
			b.Run(fmt.Sprint(method, "/", n, "x", d), func(b *testing.B) {
				a := prepared(b, d, n, 64)
				a.settings.Method = method
				p, err := methods()[method](a.settings)
				if err != nil {
					b.Fatal(err)
				}
				a.proposer = p
				for b.Loop() {
					a.measure(b, a.request(b))
				}
			})
		}
	}
}

// BenchmarkLearning is the same on a ladder of four rungs, with n trials of d
// parameters, for a model of one rung and one that learns from lower rungs too.
func BenchmarkLearning(b *testing.B) {
	for _, method := range []string{"bohb", "tpe"} {
		for _, learning := range []Learning{OneRung, LowerRungs} {
			b.Run(fmt.Sprint(method, "/", learning), func(b *testing.B) {
				a := studyOf(b, 20, 4)
				for len(a.history.Trials) < 10_000 {
					configuration, err := a.history.Cube.Sample(a.random())
					if err != nil {
						b.Fatal(err)
					}
					a.queue = append(a.queue, queued{configuration: configuration})
					a.measure(b, a.request(b))
				}
				a.queue, a.settings.Method, a.settings.Learning = nil, method, learning
				p, err := methods()[method](a.settings)
				if err != nil {
					b.Fatal(err)
				}
				a.proposer = p
				for b.Loop() {
					a.measure(b, a.request(b))
				}
			})
		}
	}
}

// prepared returns a search over d floats on one rung, with n measured trials,
// drawn at random, and further ones pending.
func prepared(t testing.TB, d, n, pending int) *Method {
	t.Helper()
	a := studyOf(t, d, 1)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range n + pending {
		configuration, err := a.history.Cube.Sample(r)
		if err != nil {
			t.Fatal(err)
		}
		number := a.history.Create(ladder.Proposal{Configuration: configuration, Origin: propose.OriginRandom}, ladder.Slot{})
		if i < n {
			a.measure(t, Action{Trial: number})
		}
	}
	return a
}

func BenchmarkSnapshot(b *testing.B) {
	a := prepared(b, 20, 10_000, 8)
	for b.Loop() {
		if _, err := a.Snapshot(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRestore(b *testing.B) {
	a := prepared(b, 20, 10_000, 8)
	state, err := a.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := a.Restore(state); err != nil {
			b.Fatal(err)
		}
	}
}
