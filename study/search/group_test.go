package search_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/space"
)

// grouped puts the space's parameters into the groups, and searches the groups
// with the methods.
func grouped(s space.Space, groups []string, methods map[string]string) search.Settings {
	settings := search.Settings{
		Method: "bohb", Seed: 5, Space: s, Rungs: searchtest.Ladder(1, 3), Eta: 3, RandomFraction: 1. / 3,
		GridPoints: 4, Maximize: []bool{true}, Groups: map[string]search.Group{},
	}
	for i, group := range groups {
		s.Parameters[i].Group = group
	}
	for name, method := range methods {
		settings.Groups[name] = search.Group{Method: method}
	}
	return settings
}

// Each method proposes its own parameters: those of the grid are on the grid,
// those of the sequence fill their plane evenly, however the others are drawn.
func TestEveryGroupHasItsMethod(t *testing.T) {
	settings := grouped(numbers(5), []string{"net", "net", "", "even", "even"}, map[string]string{"net": "grid", "even": "sobol"})
	method := start(t, settings)
	cells, boxes := map[string]int{}, map[[2]int]int{}
	models := 0
	for range 64 {
		a := ask(t, method, 1)[0]
		x := func(i int) float64 { return number(a.Configuration, fmt.Sprintf("x%d", i)) }
		cells[fmt.Sprintf("%.4f %.4f", x(0), x(1))]++
		boxes[[2]int{int(8 * x(3)), int(8 * x(4))}]++
		if strings.Contains(a.Reason, "the others: drawn from the model") {
			models++
		}
		if a.Origin != "groups" || !strings.Contains(a.Reason, "net: the next grid point") || !strings.Contains(a.Reason, "even: point") {
			t.Fatalf("%s: %s", a.Origin, a.Reason)
		}
		measure(t, method, []search.Action{a}, func(space.Configuration) float64 { return -math.Abs(x(2) - 0.3) })
	}
	if len(cells) != 16 {
		t.Errorf("%d of 16 grid points", len(cells))
	}
	for cell, n := range cells {
		if n != 4 {
			t.Errorf("the grid point %s was tried %d times of 64, want 4", cell, n)
		}
	}
	if len(boxes) != 64 {
		t.Errorf("%d of 64 boxes have a point of the sequence", len(boxes))
	}
	if models < 20 {
		t.Errorf("%d of 64 configurations came from the model of the group without a name", models)
	}
}

// Two groups on one sequence, or on one grid, are not in step with each other.
func TestGroupsOfOneSequenceAreNotInStep(t *testing.T) {
	for method, most := range map[string]int{"sobol": 64, "grid": 16} {
		settings := grouped(numbers(3), []string{"a", "b", ""}, map[string]string{"a": method, "b": method})
		settings.Method = "random"
		cells := map[[2]int]int{}
		for _, a := range ask(t, start(t, settings), 64) {
			cells[[2]int{int(7.999 * number(a.Configuration, "x0")), int(7.999 * number(a.Configuration, "x1"))}]++
		}
		if len(cells) != most {
			t.Errorf("%s: %d of %d cells have a trial", method, len(cells), most)
		}
	}
}

// A kind of parameters is a group when search.groups has it, for those without
// a group of their own.
func TestAKindIsAGroup(t *testing.T) {
	s := numbers(3)
	s.Parameters[0].Kind, s.Parameters[1].Kind = space.System, space.System
	settings := grouped(s, []string{"", "mine", ""}, map[string]string{"system": "grid", "mine": "sobol"})
	settings.Method = "random"
	a := ask(t, start(t, settings), 1)[0]
	for _, want := range []string{"system: the next grid point", "mine: point 1 of", "the others: drawn uniformly"} {
		if !strings.Contains(a.Reason, want) {
			t.Errorf("%q lacks %q", a.Reason, want)
		}
	}
}

// Methods that learn do so in their groups: what two groups contribute adds up,
// so that both find their best.
func TestGroupsLearnTheirShare(t *testing.T) {
	truth := func(c space.Configuration) float64 {
		loss := 0.0
		for i := range 6 {
			x := number(c, fmt.Sprintf("x%d", i)) - 0.2 - 0.1*float64(i)
			loss += x * x
		}
		return -loss
	}
	regret := func(first, second string) float64 {
		settings := grouped(numbers(6), []string{"", "", "", "b", "b", "b"}, map[string]string{"b": second})
		settings.Method, settings.MaxTrials = first, 150
		var regrets []float64
		for seed := range uint64(8) {
			settings.Seed = seed
			regrets = append(regrets, -truth(winner(simulate(t, settings, on(4, truth))).params))
		}
		t.Logf("mean regret of %s and %s: %.4f", first, second, mean(regrets))
		return mean(regrets)
	}
	random := regret("random", "random")
	for _, both := range [][2]string{{"bohb", "tpe"}, {"tpe", "cma-es"}, {"cma-es", "cma-es"}} {
		if got := regret(both[0], both[1]); got > random/2 {
			t.Errorf("the regret %v of %v is more than half of random's %v", got, both, random)
		}
	}
	if half := regret("random", "cma-es"); half > random {
		t.Errorf("the regret %v with one half learned is more than random's %v", half, random)
	}
}

