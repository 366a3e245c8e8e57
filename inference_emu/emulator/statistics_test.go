package emulator

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPercentilesAreOfTheNearestRank(t *testing.T) {
	var hundred []float64
	for at := range 100 {
		hundred = append(hundred, float64(100-at))
	}
	l := latencyOf(hundred)
	if l.P50 != 50 || l.P90 != 90 || l.P99 != 99 || l.Min != 1 || l.Max != 100 || l.Mean != 50.5 {
		t.Errorf("got %+v", l)
	}
	if math.Abs(l.Deviation-29.011) > 0.001 {
		t.Errorf("the standard deviation of 1 to 100 is 29.011, got %g", l.Deviation)
	}
	if one := latencyOf([]float64{2}); one.P50 != 2 || one.P99 != 2 || one.Deviation != 0 || one.MedianLow != 2 {
		t.Errorf("of a single run: %+v", one)
	}
	// An outlier changes no percentile but the last ones.
	hundred[0] = 1e9
	if l := latencyOf(hundred); l.P50 != 50 || l.P90 != 90 {
		t.Errorf("with an outlier: %+v", l)
	}
}

// The interval of the median holds it in at least 95 of 100 samples of a skewed
// distribution, but for chance.
func TestTheMediansIntervalHoldsIt(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{10, 31, 200} {
		held := 0
		const samples = 2000
		for range samples {
			var runs []float64
			for range n {
				runs = append(runs, math.Exp(random.NormFloat64())) // its median is 1
			}
			if l := latencyOf(runs); l.MedianLow <= 1 && l.MedianHigh >= 1 {
				held++
			}
		}
		if part := float64(held) / samples; part < 0.94 || part > 0.999 {
			t.Errorf("of %d runs the interval holds the median in %.3f", n, part)
		}
	}
}

func TestRepeatStopsWhenItIsExactEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := rapid.SliceOfN(rapid.Float64Range(0.001, 0.1), 1, 50).Draw(t, "runs")
		p := Precision{RelativeWidth: rapid.Float64Range(0.01, 0.5).Draw(t, "width"), MinRuns: rapid.IntRange(1, 30).Draw(t, "least"), Seconds: rapid.Float64Range(0.01, 5).Draw(t, "seconds")}
		at, spent := 0, 0.0
		runs, precise, err := repeat(func() (float64, error) {
			one := took[at%len(took)]
			at, spent = at+1, spent+one
			return one, nil
		}, p)
		if err != nil || len(runs) != at {
			t.Fatalf("%d of %d runs, %v", len(runs), at, err)
		}
		if precise && (latencyOf(runs).relativeWidth() > p.RelativeWidth || len(runs) < p.MinRuns) {
			t.Errorf("called precise with %d runs and a width of %g", len(runs), latencyOf(runs).relativeWidth())
		}
		if !precise && spent < p.Seconds {
			t.Errorf("stopped after %g of %g s without being precise", spent, p.Seconds)
		}
		if spent-runs[len(runs)-1] >= p.Seconds {
			t.Errorf("went on after the time was up: %g of %g s", spent, p.Seconds)
		}
	})
}

func TestWarmUp(t *testing.T) {
	steady := func() (float64, error) { return 0.01, nil }
	if runs, settled, err := warmUp(steady, 1); runs != 2*warmUpRuns || !settled || err != nil {
		t.Errorf("steady from the start: %d runs, settled %v, %v", runs, settled, err)
	}
	next := 1.0
	falling := func() (float64, error) { next *= 0.9; return next, nil }
	if runs, settled, _ := warmUp(falling, 3); settled || runs < 3 {
		t.Errorf("still falling: %d runs, settled %v", runs, settled)
	}
	if _, _, err := warmUp(func() (float64, error) { return 0, errors.ErrUnsupported }, 1); err == nil {
		t.Error("an error is lost")
	}
	if runs, _, _ := warmUp(func() (float64, error) { return 9, nil }, 1); runs != 1 {
		t.Errorf("one run is over the time, %d were made", runs)
	}
}

// Whatever a file says, reading names from it ends and stays within its bounds.
func TestNamesOfBrokenFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inputs, outputs := declarations(rapid.SliceOf(rapid.Byte()).Draw(t, "file"))
		found := slices.Concat(inputs, outputs)
		if len(found) > 2*maxDeclared || slices.ContainsFunc(found, func(d declared) bool { return len(d.dimensions) > maxDimensions }) {
			t.Errorf("found %d", len(found))
		}
	})
}
