package regret_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/study/regret"
	"github.com/tandem-tune/tandem/study/space"
)

func plane(dimensions int) space.Space {
	var s space.Space
	for i := range dimensions {
		s.Parameters = append(s.Parameters, space.Parameter{Name: fmt.Sprintf("x%d", i), Kind: space.Training, Type: space.FloatType, Low: 0, High: 1})
	}
	return s
}

// drawn are results of a function at random places, all at one rung.
func drawn(t *testing.T, s space.Space, n, rung int, seed uint64, value func(x, y float64) float64) []regret.Observation {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var list []regret.Observation
	for range n {
		c, err := s.Sample(r)
		if err != nil {
			t.Fatal(err)
		}
		x, _ := c["x0"].Number()
		y, _ := c["x1"].Number()
		list = append(list, regret.Observation{Configuration: c, Rung: rung, Score: value(x, y)})
	}
	return list
}

func bowl(x, y float64) float64 { return -(x-0.4)*(x-0.4) - 2*(y-0.7)*(y-0.7) }

func best(list []regret.Observation) float64 {
	most := math.Inf(-1)
	for _, o := range list {
		most = math.Max(most, o.Score)
	}
	return most
}

// The best value of the bowl is 0, so the true regret is what the best result
// lacks. The bound is above it, and falls with what is known.
func TestTheBoundIsAboveTheRegretAndFalls(t *testing.T) {
	s := plane(2)
	for seed := range uint64(10) {
		before := math.Inf(1)
		for _, n := range []int{9, 30, 120} {
			list := drawn(t, s, n, 0, seed, bowl)
			bound, ok := regret.Of(s, 0, list)
			if !ok || bound.Results != n {
				t.Fatalf("seed %d, %d results: %+v, %t", seed, n, bound, ok)
			}
			if bound.Value < -best(list) {
				t.Errorf("seed %d: with %d results the bound is %.4f, the regret %.4f", seed, n, bound.Value, -best(list))
			}
			if n > 9 && bound.Value > before {
				t.Errorf("seed %d: with %d results the bound is %.4f, before it was %.4f", seed, n, bound.Value, before)
			}
			before = bound.Value
		}
		if before > 0.05 {
			t.Errorf("seed %d: the bound is still %.4f with 120 results", seed, before)
		}
	}
}

// What is rough leaves more to gain than what is smooth.
func TestRoughFunctionsKeepAHighBound(t *testing.T) {
	s := plane(2)
	list := drawn(t, s, 40, 0, 3, func(x, y float64) float64 { return math.Sin(40*x) * math.Cos(37*y) })
	if bound, ok := regret.Of(s, 0, list); !ok || bound.Value < 0.5 {
		t.Errorf("the bound of a rough function is %+v, %t", bound, ok)
	}
}

// The bound has the unit of the values, and does not depend on where they are.
func TestTheBoundHasTheUnitOfTheValues(t *testing.T) {
	s := plane(2)
	one, _ := regret.Of(s, 0, drawn(t, s, 40, 0, 5, bowl))
	other, _ := regret.Of(s, 0, drawn(t, s, 40, 0, 5, func(x, y float64) float64 { return 70 + 1000*bowl(x, y) }))
	if math.Abs(other.Value-1000*one.Value) > 1e-6*other.Value {
		t.Errorf("bounds %v and, in a unit a thousand times as small, %v", one.Value, other.Value)
	}
}

// Cheap results lower the bound of the expensive ones.
func TestCheapResultsCount(t *testing.T) {
	s := plane(2)
	top := drawn(t, s, 10, 1, 7, bowl)
	alone, ok := regret.Of(s, 1, top)
	both, okBoth := regret.Of(s, 1, append(drawn(t, s, 100, 0, 8, func(x, y float64) float64 { return 0.8*bowl(x, y) - 1 }), top...))
	if !ok || !okBoth || both.Value > 0.7*alone.Value || both.Value < -best(top) {
		t.Errorf("the bound is %+v alone and %+v with cheap results; the regret %.4f", alone, both, -best(top))
	}
}

func TestWhenThereIsNoBound(t *testing.T) {
	s := plane(2)
	if got := regret.Least(s); got != 9 {
		t.Errorf("two parameters need %d results, want 9", got)
	}
	constant := func(x, y float64) float64 { return 1 }
	diverged := func(x, y float64) float64 { return math.NaN() }
	for name, list := range map[string][]regret.Observation{
		"nothing":          nil,
		"too few":          drawn(t, s, 8, 1, 1, bowl),
		"only below":       drawn(t, s, 50, 0, 1, bowl),
		"all are equal":    drawn(t, s, 50, 1, 1, constant),
		"all diverged":     drawn(t, s, 50, 1, 1, diverged),
		"infinite results": drawn(t, s, 50, 1, 1, func(x, y float64) float64 { return math.Inf(1) }),
	} {
		if bound, ok := regret.Of(s, 1, list); ok {
			t.Errorf("%s: %+v", name, bound)
		}
	}
	some := append(drawn(t, s, 10, 0, 1, diverged), drawn(t, s, 30, 0, 2, bowl)...)
	if bound, ok := regret.Of(s, 0, some); !ok || !(bound.Value > 0) || math.IsInf(bound.Value, 0) {
		t.Errorf("a few diverged: %+v, %t", bound, ok)
	}
}
