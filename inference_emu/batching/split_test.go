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
		query := batching.Query{Samples: rapid.IntRange(1, 10).Draw(t, "samples")}
		query.PeriodSeconds = curve.At(1).Seconds * float64(query.Samples) * rapid.Float64Range(0.3, 2).Draw(t, "period")
		objective := rapid.SampledFrom([]batching.Objective{batching.MeanResponse, batching.P99}).Draw(t, "objective")
		isEqual := func(chunks []int) bool {
			return chunks[0]-chunks[len(chunks)-1] <= 1 && slices.IsSortedFunc(chunks, func(a, b int) int { return b - a })
		}
		choice, best, shortest := bestOf(t, curve, query, objective, isEqual)
		near(t, "shortest period", choice.ShortestPeriod, shortest)
		if choice.Best.KeepsUp != !math.IsInf(best, 1) {
			t.Fatalf("keeps up %v with %g s every %g s; the shortest is %g s", choice.Best.KeepsUp, choice.Best.Last, query.PeriodSeconds, shortest)
		}
		if got := valueOf(choice.Best, objective); choice.Best.KeepsUp && math.Abs(got-best) > 1e-9*best {
			t.Fatalf("%s comes to %g, the best of all is %g", choice.Best, got, best)
		}
	})
	fixed := curveOf(t, batching.Point{Batch: 1, Seconds: 0.00595}, batching.Point{Batch: 32, Seconds: 0.0292})
	bent := curveOf(t, batching.Point{Batch: 1, Seconds: 0.002}, batching.Point{Batch: 4, Seconds: 0.003}, batching.Point{Batch: 8, Seconds: 0.012}, batching.Point{Batch: 32, Seconds: 0.04})
	for _, curve := range []batching.Curve{fixed, bent} {
		for samples := 1; samples <= 14; samples++ {
			for _, objective := range []batching.Objective{batching.MeanResponse, batching.P99} {
				choice, best, _ := bestOf(t, curve, batching.Query{Samples: samples, PeriodSeconds: 10}, objective, func([]int) bool { return true })
				if got := valueOf(choice.Best, objective); got > 1.1*best {
					t.Errorf("%d samples: %s comes to %g, the best of all is %g", samples, choice.Best, got, best)
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

// bestOf is the choice, and the least value of the divisions of a kind that keep up,
// and the least time of any of them.
func bestOf(t interface {
	Fatal(...any)
	Helper()
}, curve batching.Curve, query batching.Query, objective batching.Objective, kind func([]int) bool) (choice batching.SplitChoice, best, shortest float64) {
	t.Helper()
	choice, err := batching.BestSplit(batching.Server{Curve: curve}, query, batching.Goal{Objective: objective}, 1)
	if err != nil {
		t.Fatal(err)
	}
	best, shortest = math.Inf(1), math.Inf(1)
	everySplit(query.Samples, curve.Largest(), nil, func(chunks []int) {
		if !kind(chunks) {
			return
		}
		one := batching.Split{}
		for _, size := range chunks {
			one.Last += curve.At(size).Seconds
			one.Mean += one.Last * float64(size) / float64(query.Samples)
		}
		shortest = min(shortest, one.Last)
		if one.Last <= query.PeriodSeconds*(1+1e-9) { // rounding
			best = min(best, valueOf(one, objective))
		}
	})
	return choice, best, shortest
}

func TestSplitOfAQuery(t *testing.T) {
	// 6 ms and 0.5 ms a sample.
	server := batching.Server{Curve: curveOf(t, batching.Point{Batch: 1, Seconds: 0.0065, Joules: 0.1}, batching.Point{Batch: 32, Seconds: 0.022, Joules: 0.4})}
	choice, err := batching.BestSplit(server, batching.Query{Samples: 32, PeriodSeconds: 0.1}, batching.Goal{Objective: batching.MeanResponse}, 1)
	if err != nil {
		t.Fatal(err)
	}
	// Two chunks answer the first 16 samples after 14 ms and the others after
	// 28: 21 ms on average, against 22 for all at once and 107 one by one.
	if !slices.Equal(choice.Best.Chunks, []int{16, 16}) && choice.Best.Mean > 0.021+1e-9 || choice.Best.Mean >= choice.Whole.Mean || choice.Single.KeepsUp {
		t.Errorf("%+v", choice)
	}
	if math.Abs(choice.Whole.Mean-0.022) > 1e-12 || math.Abs(choice.Single.Last-0.208) > 1e-9 || math.Abs(choice.ShortestPeriod-0.022) > 1e-12 {
		t.Errorf("whole %+v, single %+v, shortest %g", choice.Whole, choice.Single, choice.ShortestPeriod)
	}
	if got := choice.Best.String(); got == "" || choice.Single.String() != "32 × 1" {
		t.Errorf("in words: %q and %q", got, choice.Single.String())
	}
	tight, err := batching.BestSplit(server, batching.Query{Samples: 32, PeriodSeconds: 0.01}, batching.Goal{Objective: batching.MeanResponse}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if tight.Best.KeepsUp || math.Abs(tight.Best.Last-0.022) > 1e-12 {
		t.Errorf("32 samples every 10 ms keep up %v, in %g s", tight.Best.KeepsUp, tight.Best.Last)
	}
}
