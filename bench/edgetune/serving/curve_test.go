package serving_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/bench/edgetune/serving"
)

func TestCurveFaultsNameTheirPoint(t *testing.T) {
	for name, one := range map[string]struct {
		points []serving.Point
		want   string
	}{
		"empty":               {nil, "curve: has no points"},
		"no batch 1":          {[]serving.Point{{Batch: 2, Seconds: 1}}, "curve[0].batch: the first point must be batch 1"},
		"unsorted":            {[]serving.Point{{Batch: 1, Seconds: 1}, {Batch: 8, Seconds: 1}, {Batch: 4, Seconds: 1}}, "curve[2].batch: must be above that of the point before, 8"},
		"twice":               {[]serving.Point{{Batch: 1, Seconds: 1}, {Batch: 1, Seconds: 1}}, "curve[1].batch: must be above"},
		"too large":           {[]serving.Point{{Batch: 1, Seconds: 1}, {Batch: 1 << 20, Seconds: 1}}, "curve[1].batch: must be from 1 to 65536"},
		"no time":             {[]serving.Point{{Batch: 1, Seconds: 1}, {Batch: 2}}, "curve[1].seconds: batch 2: must be a finite number above 0 (got 0)"},
		"not a number":        {[]serving.Point{{Batch: 1, Seconds: math.NaN()}}, "curve[0].seconds: batch 1"},
		"infinite":            {[]serving.Point{{Batch: 1, Seconds: math.Inf(1)}}, "curve[0].seconds: batch 1"},
		"negative energy":     {[]serving.Point{{Batch: 1, Seconds: 1, Joules: -1}}, "curve[0].joules: batch 1"},
		"some energies":       {[]serving.Point{{Batch: 1, Seconds: 1, Joules: 1}, {Batch: 2, Seconds: 1}}, "curve[1].joules: batch 2: give the joules of all points or of none"},
		"infinite deviation":  {[]serving.Point{{Batch: 1, Seconds: 1, Deviation: math.Inf(1)}}, "curve[0].deviation: batch 1"},
		"several at the same": {[]serving.Point{{Batch: 1}, {Batch: 2}}, "curve[1].seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serving.NewCurve(one.points)
			if err == nil || !strings.Contains(err.Error(), one.want) {
				t.Errorf("got %v, want it to say %q", err, one.want)
			}
		})
	}
}

func TestCurveIsLinearBetweenPoints(t *testing.T) {
	curve := curveOf(t, serving.Point{Batch: 1, Seconds: 2, Joules: 4, Deviation: 1}, serving.Point{Batch: 5, Seconds: 6, Joules: 12, Deviation: 3})
	if got, want := curve.At(4), (serving.Point{Batch: 4, Seconds: 5, Joules: 10, Deviation: 2.5}); got != want {
		t.Errorf("batch 4 is %+v, want %+v", got, want)
	}
	if curve.Largest() != 5 || !curve.HasJoules() || !curve.Varies() || curve.Cheapest() != 5 {
		t.Errorf("largest %d, joules %v, varies %v, cheapest %d", curve.Largest(), curve.HasJoules(), curve.Varies(), curve.Cheapest())
	}
}

func TestLargerBatchesAreNeverFaster(t *testing.T) {
	curve := curveOf(t, serving.Point{Batch: 1, Seconds: 1}, serving.Point{Batch: 2, Seconds: 4}, serving.Point{Batch: 3, Seconds: 2}, serving.Point{Batch: 4, Seconds: 5})
	if got, want := curve.Pooled(), []int{2, 3}; !slices.Equal(got, want) {
		t.Errorf("pooled %v, want %v", got, want)
	}
	if curve.At(2).Seconds != 3 || curve.At(3).Seconds != 3 || curve.At(4).Seconds != 5 {
		t.Errorf("batches 2 to 4 take %g, %g, %g s; want 3, 3, 5", curve.At(2).Seconds, curve.At(3).Seconds, curve.At(4).Seconds)
	}
	rapid.Check(t, func(t *rapid.T) {
		curve := drawnCurve(t)
		for batch := 2; batch <= curve.Largest(); batch++ {
			if curve.At(batch).Seconds < curve.At(batch-1).Seconds {
				t.Fatalf("batch %d takes %g s, batch %d %g s", batch, curve.At(batch).Seconds, batch-1, curve.At(batch-1).Seconds)
			}
		}
	})
}
