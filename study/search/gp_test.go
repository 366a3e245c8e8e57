package search_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// gpRegret is the mean regret of the methods on a bowl in six parameters that is
// tilted differently in every direction and rippled.
func gpRegret(t *testing.T, settings search.Settings, workers int, disturbance float64, methods ...string) map[string]float64 {
	t.Helper()
	settings.Space = numbers(6)
	truth := func(c space.Configuration) float64 {
		loss := 0.0
		for i, p := range settings.Space.Parameters {
			x := number(c, p.Name) - 0.2 - 0.1*float64(i)
			loss += x*x*float64(1+i%3) + 0.02*(1-math.Cos(20*x))
		}
		return -loss
	}
	w := world{workers: workers, until: math.Inf(1), measure: func(c space.Configuration, rung, below int) (float64, float64) {
		return truth(c) + disturbance*wave(number(c, "x0"))*math.Pow(3, -float64(rung)), math.Pow(3, float64(rung))
	}}
	result := map[string]float64{}
	for _, method := range methods {
		const seeds = 5
		for seed := range uint64(seeds) {
			settings.Method, settings.Seed = method, seed
			result[method] -= truth(winner(simulate(t, settings, w)).params) / seeds
		}
	}
	t.Logf("mean regret with %d workers: %v", workers, result)
	return result
}

// What the method is for: few trials, each in full, of something smooth.
func TestGPBeatsTheOthersOnFewTrials(t *testing.T) {
	for workers, share := range map[int]float64{1: 0.5, 16: 0.9} { // of the better one's regret
		settings := search.Settings{Rungs: searchtest.Ladder(1, 3), Eta: 3, MaxTrials: 60, RandomFraction: 1. / 3, Maximize: []bool{true}}
		regret := gpRegret(t, settings, workers, 0, "random", "bohb", "tpe", "gp")
		if regret["gp"] > share*min(regret["bohb"], regret["tpe"]) || regret["gp"] > 0.45*regret["random"] {
			t.Errorf("%d workers: the regrets are %v", workers, regret)
		}
	}
}

// With a ladder, whose low rungs see the truth through a disturbance.
func TestGPLearnsAcrossRungs(t *testing.T) {
	settings := search.Settings{Rungs: searchtest.Ladder(3, 3), Eta: 3, MaxTrials: 60, RandomFraction: 1. / 3, Maximize: []bool{true}}
	regret := gpRegret(t, settings, 4, 0.1, "random", "bohb", "gp")
	if regret["gp"] > 0.5*regret["bohb"] || regret["gp"] > 0.3*regret["random"] {
		t.Errorf("the regrets are %v", regret)
	}
}

func gpSettings(s space.Space) search.Settings {
	return search.Settings{Method: "gp", Seed: 3, Space: s, Rungs: searchtest.Ladder(1, 3), Eta: 3, Maximize: []bool{true}}
}

// The first trials are points of a Sobol sequence, then the model proposes four
// in five; failures and values that are no numbers to compare do no harm.
func TestGPBearsFailuresAndInfinities(t *testing.T) {
	for name, values := range map[string][]float64{
		"a few values":   {1, 2, math.NaN()},
		"infinite gain":  {math.Inf(1), 1, 0},
		"infinite loss":  {math.Inf(-1), 2, 3},
		"all are equal":  {5, 5, 5},
		"as far as goes": {-math.MaxFloat64, math.MaxFloat64, 0},
	} {
		t.Run(name, func(t *testing.T) {
			method := start(t, gpSettings(numbers(3)))
			origins := map[string]int{}
			for i := range 60 {
				a := ask(t, method, 1)[0]
				if i < 6 && a.Origin != "sobol" {
					t.Fatalf("trial %d came from %s: %s", i, a.Origin, a.Reason)
				}
				origins[a.Origin]++
				if i%4 == 3 {
					if _, err := method.Handle(search.Event{Kind: search.Failed, Trial: a.Trial}); err != nil {
						t.Fatal(err)
					}
					continue
				}
				measure(t, method, []search.Action{a}, func(space.Configuration) float64 { return values[i%3] })
			}
			if origins["model"] < 30 || origins["random"] > 25 {
				t.Errorf("origins %v", origins)
			}
		})
	}
}

// The kernel is fitted to as many of the first trials as there are now, not when the
// last outcome came: a restored method continues alike.
func TestGPContinuesAlikeAfterASnapshot(t *testing.T) {
	settings := gpSettings(numbers(3))
	method := start(t, settings)
	for begun := range 48 {
		snapshot, err := method.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		restored := start(t, settings)
		if err := restored.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		actions, also := ask(t, method, 1), ask(t, restored, 1)
		if !reflect.DeepEqual(actions, also) {
			t.Fatalf("trial %d is %+v, after a snapshot %+v", begun, actions[0], also[0])
		}
		if begun%3 > 0 { // the others are still out when the next ones are asked for
			measure(t, method, actions, func(space.Configuration) float64 { return math.Sin(float64(7 * begun)) })
		}
	}
}

// A model that has the rungs above is one of all of them.
func TestGPModelsTheWholeLadder(t *testing.T) {
	settings := gpSettings(numbers(2))
	settings.Rungs, settings.MaxTrials = searchtest.Ladder(3, 3), 60
	method := start(t, settings)
	highest, results := -1, make([]int, 3)
	for {
		actions, err := method.Handle(search.Event{Kind: search.Request})
		if err != nil {
			t.Fatal(err)
		}
		a := actions[0]
		if a.Kind == search.Finish {
			break
		}
		if a.Origin == "model" {
			var rung, size int
			if _, err := fmt.Sscanf(a.Reason, "the largest expected improvement at rung %d in a Gaussian process of %d observations", &rung, &size); err != nil {
				t.Fatalf("%q: %v", a.Reason, err)
			}
			want := 0
			for i, n := range results {
				if i == 0 || n >= 3 {
					want += n
				}
			}
			if size != want {
				t.Errorf("a model of %d observations, want the %d of the rungs %v", size, want, results)
			}
			highest = max(highest, rung)
		}
		results[a.Rung]++
		e := search.Event{Kind: search.Measured, Trial: a.Trial, Rung: a.Rung, Values: []trial.Float{trial.Float(a.Trial % 7)}}
		if _, err := method.Handle(e); err != nil {
			t.Fatal(err)
		}
	}
	if highest != 2 {
		t.Errorf("the highest modelled rung is %d, want 2", highest)
	}
}

// A large study is modelled by a part of it.
func TestGPBoundsItsModel(t *testing.T) {
	method := start(t, gpSettings(numbers(2)))
	value := func(c space.Configuration) float64 { return -math.Hypot(number(c, "x0")-0.3, number(c, "x1")-0.7) }
	measure(t, method, ask(t, method, 1500), value)
	near, models := 0, 0
	for range 30 {
		a := ask(t, method, 1)[0]
		measure(t, method, []search.Action{a}, value)
		if a.Origin != "model" {
			continue
		}
		models++
		if want := "the largest expected improvement at rung 0 in a Gaussian process of 200 observations"; a.Reason != want {
			t.Errorf("%q, want %q", a.Reason, want)
		}
		if value(a.Configuration) > -0.1 {
			near++
		}
	}
	// Drawn uniformly, three in a hundred would be that near.
	if 2*near < models || models < 15 {
		t.Errorf("of %d proposals %d are near the best place", models, near)
	}
}
