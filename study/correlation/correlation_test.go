package correlation_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/correlation"
)

func TestSpearman(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range []struct {
		name string
		x, y []float64
		want float64
	}{
		{"the same order", []float64{1, 2, 3, 4}, []float64{10, 20, 30, 1000}, 1},
		{"the other way round", []float64{1, 2, 3, 4}, []float64{4, 3, 2, 1}, -1},
		// 1 - 6·Σd²/(n(n²-1)) with d = 1, -1, 1, -1, 0.
		{"neighbours changed places", []float64{1, 2, 3, 4, 5}, []float64{2, 1, 4, 3, 5}, 1 - 6.0*4/(5*24)},
		// Ranks 1.5, 1.5, 3 against 1, 2, 3: Pearson's √3/2.
		{"equal values share their rank", []float64{7, 7, 9}, []float64{1, 2, 3}, math.Sqrt(3) / 2},
		{"a number that is none is the worst", []float64{nan, 2, 3}, []float64{1, 2, 3}, 1},
		{"infinities are values", []float64{math.Inf(-1), 2, math.Inf(1)}, []float64{1, 2, 3}, 1},
		{"one side is constant", []float64{1, 1, 1}, []float64{1, 2, 3}, nan},
		{"one pair", []float64{1}, []float64{1}, nan},
		{"nothing", nil, nil, nan},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := correlation.Spearman(c.x, c.y)
			if math.Abs(got-c.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestTooLittleIsNoEstimate(t *testing.T) {
	t.Parallel()
	for name, pairs := range map[string][]correlation.Pair{
		"three pairs":     {{1, 1}, {2, 2}, {3, 3}},
		"all equal below": {{1, 1}, {1, 2}, {1, 3}, {1, 4}},
		"all diverged":    {{1, math.NaN()}, {2, math.NaN()}, {3, math.NaN()}, {4, math.NaN()}},
	} {
		if got, ok := correlation.Between([]float64{1, 2, 3, 4}, pairs); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// sample draws trials of two normal scores with the correlation; the better
// third goes up.
func sample(r *rand.Rand, trials int, rho float64) (all []float64, everybody, up []correlation.Pair) {
	for range trials {
		low := r.NormFloat64()
		pair := correlation.Pair{Lower: low, Upper: rho*low + math.Sqrt(1-rho*rho)*r.NormFloat64()}
		all, everybody = append(all, low), append(everybody, pair)
	}
	up = slices.Clone(everybody)
	slices.SortFunc(up, func(a, b correlation.Pair) int {
		if a.Lower > b.Lower {
			return -1
		}
		return 1
	})
	return all, everybody, up[:trials/3]
}

func TestSelectionHidesAgreementAndTheCorrectionFindsIt(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, rho := range []float64{0, 0.5, 0.8, 0.95} {
		all, everybody, up := sample(r, 30_000, rho)
		whole, _ := correlation.Between(all, everybody)
		seen, ok := correlation.Between(all, up)
		if !ok || seen.Pairs != 10_000 || seen.All != 30_000 {
			t.Fatalf("%+v, %t", seen, ok)
		}
		if math.Abs(whole.Corrected-whole.Rho) > 0.002 {
			t.Errorf("rho %g: nobody was left out, and %.3f was corrected to %.3f", rho, whole.Rho, whole.Corrected)
		}
		if math.Abs(seen.Corrected-whole.Rho) > 0.03 {
			t.Errorf("rho %g: %.3f among all, and %.3f was corrected to %.3f", rho, whole.Rho, seen.Rho, seen.Corrected)
		}
		if rho > 0 && seen.Rho > whole.Rho-0.02 {
			t.Errorf("rho %g: %.3f among all, %.3f among the chosen", rho, whole.Rho, seen.Rho)
		}
	}
}

func TestIntervalsHoldWhatTheyPromise(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		rho   float64
		pairs int
	}{{0, 8}, {0.5, 20}, {0.8, 40}, {0.95, 6}, {0.95, 8}} {
		truth := 6 / math.Pi * math.Asin(c.rho/2) // of normal scores
		inside := 0
		const rounds = 2_000
		for range rounds {
			all, everybody, _ := sample(r, c.pairs, c.rho)
			e, _ := correlation.Between(all, everybody)
			if e.Low <= truth && truth <= e.High {
				inside++
			}
		}
		if share := float64(inside) / rounds; share < 0.92 || share > 0.985 {
			t.Errorf("%d pairs with correlation %.2f: %.3f of the intervals hold it", c.pairs, truth, share)
		}
	}
}

func TestEstimatesAreOrderedAndSymmetric(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Float64Range(-10, 10)
		n := rapid.IntRange(4, 30).Draw(t, "pairs")
		var all []float64
		var pairs []correlation.Pair
		for range n {
			pair := correlation.Pair{Lower: value.Draw(t, "lower"), Upper: value.Draw(t, "upper")}
			all, pairs = append(all, pair.Lower), append(pairs, pair)
		}
		for range rapid.IntRange(0, 30).Draw(t, "left below") {
			all = append(all, value.Draw(t, "left"))
		}
		e, ok := correlation.Between(all, pairs)
		if !ok {
			return
		}
		for _, triple := range [][3]float64{{e.Low, e.Rho, e.High}, {e.CorrectedLow, e.Corrected, e.CorrectedHigh}} {
			if !(-1 <= triple[0] && triple[0] <= triple[1]+1e-9 && triple[1] <= triple[2]+1e-9 && triple[2] <= 1) {
				t.Fatalf("%+v", e)
			}
		}
		slices.Reverse(pairs)
		slices.Reverse(all)
		again, _ := correlation.Between(all, pairs)
		if math.Abs(again.Rho-e.Rho) > 1e-9 || math.Abs(again.Corrected-e.Corrected) > 1e-9 {
			t.Fatalf("another order changes %+v into %+v", e, again)
		}
	})
}
