package batching_test

import (
	"math"
	"slices"
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
		"empty":               {nil, "curve: has no points"},
		"no batch 1":          {[]batching.Point{{Batch: 2, Seconds: 1}}, "curve[0].batch: the first point must be batch 1"},
		"unsorted":            {[]batching.Point{{Batch: 1, Seconds: 1}, {Batch: 8, Seconds: 1}, {Batch: 4, Seconds: 1}}, "curve[2].batch: must be above that of the point before, 8"},
		"twice":               {[]batching.Point{{Batch: 1, Seconds: 1}, {Batch: 1, Seconds: 1}}, "curve[1].batch: must be above"},
		"too large":           {[]batching.Point{{Batch: 1, Seconds: 1}, {Batch: 1 << 20, Seconds: 1}}, "curve[1].batch: must be from 1 to 65536"},
		"no time":             {[]batching.Point{{Batch: 1, Seconds: 1}, {Batch: 2}}, "curve[1].seconds: batch 2: must be a finite number above 0 (got 0)"},
		"not a number":        {[]batching.Point{{Batch: 1, Seconds: math.NaN()}}, "curve[0].seconds: batch 1"},
		"infinite":            {[]batching.Point{{Batch: 1, Seconds: math.Inf(1)}}, "curve[0].seconds: batch 1"},
		"negative energy":     {[]batching.Point{{Batch: 1, Seconds: 1, Joules: -1}}, "curve[0].joules: batch 1"},
		"some energies":       {[]batching.Point{{Batch: 1, Seconds: 1, Joules: 1}, {Batch: 2, Seconds: 1}}, "curve[1].joules: batch 2: give the joules of all points or of none"},
		"infinite deviation":  {[]batching.Point{{Batch: 1, Seconds: 1, Deviation: math.Inf(1)}}, "curve[0].deviation: batch 1"},
		"several at the same": {[]batching.Point{{Batch: 1}, {Batch: 2}}, "curve[1].seconds"},
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

func TestCurvesAreRead(t *testing.T) {
	want := []batching.Point{{Batch: 1, Seconds: 0.002, Joules: 0.5}, {Batch: 8, Seconds: 0.01, Joules: 1.5}}
	for name, text := range map[string]string{
		"CSV":         "batch,seconds,joules\n1,0.002,0.5\n8,0.01,1.5\n",
		"CSV, shaken": "\ufeff Joules, seconds ,BATCH\r\n0.5, 2e-3,1\r\n1.5,0.01,8\r\n",
		"JSON list":   `[{"batch":1,"seconds":0.002,"joules":0.5},{"batch":8,"seconds":0.01,"joules":1.5}]`,
		"measured":    `{"model":"m.onnx","curve":[{"batch":1,"seconds":0.002,"joules":0.5},{"batch":8,"seconds":0.01,"joules":1.5}],"curve_threads":2}`,
		"JSON object": `{"points":[{"batch":1,"seconds":0.002,"joules":0.5},{"batch":8,"seconds":0.01,"joules":1.5}]}`,
	} {
		curve, err := batching.ParseCurve([]byte(text))
		if err != nil || !slices.Equal(curve.Points(), want) {
			t.Errorf("%s: %v, %v", name, curve.Points(), err)
		}
	}
	for text, want := range map[string]string{
		"":                                "empty",
		"batch;seconds\n1;2\n":            "columns may be",
		"batch,ms\n1,2\n":                 "must name a column seconds",
		"batch,seconds\n1,fast\n":         "curve[0].seconds (line 2): must be a number (got fast)",
		"batch,seconds\n1,2,3\n":          "neither JSON nor CSV",
		`[{"batch":1,"milliseconds":2}]`:  "not JSON of points",
		`{"curve":[{"batch":1,"s":2}]}`:   "not JSON of points",
		"batch,seconds\n1,0.1\n2,-0.1\n":  "curve[1].seconds",
		`{"points":[]}`:                   "has no points",
		"batch,seconds\n1,NaN\n2,0.1\n":   "curve[0].seconds",
		"seconds,batch\n0.1,1\n0.1,1.5\n": "curve[1].batch (line 3)",
	} {
		if _, err := batching.ParseCurve([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want it to say %q", text, err, want)
		}
	}
}
