package pareto_test

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/pareto"
)

// points draws points that are often equal in some objective.
func points(most int) *rapid.Generator[[]pareto.Point] {
	return rapid.Custom(func(t *rapid.T) []pareto.Point {
		m := rapid.IntRange(1, 4).Draw(t, "objectives")
		value := rapid.OneOf(rapid.SampledFrom([]float64{-1, 0, 0.5, 1, 2}), rapid.Float64Range(-2, 2))
		return rapid.SliceOfN(rapid.Map(rapid.SliceOfN(value, m, m), func(v []float64) pareto.Point { return v }), 0, most).Draw(t, "points")
	})
}

func TestDominanceIsAPartialOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(1, 4).Draw(t, "objectives")
		value := rapid.SampledFrom([]float64{-1, 0, 1, math.Inf(1), math.Inf(-1)})
		draw := func(name string) pareto.Point { return rapid.SliceOfN(value, m, m).Draw(t, name) }
		a, b, c := draw("a"), draw("b"), draw("c")
		if pareto.Dominates(a, a) {
			t.Fatal("a point dominates itself")
		}
		if pareto.Dominates(a, b) && pareto.Dominates(b, a) {
			t.Fatal("two points dominate each other")
		}
		if pareto.Dominates(a, b) && pareto.Dominates(b, c) && !pareto.Dominates(a, c) {
			t.Fatal("dominance is not transitive")
		}
		if m == 1 && pareto.Dominates(a, b) != (a[0] > b[0]) {
			t.Fatal("of one value the larger does not dominate")
		}
	})
}

// peel finds the fronts by their definition.
func peel(all []pareto.Point) [][]int {
	left := map[int]bool{}
	for i := range all {
		left[i] = true
	}
	var fronts [][]int
	for len(left) > 0 {
		var front []int
		for i := range all {
			beaten := !left[i]
			for j := range left {
				beaten = beaten || pareto.Dominates(all[j], all[i])
			}
			if !beaten {
				front = append(front, i)
			}
		}
		for _, i := range front {
			delete(left, i)
		}
		fronts = append(fronts, front)
	}
	return fronts
}

