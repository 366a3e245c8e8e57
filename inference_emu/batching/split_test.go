package batching_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/inference_emu/batching"
)

// everySplit calls back with all ordered divisions of the samples.
func everySplit(samples, largest int, chunks []int, try func([]int)) {
	if samples == 0 {
		try(chunks)
		return
	}
	for size := 1; size <= min(samples, largest); size++ {
		everySplit(samples-size, largest, append(chunks, size), try)
	}
}

// Of the divisions into sizes that differ by at most one, the best one is taken. On
// usual curves no other division at all is much better.
func TestBestSplitIsTheBestOfEqualOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve := drawnCurve(t)
		samples := rapid.IntRange(1, 10).Draw(t, "samples")
		objective := rapid.SampledFrom([]batching.Objective{batching.MeanResponse, batching.P99}).Draw(t, "objective")
		isEqual := func(chunks []int) bool {
			return chunks[0]-chunks[len(chunks)-1] <= 1 && slices.IsSortedFunc(chunks, func(a, b int) int { return b - a })
		}
		split, best := bestOf(t, curve, samples, objective, isEqual)
		if got := valueOf(split, objective); math.Abs(got-best) > 1e-9*best {
			t.Fatalf("%v comes to %g, the best of all is %g", split.Chunks, got, best)
		}
	})
	fixed := curveOf(t, batching.Point{Batch: 1, Seconds: 0.00595}, batching.Point{Batch: 32, Seconds: 0.0292})
	bent := curveOf(t, batching.Point{Batch: 1, Seconds: 0.002}, batching.Point{Batch: 4, Seconds: 0.003}, batching.Point{Batch: 8, Seconds: 0.012}, batching.Point{Batch: 32, Seconds: 0.04})
	for _, curve := range []batching.Curve{fixed, bent} {
		for samples := 1; samples <= 14; samples++ {
			for _, objective := range []batching.Objective{batching.MeanResponse, batching.P99} {
				split, best := bestOf(t, curve, samples, objective, func([]int) bool { return true })
				if got := valueOf(split, objective); got > 1.1*best {
					t.Errorf("%d samples: %v comes to %g, the best of all is %g", samples, split.Chunks, got, best)
				}
			}
		}
	}
}

func valueOf(split batching.Split, objective batching.Objective) float64 {
	if objective == batching.P99 {
		return split.Last
	}
	return split.Mean
}

// bestOf is the choice, and the least value of the divisions of a kind.
func bestOf(t interface {
	Fatal(...any)
	Helper()
}, curve batching.Curve, samples int, objective batching.Objective, kind func([]int) bool) (split batching.Split, best float64) {
	t.Helper()
	split, err := batching.BestSplit(curve, samples, objective)
	if err != nil {
		t.Fatal(err)
	}
	best = math.Inf(1)
	everySplit(samples, curve.Largest(), nil, func(chunks []int) {
		if !kind(chunks) {
			return
		}
		one := batching.Split{}
		for _, size := range chunks {
			one.Last += curve.At(size).Seconds
			one.Mean += one.Last * float64(size) / float64(samples)
		}
		best = min(best, valueOf(one, objective))
	})
	return split, best
}

func TestSplitOfAQuery(t *testing.T) {
	// 6 ms and 0.5 ms a sample.
	curve := curveOf(t, batching.Point{Batch: 1, Seconds: 0.0065, Joules: 0.1}, batching.Point{Batch: 32, Seconds: 0.022, Joules: 0.4})
	split := func(objective batching.Objective) batching.Split {
		split, err := batching.BestSplit(curve, 32, objective)
		if err != nil {
			t.Fatal(err)
		}
		return split
	}
	// Two chunks answer the first 16 samples after 14 ms and the others after
	// 28: 21 ms on average, against 22 for all at once and 107 one by one.
	if best := split(batching.MeanResponse); !slices.Equal(best.Chunks, []int{16, 16}) && best.Mean > 0.021+1e-9 || best.Mean >= 0.022 {
		t.Errorf("%+v", best)
	}
	if whole := split(batching.P99); !slices.Equal(whole.Chunks, []int{32}) || math.Abs(whole.Last-0.022) > 1e-12 || math.Abs(whole.P99-0.022) > 1e-12 {
		t.Errorf("%+v", whole)
	}
	if least := split(batching.Joules); math.Abs(least.JoulesPerSample-0.4/32) > 1e-12 {
		t.Errorf("%+v", least)
	}
}

// Where times vary, the 99th percentile is of many queries, each to the last digit.
func TestSplitOfAQueryWhoseTimesVary(t *testing.T) {
	curve := curveOf(t, batching.Point{Batch: 1, Seconds: 1e-3, Deviation: 1e-3})
	split, err := batching.BestSplit(curve, 1, batching.P99)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "p99 of exponential times", split.P99, -1e-3*math.Log(0.01), 0.04)
}
