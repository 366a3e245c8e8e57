package report

import (
	"math"
	"slices"
	"testing"
)

func TestTicksAreRound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    scale
		want []float64
	}{
		{scale{low: 0, high: 1}, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{scale{low: -3, high: 47}, []float64{0, 10, 20, 30, 40}},
		{scale{low: 1e-4, high: 1e-1, log: true}, []float64{1e-4, 1e-3, 1e-2, 1e-1}},
		{scale{low: 2, high: 5, log: true}, []float64{2, 5}},
		{scale{low: 3, high: 3}, []float64{3}},
		{scale{low: 0, high: 200, seconds: true}, []float64{0, 60, 120, 180}},
		{scale{low: 0, high: 2, seconds: true}, []float64{0, 0.5, 1, 1.5, 2}},
		{scale{low: 0, high: 5 * 86400, seconds: true}, []float64{0, 86400, 2 * 86400, 3 * 86400, 4 * 86400, 5 * 86400}},
	} {
		got := c.s.ticks(5)
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Max(1, math.Abs(b)) }) {
			t.Errorf("from %g to %g: %v, want %v", c.s.low, c.s.high, got, c.want)
		}
	}
}

func TestAFairRange(t *testing.T) {
	t.Parallel()
	values := []float64{1, 2, 3, 4, 5, 6, 7, 1e9, math.NaN(), math.Inf(1)}
	low, high, outside := fairRange(values, 1)
	if low > 1 || low < -1 || high < 7 || high > 40 || outside != 3 {
		t.Errorf("from %g to %g with %d outside", low, high, outside)
	}
	if _, high, outside := fairRange(values, 1e9); high < 1e9 || outside != 2 {
		t.Errorf("what must be inside is not: up to %g, %d outside", high, outside)
	}
	if low, high, outside := fairRange(nil, math.NaN()); low >= high || outside != 0 {
		t.Errorf("of nothing: from %g to %g", low, high)
	}
	if low, high, _ := fairRange([]float64{5, 5}, 5); !(low < 5 && high > 5) {
		t.Errorf("of one value: from %g to %g", low, high)
	}
}

func TestEvenlyKeepsTheLast(t *testing.T) {
	t.Parallel()
	numbers := make([]int, 1000)
	for i := range numbers {
		numbers[i] = i
	}
	drawn := evenly(numbers, 7)
	if len(drawn) != 7 || drawn[6] != 999 || !slices.IsSorted(drawn) {
		t.Errorf("drawn are %v", drawn)
	}
	if got := evenly(numbers[:5], 7); len(got) != 5 {
		t.Errorf("of five, %v", got)
	}
}

func TestPlacesOnAScale(t *testing.T) {
	t.Parallel()
	s := scale{low: 1, high: 100, from: 200, to: 0, log: true}
	for value, want := range map[float64]float64{1: 200, 10: 100, 100: 0, 1000: 0} {
		if got := s.at(value); math.Abs(got-want) > 1e-9 {
			t.Errorf("%g is at %g, want %g", value, got, want)
		}
	}
}

func TestTicksAreShort(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]string{0: "0", math.Copysign(0, -1): "0", 15_000: "15000", 0.1 + 0.2: "0.3", 1e-4: "0.0001", 1e-5: "1e-05", 2.5e6: "2.5e+06", -1234.56: "-1235"} {
		if got := tick(value); got != want {
			t.Errorf("%g is %q, want %q", value, got, want)
		}
	}
}