func TestFrontsAreThoseOfTheDefinition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := points(25).Draw(t, "all")
		if got, want := pareto.Fronts(all), peel(all); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestLayersAreTheSameInWhateverOrderThePointsCome(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := points(25).Draw(t, "all")
		var straight, shuffled pareto.Layers
		for i, point := range all {
			before := straight.Order(nil)
			if kept := straight.Add(i, point); !slices.Equal(before[:kept], straight.Order(nil)[:kept]) {
				t.Fatalf("the first %d changed with point %d: %v, %v", kept, i, before, straight.Order(nil))
			}
		}
		for _, i := range rapid.Permutation(iota(len(all))).Draw(t, "order") {
			shuffled.Add(i, all[i])
		}
		got := straight.Order(nil)
		if !slices.Equal(got, shuffled.Order(nil)) || straight.Len() != len(all) {
			t.Fatalf("%v, %v", got, shuffled.Order(nil))
		}
		var want []int
		for _, front := range peel(all) {
			var those []pareto.Point
			for _, i := range front {
				those = append(those, all[i])
			}
			lonely := map[int]float64{}
			for place, distance := range pareto.Crowding(those) {
				lonely[front[place]] = distance
			}
			slices.SortStableFunc(front, func(a, b int) int { return cmp.Compare(lonely[b], lonely[a]) })
			want = append(want, front...)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func iota(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func TestCrowdingPutsTheEndsFirstAndTheLonelyNext(t *testing.T) {
	t.Parallel()
	front := []pareto.Point{{0, 10}, {1, 9}, {2, 8}, {6, 4}, {10, 0}}
	inf := math.Inf(1)
	if got, want := pareto.Crowding(front), []float64{inf, 0.4, 1, 1.6, inf}; !near(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := pareto.Crowding([]pareto.Point{{1, 2}, {1, 2}, {1, 2}}); !near(got, []float64{inf, 0, inf}) {
		t.Errorf("equal points: %v", got)
	}
}

func TestFarnessIsTheDistanceFromTheIdeal(t *testing.T) {
	t.Parallel()
	front := []pareto.Point{{0, 100}, {8, 80}, {10, 0}}
	if got, want := pareto.Farness(front, []pareto.Range{{10, 0}, {100, 0}}), []float64{1, math.Hypot(0.2, 0.2), 1}; !near(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	vast := []pareto.Point{{math.Inf(1), 0}, {0, 1}}
	if got := pareto.Farness(vast, pareto.Usual(vast, [][]int{{0, 1}})); !near(got, []float64{1, 0}) {
		t.Errorf("an infinity: %v", got)
	}
}

func near(got, want []float64) bool {
	return slices.EqualFunc(got, want, func(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-12 })
}

func TestKnownHypervolumes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		points    []pareto.Point
		reference pareto.Point
		want      float64
	}{
		{"nothing", nil, pareto.Point{0, 0}, 0},
		{"one objective", []pareto.Point{{3}, {5}}, pareto.Point{1}, 4},
		{"two steps", []pareto.Point{{1, 3}, {3, 1}}, pareto.Point{0, 0}, 5},
		{"three steps and one below", []pareto.Point{{3, 1}, {1, 3}, {2, 2}, {1, 1}}, pareto.Point{0, 0}, 6},
		{"outside of the reference", []pareto.Point{{3, -1}, {2, 2}, {0, 9}}, pareto.Point{0, 0}, 4},
		{"three bars of a cube", []pareto.Point{{2, 1, 1}, {1, 2, 1}, {1, 1, 2}}, pareto.Point{0, 0, 0}, 4},
		{"a cube of four dimensions", []pareto.Point{{2, 2, 2, 2}}, pareto.Point{1, 1, 0, 0}, 4},
		{"four bars", []pareto.Point{{2, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 2, 1}, {1, 1, 1, 2}}, pareto.Point{0, 0, 0, 0}, 5},
	} {
		if got := pareto.Hypervolume(c.points, c.reference); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// counted is the hypervolume by inclusion and exclusion of every set of boxes.
func counted(all []pareto.Point, reference pareto.Point) float64 {
	total := 0.0
	for set := 1; set < 1<<len(all); set++ {
		corner := make(pareto.Point, len(reference))
		for i := range corner {
			corner[i] = math.Inf(1)
		}
		sign := -1.0
		for i, point := range all {
			if set&(1<<i) == 0 {
				continue
			}
			sign = -sign
			for j, value := range point {
				corner[j] = min(corner[j], value)
			}
		}
		volume := sign
		for j, value := range corner {
			volume *= max(0, value-reference[j])
		}
		total += volume
	}
	return total
}

func TestHypervolumeAgreesWithBruteForce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := points(8).Draw(t, "all")
		m := 2
		if len(all) > 0 {
			m = len(all[0])
		}
		reference := pareto.Point(rapid.SliceOfN(rapid.SampledFrom([]float64{-2, -1, 0, 0.5}), m, m).Draw(t, "reference"))
		got, want := pareto.Hypervolume(all, reference), counted(all, reference)
		if math.Abs(got-want) > 1e-9 {
			t.Fatalf("got %v, want %v", got, want)
		}
		var front []pareto.Point
		if len(all) > 0 {
			for _, i := range pareto.Fronts(all)[0] {
				front = append(front, all[i])
			}
		}
		if alone := pareto.Hypervolume(front, reference); math.Abs(got-alone) > 1e-9 {
			t.Fatalf("the front alone has %v, everything %v", alone, got)
		}
	})
}

func BenchmarkLayers(b *testing.B) {
	var l pareto.Layers
	for i := range 10_000 {
		l.Add(i, pareto.Point{math.Sin(float64(i)), math.Cos(float64(3 * i)), math.Sin(float64(7 * i))})
	}
	for i := 10_000; b.Loop(); i++ {
		l.Add(i, pareto.Point{math.Sin(float64(i)), math.Cos(float64(3 * i)), math.Sin(float64(7 * i))})
		l.Order(nil)
	}
}

// One point far from the others, wherever it is, does not change what is usual, and
// nine that are spread evenly are all usual.
func TestNoSinglePointStretchesTheUsualRanges(t *testing.T) {
	t.Parallel()
	var points []pareto.Point
	for i := range 9 {
		points = append(points, pareto.Point{float64(i), float64(8 - i)})
	}
	want := []pareto.Range{{Best: 8}, {Best: 8}}
	if got := pareto.Usual(points, pareto.Fronts(points)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	inf := math.Inf(1)
	for _, far := range []pareto.Point{{-1000, 9}, {9, -1000}, {1e300, -5}, {inf, -5}, {-5, inf}, {-1e300, -1e300}, {-40, 4}} {
		with := append(slices.Clone(points), far)
		if got := pareto.Usual(with, pareto.Fronts(with)); !slices.Equal(got, want) {
			t.Errorf("with %v: got %v, want %v", far, got, want)
		}
	}
}

func TestDifferencesInsideABandCannotBeTold(t *testing.T) {
	t.Parallel()
	judged := func(x, y, low, high float64) pareto.Judged {
		return pareto.Judged{Point: pareto.Point{x, y}, Bands: []pareto.Band{{x, x}, {low, high}}}
	}
	a, b, c := judged(1, 5, 1, 9), judged(2, 4, 4, 4), judged(3, 0.5, 0.5, 0.5)
	better, worse, tied := pareto.Compare(a, b)
	if len(better) != 0 || !slices.Equal(worse, []int{0}) || !slices.Equal(tied, []int{1}) {
		t.Errorf("better %v, worse %v, tied %v", better, worse, tied)
	}
	for _, one := range []struct {
		near []pareto.Judged
		want int
	}{
		{[]pareto.Judged{a, b, c}, 1}, {[]pareto.Judged{a, c, b}, 2}, {[]pareto.Judged{b, a, c}, 0}, {[]pareto.Judged{c, a, b}, 0}, {[]pareto.Judged{a}, 0},
		{[]pareto.Judged{a, b, judged(2.5, 3, 3, 3)}, 1}, // both are better than the nearest; of the two it is the nearer
	} {
		if got := pareto.Choose(one.near); got != one.want {
			t.Errorf("of %v: %d, want %d", one.near, got, one.want)
		}
	}
}
