package regression

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Normal95 is how many standard deviations a 95% interval of a normal variable
// reaches to either side.
const Normal95 = 1.959964

// Comparison is the difference of two means, with its interval.
type Comparison struct {
	Difference, Low, High float64
	// Each is how many values of either went into it.
	Each int
}

// Separated reports whether the interval has no zero in it.
func (c Comparison) Separated() bool { return c.Low > 0 || c.High < 0 }

// Compare compares two means by Welch's t test, from as many values of each as both have.
// The interval holds with 95% for all of the comparisons that are made at once, and
// whichever of the looks at them after each further value is the last (Bonferroni). It is
// infinite for fewer than two values of each.
func Compare(a, b []float64, comparisons, looks int) Comparison {
	c := Comparison{Each: min(len(a), len(b)), Low: math.Inf(-1), High: math.Inf(1)}
	if c.Each < 2 {
		return c
	}
	n := float64(c.Each)
	meanA, varianceA := stat.MeanVariance(a[:c.Each], nil)
	meanB, varianceB := stat.MeanVariance(b[:c.Each], nil)
	c.Difference = meanA - meanB
	spread, half := (varianceA+varianceB)/n, 0.0
	if spread > 0 {
		freedom := (n - 1) * (varianceA + varianceB) * (varianceA + varianceB) / (varianceA*varianceA + varianceB*varianceB)
		level := 0.05 / float64(comparisons*looks)
		half = distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(1-level/2) * math.Sqrt(spread)
	}
	c.Low, c.High = c.Difference-half, c.Difference+half
	return c
}

// HalfWidth is half the width of the 95% interval of the mean of count values, by
// Student's t: squares is the sum of their squared deviations from it. It is infinite
// for fewer than two values.
func HalfWidth(squares float64, count int) float64 {
	if count < 2 {
		return math.Inf(1)
	}
	n := float64(count)
	return distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975) * math.Sqrt(squares/(n-1)/n)
}
