package search_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// crowdSpaces are large enough for 64 trials that differ.
func crowdSpaces() map[string]space.Space {
	kind := space.Training
	on := []space.Condition{{Parameter: "dropout", In: []space.Value{space.Bool(true)}}}
	return map[string]space.Space{
		"a line":  numbers(1),
		"a plane": numbers(2),
		"ten":     numbers(10),
		"a number and few whole ones": {Parameters: []space.Parameter{
			{Name: "x", Kind: kind, Type: space.FloatType, Low: 1e-5, High: 1, Log: true},
			{Name: "n", Kind: kind, Type: space.IntType, Low: 1, High: 3},
			{Name: "batch", Kind: kind, Type: space.OrdinalType, Values: []space.Value{space.Int(16), space.Int(32), space.Int(64)}},
		}},
		"conditions": {Parameters: []space.Parameter{
			{Name: "dropout", Kind: kind, Type: space.CategoricalType, Values: []space.Value{space.Bool(false), space.Bool(true)}},
			{Name: "x", Kind: kind, Type: space.FloatType, Low: 0, High: 1},
			{Name: "rate", Kind: kind, Type: space.FloatType, Low: 0, High: 0.5, When: on},
		}},
	}
}

// twins reports whether two configurations have the same choices and no number
// further apart than a hundredth of its range, or less where 64 such trials
// would leave too little of the space.
func twins(cube *space.Cube, a, b space.Configuration) bool {
	p, q := cube.Encode(a), cube.Encode(b)
	numbers := 0
	for i, d := range cube.Dimensions() {
		if d.Kind == space.Continuous && !math.IsNaN(p[i]) {
			numbers++
		}
	}
	distance := min(0.01, math.Pow(0.25/65, 1/float64(numbers))/2)
	for i, d := range cube.Dimensions() {
		if math.IsNaN(p[i]) != math.IsNaN(q[i]) {
			return false
		}
		if d.Kind == space.Continuous && math.Abs(p[i]-q[i]) > distance || d.Kind != space.Continuous && p[i] != q[i] && !math.IsNaN(p[i]) {
			return false
		}
	}
	return true
}

// crew is workers that are all busy, with what they were given.
type crew struct {
	cube   *space.Cube
	method *search.Method
	out    []search.Action
	known  map[int]space.Configuration
}

// hire asks until so many are busy; no new trial may be a twin of one that was
// never measured.
func (c *crew) hire(t *testing.T, workers int) {
	t.Helper()
	for len(c.out) < workers {
		actions, err := c.method.Handle(search.Event{Kind: search.Request})
		if err != nil || actions[0].Kind != search.Create && actions[0].Kind != search.Promote {
			t.Fatalf("%v, %v, want work", actions, err)
		}
		a := actions[0]
		if a.Kind == search.Create {
			c.known[a.Trial] = a.Configuration
			for _, other := range c.out {
				if other.Kind == search.Create && twins(c.cube, a.Configuration, other.Configuration) {
					t.Fatalf("trials %d and %d are out with %v and %v", other.Trial, a.Trial, other.Configuration, a.Configuration)
				}
			}
		}
		c.out = append(c.out, a)
	}
}

// end measures one: the closer to one point, the better.
func (c *crew) end(t *testing.T, at int) {
	t.Helper()
	a, loss := c.out[at], 0.0
	for _, u := range c.cube.Encode(c.known[a.Trial]) {
		if !math.IsNaN(u) {
			loss += (u - 0.3) * (u - 0.3)
		}
	}
	e := search.Event{Kind: search.Measured, Trial: a.Trial, Rung: a.Rung, Values: []trial.Float{trial.Float(-loss)}}
	if _, err := c.method.Handle(e); err != nil {
		t.Fatal(err)
	}
	c.out = append(c.out[:at], c.out[at+1:]...)
}

// Sixty-four workers are busy at any time, and all that is good is in one
// place: no method sends two of them there. Every second outcome is of who has
// waited longest. A grid's points are all asked for, however close they are.
func TestPendingTrialsAreNeverNearDuplicates(t *testing.T) {
	const workers = 64
	for _, method := range search.Names() {
		if method == "grid" {
			continue
		}
		rounds := effort.ByDay(t, 50, 200)
		if method == "gp" {
			rounds = effort.ByDay(t, 10, 30) // each of its decisions takes milliseconds
		}
		for name, s := range crowdSpaces() {
			for _, promotion := range budget.Promotions() {
				t.Run(fmt.Sprint(method, " ", promotion, " ", name), func(t *testing.T) {
					c := &crew{
						cube: s.Cube(), known: map[int]space.Configuration{},
						method: start(t, search.Settings{
							Method: method, Seed: 11, Space: s, Rungs: searchtest.Ladder(3, 3), Eta: 3,
							Promotion: promotion, RandomFraction: 1. / 3, Maximize: []bool{true},
						}),
					}
					for round := range rounds {
						c.hire(t, workers)
						c.end(t, round%2*(workers-1))
					}
				})
			}
		}
	}
}