// Combinations that are forbidden across groups, and configurations that were
// tried, are drawn again until nothing is left.
func TestForbiddenAcrossGroups(t *testing.T) {
	choice := func(name string) space.Parameter {
		return space.Parameter{Name: name, Kind: space.Model, Type: space.CategoricalType,
			Values: []space.Value{space.Int(0), space.Int(1), space.Int(2), space.Int(3)}}
	}
	is := func(name string, v int64) space.Condition {
		return space.Condition{Parameter: name, In: []space.Value{space.Int(v)}}
	}
	for _, methods := range [][2]string{{"random", "tpe"}, {"bohb", "cma-es"}, {"sobol", "grid"}, {"grid", "tpe"}, {"gp", "random"}} {
		s := space.Space{
			Parameters: []space.Parameter{choice("a"), choice("b")},
			Forbidden:  []space.Forbidden{{is("a", 1), is("b", 1)}, {is("a", 2), is("b", 3)}, {is("b", 0), is("a", 0)}},
		}
		settings := grouped(s, []string{"", "b"}, map[string]string{"b": methods[1]})
		settings.Method = methods[0]
		method := start(t, settings)
		seen := map[string]bool{}
		for range 13 {
			a := ask(t, method, 1)[0]
			if faults := s.Check(a.Configuration); len(faults) > 0 {
				t.Fatalf("%v: %v", methods, faults)
			}
			seen[a.Configuration.Key()] = true
			measure(t, method, []search.Action{a}, func(c space.Configuration) float64 { return number(c, "a") })
		}
		if len(seen) != 13 {
			t.Errorf("%v: %d different configurations of the 13 that are allowed", methods, len(seen))
		}
	}
}

// A group of few values has them all out at once with many workers: that trials
// are near-duplicates is for the whole configuration to say.
func TestCrowdedGroupsGoOn(t *testing.T) {
	s := numbers(3)
	s.Parameters = append(s.Parameters, space.Parameter{Name: "cores", Kind: space.System, Type: space.IntType, Low: 1, High: 3})
	settings := grouped(s, nil, map[string]string{"system": "tpe"})
	method := start(t, settings)
	for range 20 {
		a := ask(t, method, 1)
		measure(t, method, a, func(c space.Configuration) float64 { return number(c, "x0") + number(c, "cores") })
	}
	for _, a := range ask(t, method, 16) {
		if !strings.Contains(a.Reason, "system: drawn from the model") {
			t.Errorf("trial %d: %s", a.Trial, a.Reason)
		}
	}
}

// One group that has everything is the method alone.
func TestOneGroupIsTheMethod(t *testing.T) {
	settings := grouped(numbers(2), []string{"all", "all"}, map[string]string{"all": "grid"})
	method := start(t, settings)
	if a := ask(t, method, 16)[15]; a.Origin != "grid" {
		t.Errorf("%s: %s", a.Origin, a.Reason)
	}
	actions, err := method.Handle(search.Event{Kind: search.Request})
	if err != nil || actions[0].Kind != search.Wait {
		t.Errorf("after the grid: %v, %v", actions, err)
	}
}

func TestGroupsThatCannotBe(t *testing.T) {
	on := numbers(2)
	on.Parameters[1].When = []space.Condition{{Parameter: "x0", In: []space.Value{space.Float(0.5)}}}
	many := numbers(101)
	for i := range many.Parameters[1:] {
		many.Parameters[i+1].Group = "many"
	}
	for name, c := range map[string]struct {
		settings search.Settings
		paths    string
	}{
		"unknown group":    {grouped(numbers(2), []string{"a", "b"}, map[string]string{"a": "tpe"}), "space.x1.group"},
		"empty group":      {grouped(numbers(2), []string{"a", "a"}, map[string]string{"a": "tpe", "b": "tpe"}), "search.groups.b"},
		"unknown method":   {grouped(numbers(2), []string{"a", "a"}, map[string]string{"a": "bayes"}), "search.groups.a.method"},
		"condition across": {grouped(on, []string{"", "b"}, map[string]string{"b": "tpe"}), "space.x1.when[0].parameter"},
		"bad name":         {grouped(numbers(1), []string{"a b"}, map[string]string{"a b": "tpe"}), "space.x0.group"},
		"too many":         {grouped(many, nil, map[string]string{"many": "sobol"}), "search.groups.many.method"},
		"without groups":   {grouped(numbers(2), []string{"", "b"}, nil), "space.x1.group"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := search.New(c.settings)
			var told *problem.Error
			if !errors.As(err, &told) || told.Code != problem.Invalid {
				t.Fatalf("got %v", err)
			}
			var paths []string
			for _, f := range told.Fields {
				paths = append(paths, f.Path)
			}
			if got := strings.Join(paths, " "); got != c.paths {
				t.Errorf("faults at %s, want %s: %v", got, c.paths, told)
			}
		})
	}
}
