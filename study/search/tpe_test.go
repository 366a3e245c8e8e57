package search_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

func tpeSettings(s space.Space) search.Settings {
	return search.Settings{
		Method: "tpe", Seed: 3, Space: s, Rungs: searchtest.Ladder(1, 3), Eta: 3, Maximize: []bool{true},
	}
}

// measure lets the trials come back with what the function gives.
func measure(t *testing.T, method *search.Method, trials []search.Action, value func(space.Configuration) float64) {
	t.Helper()
	for _, a := range trials {
		e := search.Event{Kind: search.Measured, Trial: a.Trial, Values: []trial.Float{trial.Float(value(a.Configuration))}}
		if _, err := method.Handle(e); err != nil {
			t.Fatal(err)
		}
	}
}

// Sixty-four workers ask one after the other, and none has a result yet: the
// trials that are out must push the next ones away, though all the model knows
// points to one place.
func TestTPESendsWorkersToDifferentPlaces(t *testing.T) {
	const workers, near = 64, 0.01
	for seed := range uint64(5) {
		settings := tpeSettings(numbers(2))
		settings.Seed = seed
		method := start(t, settings)
		measure(t, method, ask(t, method, 40), func(c space.Configuration) float64 {
			return -math.Hypot(number(c, "x0")-0.3, number(c, "x1")-0.7)
		})
		var created []search.Action
		models := 0
		for _, a := range ask(t, method, workers) {
			for _, other := range created {
				x := math.Abs(number(a.Configuration, "x0") - number(other.Configuration, "x0"))
				y := math.Abs(number(a.Configuration, "x1") - number(other.Configuration, "x1"))
				if max(x, y) < near {
					t.Errorf("seed %d: trials %d and %d are %v and %v", seed, other.Trial, a.Trial, other.Configuration, a.Configuration)
				}
			}
			if a.Origin == "model" {
				models++
			}
			created = append(created, a)
		}
		if models != workers {
			t.Errorf("seed %d: %d of %d trials came from the model", seed, models, workers)
		}
	}
}

// What is good under one condition is learned from the trials that have it,
// though all of them are worse than the trials that do not.
func TestTPELearnsEveryGroupFromItsOwnTrials(t *testing.T) {
	on := []space.Condition{{Parameter: "dropout", In: []space.Value{space.Bool(true)}}}
	s := numbers(1)
	s.Parameters = append(s.Parameters,
		space.Parameter{Name: "dropout", Kind: space.Model, Type: space.CategoricalType, Values: []space.Value{space.Bool(false), space.Bool(true)}},
		space.Parameter{Name: "rate", Kind: space.Model, Type: space.FloatType, Low: 0, High: 1, When: on},
	)
	method := start(t, tpeSettings(s))
	value := func(c space.Configuration) float64 {
		if _, there := c["rate"]; there {
			return -10 - math.Abs(number(c, "rate")-0.2)
		}
		return -math.Abs(number(c, "x0") - 0.5)
	}
	var close, there int
	for i := range 10 {
		// Many at once: the trials that are out make room for worse choices.
		created := ask(t, method, 40)
		measure(t, method, created, value)
		for _, a := range created {
			if _, has := a.Configuration["rate"]; !has || i < 3 {
				continue
			}
			there++
			if math.Abs(number(a.Configuration, "rate")-0.2) < 0.15 {
				close++
			}
		}
	}
	// Drawn uniformly, three in ten would be that close.
	if there < 5 || 3*close < 2*there {
		t.Errorf("of %d trials with a rate %d are near the best one", there, close)
	}
}

// A model needs ten outcomes; the failures among them count as bad ones, and
// outcomes that are no numbers do no harm.
func TestTPEBearsFailuresAndInfinities(t *testing.T) {
	for name, values := range map[string][]float64{
		"one value":      {1, math.NaN(), math.NaN()},
		"infinite gain":  {math.Inf(1), math.Inf(1), 0},
		"infinite loss":  {math.Inf(-1), 2, math.Inf(-1)},
		"all are equal":  {5, 5, 5},
		"as far as goes": {-math.MaxFloat64, math.MaxFloat64, 0},
	} {
		t.Run(name, func(t *testing.T) {
			method := start(t, tpeSettings(numbers(3)))
			for i := range 30 {
				a := ask(t, method, 1)[0]
				if want := i >= 10; (a.Origin == "model") != want {
					t.Fatalf("trial %d came from %s: %s", i, a.Origin, a.Reason)
				}
				if i >= 3 && i%2 == 1 {
					if _, err := method.Handle(search.Event{Kind: search.Failed, Trial: a.Trial}); err != nil {
						t.Fatal(err)
					}
					continue
				}
				measure(t, method, []search.Action{a}, func(space.Configuration) float64 { return values[i%3] })
			}
		})
	}
}

// The model is that of the highest rung which has enough outcomes.
func TestTPEModelsTheHighestRung(t *testing.T) {
	settings := tpeSettings(numbers(2))
	settings.Rungs, settings.MaxTrials = searchtest.Ladder(2, 3), 60
	method := start(t, settings)
	seen := map[string]bool{}
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
			if _, err := fmt.Sscanf(a.Reason, "drawn from the model of rung %d, which has %d", &rung, &size); err != nil {
				t.Fatalf("%q: %v", a.Reason, err)
			}
			if size < 10 {
				t.Errorf("a model of %d outcomes", size)
			}
			seen[fmt.Sprint(rung)] = true
			if rung == 0 && seen["1"] {
				t.Error("back from rung 1 to rung 0")
			}
		}
		e := search.Event{Kind: search.Measured, Trial: a.Trial, Rung: a.Rung, Values: []trial.Float{trial.Float(a.Trial % 7)}}
		if _, err := method.Handle(e); err != nil {
			t.Fatal(err)
		}
	}
	if !seen["0"] || !seen["1"] {
		t.Errorf("models of the rungs %v, want both", seen)
	}
}
