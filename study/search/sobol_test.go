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

// numbers is a space of n floats from 0 to 1.
func numbers(n int) space.Space {
	var s space.Space
	for i := range n {
		s.Parameters = append(s.Parameters, space.Parameter{
			Name: fmt.Sprintf("x%d", i), Kind: space.Model, Type: space.FloatType, Low: 0, High: 1,
		})
	}
	return s
}

// ask creates n trials at once, without a measurement in between.
func ask(t *testing.T, method *search.Method, n int) []search.Action {
	t.Helper()
	var created []search.Action
	for range n {
		actions, err := method.Handle(search.Event{Kind: search.Request})
		if err != nil || len(actions) != 1 || actions[0].Kind != search.Create {
			t.Fatalf("%v, %v, want a trial", actions, err)
		}
		created = append(created, actions[0])
	}
	return created
}

func sobolSettings(s space.Space) search.Settings {
	return search.Settings{
		Method: "sobol", Seed: 7, Space: s, Rungs: searchtest.Ladder(1, 3), Eta: 3, Maximize: []bool{true},
	}
}

// Of every 2^k points in a row exactly one lies in each 2^k-th of every axis,
// and a digital shift keeps it so. A wrong direction number breaks it.
func TestSobolFillsEveryAxisEvenly(t *testing.T) {
	const dimensions, points = 64, 256
	var taken [dimensions][points]int
	for _, a := range ask(t, start(t, sobolSettings(numbers(dimensions))), points) {
		for d := range dimensions {
			taken[d][int(number(a.Configuration, fmt.Sprintf("x%d", d))*points)]++
		}
	}
	for d, bins := range taken {
		for bin, n := range bins {
			if n != 1 {
				t.Fatalf("axis %d: %d points in bin %d of %d, want 1", d, n, bin, points)
			}
		}
	}
}

// The first two dimensions are a (0, 2)-sequence: every 2^k points have one in
// each box of the volume 2^-k, whatever its shape.
func TestSobolFillsThePlaneEvenly(t *testing.T) {
	const power = 6
	created := ask(t, start(t, sobolSettings(numbers(2))), 1<<power)
	for wide := range power + 1 {
		boxes := map[[2]int]int{}
		for _, a := range created {
			x := int(math.Ldexp(number(a.Configuration, "x0"), wide))
			y := int(math.Ldexp(number(a.Configuration, "x1"), power-wide))
			boxes[[2]int{x, y}]++
		}
		if len(boxes) != 1<<power {
			t.Errorf("%d of %d boxes have a point when there are %d columns", len(boxes), 1<<power, 1<<wide)
		}
	}
}

// The first points of the sequence as published (in another order, by Gray's
// code), once the shift is taken off again. The last numbers are those of a
// dimension whose polynomial has degree 9.
func TestSobolIsTheSequenceOfJoeAndKuo(t *testing.T) {
	const points = 1 << 11
	created := ask(t, start(t, sobolSettings(numbers(64))), points)
	at := func(point, dimension int) float64 {
		name := fmt.Sprintf("x%d", dimension)
		bits := func(i int) uint32 { return uint32(math.Ldexp(number(created[i].Configuration, name), 32)) }
		return math.Ldexp(float64(bits(point)^bits(0)), -32)
	}
	for point, want := range [][3]float64{
		{0, 0, 0}, {0.5, 0.5, 0.5}, {0.25, 0.75, 0.75}, {0.75, 0.25, 0.25},
		{0.125, 0.625, 0.375}, {0.625, 0.125, 0.875}, {0.375, 0.375, 0.625}, {0.875, 0.875, 0.125},
	} {
		for dimension := range want {
			if got := at(point, dimension); got != want[dimension] {
				t.Errorf("point %d, dimension %d: %v, want %v", point, dimension, got, want[dimension])
			}
		}
	}
	for point, want := range map[int]float64{256: 0.501953125, 512: 0.0400390625, 1024: 0.98876953125} {
		if got := at(point, 63); got != want {
			t.Errorf("point %d, dimension 63: %v, want %v", point, got, want)
		}
	}
}

func TestSobolIsShiftedByTheSeed(t *testing.T) {
	settings := sobolSettings(numbers(2))
	one := ask(t, start(t, settings), 1)[0].Configuration
	settings.Seed++
	if two := ask(t, start(t, settings), 1)[0].Configuration; one["x0"] == two["x0"] || one["x1"] == two["x1"] {
		t.Errorf("two seeds begin at %v and %v", one, two)
	}
}

// Points that are forbidden or were tried before are passed over; when none is
// left, the search goes on with repetitions as a random one does.
func TestSobolPassesOverForbiddenAndTakenPoints(t *testing.T) {
	choice := func(name string, values ...space.Value) space.Parameter {
		return space.Parameter{Name: name, Kind: space.Model, Type: space.CategoricalType, Values: values}
	}
	one, two, three, four := space.Int(1), space.Int(2), space.Int(3), space.Int(4)
	is := func(name string, v space.Value) space.Condition {
		return space.Condition{Parameter: name, In: []space.Value{v}}
	}
	s := space.Space{
		Parameters: []space.Parameter{choice("a", one, two, three, four), choice("b", one, two, three, four)},
		Forbidden:  []space.Forbidden{{is("a", one), is("b", one)}, {is("a", four), is("b", two)}},
	}
	seen := map[string]bool{}
	method := start(t, sobolSettings(s))
	for _, a := range ask(t, method, 14) {
		if faults := s.Check(a.Configuration); len(faults) > 0 || a.Origin != "sobol" {
			t.Fatalf("%s proposed %v: %v", a.Origin, a.Configuration, faults)
		}
		seen[a.Configuration.Key()] = true
	}
	if len(seen) != 14 {
		t.Errorf("%d different configurations of the 14 that are allowed", len(seen))
	}
	if a := ask(t, method, 1)[0]; a.Origin != "random" || !strings.Contains(a.Reason, "tried before") {
		t.Errorf("with the space used up: %s, %q", a.Origin, a.Reason)
	}
}

func TestSobolRefusesMoreDimensionsThanItHas(t *testing.T) {
	if _, err := search.New(sobolSettings(numbers(64))); err != nil {
		t.Fatalf("64 parameters: %v", err)
	}
	_, err := search.New(sobolSettings(numbers(65)))
	var told *problem.Error
	if !errors.As(err, &told) || told.Code != problem.Invalid || len(told.Fields) != 1 ||
		told.Fields[0].Path != "search.method" || !strings.Contains(told.Fields[0].Message, "64 dimensions") {
		t.Fatalf("65 parameters: %v", err)
	}
}
