package approximation

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Pair is what one configuration came to with less and with more data. Values
// are such that larger ones are better.
type Pair struct {
	// Less and More are amounts of data: epochs times the share of it that each saw.
	Less, More float64
	Low, High  float64
}

// Curve says what more data brings: so much for each factor of e, near the
// amounts of its pairs. It is an estimate.
type Curve struct {
	// Slope is the mean over the pairs, Error its standard error.
	Slope, Error float64
	Pairs        int
}

// leastPairs is from how many pairs on a curve is worth something.
const leastPairs = 3

// ErrFewPairs is of too few results to know what data are worth.
var ErrFewPairs = fmt.Errorf("fewer than %d configurations have results with different amounts of data", leastPairs)

// FitCurve is the curve of the pairs. The thesis measures what dropping costs
// offline (figure 4.5); here it is read from the results that a search has of one
// configuration with several budgets. The error is ErrFewPairs, or names the
// pair that makes no sense.
//
// Learning curves flatten, so that the slope between smaller budgets is larger
// than that at the budget in question: the loss comes out too high rather than
// too low, as long as the pairs are not from above it.
func FitCurve(pairs []Pair) (Curve, error) {
	if len(pairs) < leastPairs {
		return Curve{}, ErrFewPairs
	}
	c := Curve{Pairs: len(pairs)}
	slopes := make([]float64, len(pairs))
	for i, pair := range pairs {
		slopes[i] = (pair.High - pair.Low) / math.Log(pair.More/pair.Less)
		if !(pair.Less > 0 && pair.More > pair.Less) || math.IsNaN(slopes[i]) || math.IsInf(slopes[i], 0) {
			return Curve{}, fmt.Errorf("pair %d is of %g with %g of the data and %g with %g: amounts must rise from above 0, and values must be finite", i, pair.Low, pair.Less, pair.High, pair.More)
		}
		c.Slope += slopes[i] / float64(len(pairs))
	}
	for _, slope := range slopes {
		c.Error += (slope - c.Slope) * (slope - c.Slope)
	}
	c.Error = math.Sqrt(c.Error / float64(len(pairs)-1) / float64(len(pairs)))
	return c, nil
}

// Loss is what leaving out so much of the data costs in the mean; never negative.
func (c Curve) Loss(drop float64) float64 { return max(0, -c.Slope*math.Log1p(-drop)) }

// Bound is what it costs at most, with 95% confidence as far as the slopes are normal
// (Student's t: three pairs say little of how much slopes differ).
func (c Curve) Bound(drop float64) float64 {
	times := distuv.StudentsT{Sigma: 1, Nu: float64(c.Pairs - 1)}.Quantile(0.95)
	return max(0, -(c.Slope+times*c.Error)*math.Log1p(-drop))
}
