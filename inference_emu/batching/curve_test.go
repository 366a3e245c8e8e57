package batching_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/inference_emu/batching"
)

func TestCurveFaultsNameTheirPoint(t *testing.T) {
	for name, one := range map[string]struct {
		points []batching.Point
		want   string
	}{
		"empty":               {nil, "no points"},
		"no batch 1":          {[]batching.Point{{Batch: 2, Seconds: 1}}, "batch 2 as point 0: batches go from 1"},
		"unsorted":            {[]batching.Point{{Batch: 1, Seconds: 1}, {Batch: 8, Seconds: 1}, {Batch: 4, Seconds: 1}}, "batch 4 as point 2"},
		"twice":               {[]batching.Point{{Batch: 1, Seconds: 1}, {Batch: 1, Seconds: 1}}, "batch 1 as point 1"},
		"too large":           {[]batching.Point{{Batch: 1, Seconds: 1}, {Batch: 1 << 20, Seconds: 1}}, "up to 65536"},
		"no time":             {[]batching.Point{{Batch: 1, Seconds: 1}, {Batch: 2}}, "0 s ± 0 and 0 J for batch 2: they must be finite, and the seconds above 0"},
		"not a number":        {[]batching.Point{{Batch: 1, Seconds: math.NaN()}}, "for batch 1"},
		"infinite":            {[]batching.Point{{Batch: 1, Seconds: math.Inf(1)}}, "for batch 1"},
		"negative energy":     {[]batching.Point{{Batch: 1, Seconds: 1, Joules: -1}}, "-1 J for batch 1"},
		"some energies":       {[]batching.Point{{Batch: 1, Seconds: 1, Joules: 1}, {Batch: 2, Seconds: 1}}, "give those of all or of none"},
		"infinite deviation":  {[]batching.Point{{Batch: 1, Seconds: 1, Deviation: math.Inf(1)}}, "± +Inf"},
		"several at the same": {[]batching.Point{{Batch: 1}, {Batch: 2}}, "batch 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := batching.NewCurve(one.points)
			if err == nil || !strings.Contains(err.Error(), one.want) {
				t.Errorf("got %v, want it to say %q", err, one.want)
			}
		})
	}
}

func TestCurveIsLinearBetweenPoints(t *testing.T) {
	curve := curveOf(t, batching.Point{Batch: 1, Seconds: 2, Joules: 4, Deviation: 1}, batching.Point{Batch: 5, Seconds: 6, Joules: 12, Deviation: 3})
	if got, want := curve.At(4), (batching.Point{Batch: 4, Seconds: 5, Joules: 10, Deviation: 2.5}); got != want {
		t.Errorf("batch 4 is %+v, want %+v", got, want)
	}
	if curve.Largest() != 5 || !curve.HasJoules() || !curve.Varies() || curve.Cheapest() != 5 {
		t.Errorf("largest %d, joules %v, varies %v, cheapest %d", curve.Largest(), curve.HasJoules(), curve.Varies(), curve.Cheapest())
	}
}

func TestLargerBatchesAreNeverFaster(t *testing.T) {
	curve := curveOf(t, batching.Point{Batch: 1, Seconds: 1}, batching.Point{Batch: 2, Seconds: 4}, batching.Point{Batch: 3, Seconds: 2}, batching.Point{Batch: 4, Seconds: 5})
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
