package regression_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/internal/regression"
)

// claims is how often two means differ beyond chance at one of the looks, where the
// second is larger by the difference, in standard deviations.
func claims(difference float64, of, looks int) float64 {
	source, claimed := rand.New(rand.NewPCG(7, 11)), 0
	for range of {
		var a, b []float64
		for range looks + 1 {
			a, b = append(a, source.NormFloat64()), append(b, difference+source.NormFloat64())
			if regression.Compare(b, a, 1, looks).Separated() {
				claimed++
				break
			}
		}
	}
	return float64(claimed) / float64(of)
}

func TestEqualMeansAreRarelyToldApart(t *testing.T) {
	t.Parallel()
	if share := claims(0, 4000, 6); share > 0.05 {
		t.Errorf("%.1f%% of equal means are told apart, at most 5%% may be", 100*share)
	}
	if share := claims(5, 400, 6); share < 0.95 {
		t.Errorf("%.1f%% of means that are five deviations apart are told apart", 100*share)
	}
}

func TestComparisonsTellWhatTheyKnow(t *testing.T) {
	t.Parallel()
	if c := regression.Compare([]float64{3}, []float64{1, 2}, 1, 1); c.Pairs != 1 || c.Separated() || !math.IsInf(c.High, 1) {
		t.Errorf("of one value: %+v", c)
	}
	if c := regression.Compare([]float64{3, 3}, []float64{1, 1}, 1, 1); c.Difference != 2 || c.Low != 2 || !c.Separated() {
		t.Errorf("without a spread: %+v", c)
	}
	// Differences of 5, 6 and 7: two degrees of freedom, a standard error of 1/sqrt(3) and
	// Student's t of 4.303.
	if c := regression.Compare([]float64{10, 12, 14}, []float64{5, 6, 7}, 1, 1); math.Abs(c.Low-3.516) > 0.001 || math.Abs(c.High-8.484) > 0.001 {
		t.Errorf("the interval is %+v", c)
	}
	if c := regression.Compare([]float64{math.NaN(), 3}, []float64{1, 1}, 1, 1); c.Separated() {
		t.Errorf("of no number: %+v", c)
	}
}
