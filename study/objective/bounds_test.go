package objective_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/objective"
)

func TestViolationIsRelativeToTheBound(t *testing.T) {
	t.Parallel()
	at := func(bound float64) *float64 { return &bound }
	for _, c := range []struct {
		bounds       objective.Bounds
		number, want float64
	}{
		{objective.Bounds{Max: at(20)}, 20, 0},
		{objective.Bounds{Max: at(20)}, 25, 0.25},
		{objective.Bounds{Min: at(0.5)}, 0.4, 0.2},
		{objective.Bounds{Min: at(-4)}, -5, 0.25},
		{objective.Bounds{Max: at(0)}, 3, 3},
		{objective.Bounds{Min: at(1), Max: at(2)}, 1.5, 0},
		{objective.Bounds{Min: at(1), Max: at(2)}, 3, 0.5},
		{objective.Bounds{Max: at(20)}, math.Inf(-1), 0},
		{objective.Bounds{Max: at(20)}, math.Inf(1), math.Inf(1)},
		{objective.Bounds{Max: at(20)}, math.NaN(), math.Inf(1)},
	} {
		if got := c.bounds.Violation(c.number); got != c.want && math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v misses %v by %v, want %v", c.number, c.bounds, got, c.want)
		}
	}
}

func TestWhatIsBeyondABoundIsNeverFeasible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.Float64Range(-1e300, 1e300).Draw(t, "bound")
		number := math.Nextafter(bound, math.Inf(1))
		if got := (objective.Bounds{Max: &bound}).Violation(number); !(got > 0) {
			t.Fatalf("%v is feasible below %v: %v", number, bound, got)
		}
		if got := (objective.Bounds{Min: &number}).Violation(bound); !(got > 0) {
			t.Fatalf("%v is feasible above %v: %v", bound, number, got)
		}
	})
}
