package objective

import "math"

// Bounds are what a number must keep within; nil is no bound.
type Bounds struct{ Min, Max *float64 }

// Violation is by how much the number misses the bounds, in parts of the
// bound's size (of 1 for a bound at 0); 0 if it keeps to them, and infinity for
// NaN, of which nothing is known.
func (b Bounds) Violation(number float64) float64 {
	switch {
	case math.IsNaN(number):
		return math.Inf(1)
	case b.Max != nil && number > *b.Max:
		return beyond(number-*b.Max, *b.Max)
	case b.Min != nil && number < *b.Min:
		return beyond(*b.Min-number, *b.Min)
	}
	return 0
}

// beyond is the relative violation, which is never so small that it vanishes:
// a number beyond a bound is infeasible.
func beyond(distance, bound float64) float64 {
	size := math.Abs(bound)
	if size == 0 {
		size = 1
	}
	return max(distance/size, math.SmallestNonzeroFloat64)
}
