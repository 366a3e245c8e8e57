package regression

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Normal95 is how many standard deviations a 95% interval of a normal variable
// reaches to either side.
const Normal95 = 1.959964

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
