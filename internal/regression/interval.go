package regression

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Normal95 is how many standard deviations a 95% interval of a normal variable
// reaches to either side.
const Normal95 = 1.959964

// Comparison is the mean of differences, with its interval.
type Comparison struct {
	Difference, Low, High float64
	// Pairs is how many differences went into it.
	Pairs int
}

// Separated reports whether the interval has no zero in it.
func (c Comparison) Separated() bool { return c.Low > 0 || c.High < 0 }

// Compare compares values that were measured in turn, pair by pair, by Student's t: what
// drifts meanwhile meets both of a pair. The interval holds with 95% for all of the
// comparisons that are made at once, and whichever of the looks at them after each further
// pair is the last (Bonferroni). It is infinite for fewer than two pairs.
func Compare(a, b []float64, comparisons, looks int) Comparison {
	c := Comparison{Pairs: min(len(a), len(b)), Low: math.Inf(-1), High: math.Inf(1)}
	if c.Pairs < 2 {
		return c
	}
	differences := make([]float64, c.Pairs)
	for i := range differences {
		differences[i] = a[i] - b[i]
	}
	mean, deviation := stat.MeanStdDev(differences, nil)
	n := float64(c.Pairs)
	half := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(1-0.025/float64(comparisons*looks)) * deviation / math.Sqrt(n)
	c.Difference, c.Low, c.High = mean, mean-half, mean+half
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
