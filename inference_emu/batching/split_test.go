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

func TestBestSplitIsTheBestOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curve := drawnCurve(t)
		server := batching.Server{Curve: curve}
		query := batching.Query{Samples: rapid.IntRange(1, 10).Draw(t, "samples")}
		query.PeriodSeconds = curve.At(1).Seconds * float64(query.Samples) * rapid.Float64Range(0.3, 2).Draw(t, "period")
		objective := rapid.SampledFrom([]batching.Objective{batching.MeanResponse, batching.P99}).Draw(t, "objective")
		choice, err := batching.BestSplit(server, query, batching.Goal{Objective: objective}, 1)
		if err != nil {
			t.Fatal(err)
		}
		best, shortest := math.Inf(1), math.Inf(1)
		everySplit(query.Samples, curve.Largest(), nil, func(chunks []int) {
			last, mean := 0.0, 0.0
			for _, size := range chunks {
				last += curve.At(size).Seconds
				mean += last * float64(size) / float64(query.Samples)
			}
			shortest = min(shortest, last)
			if objective == batching.P99 {
				mean = last
			}
			if last <= query.PeriodSeconds*(1+1e-9) { // rounding
				best = min(best, mean)
			}
		})
		near(t, "shortest period", choice.ShortestPeriod, shortest)
		got := choice.Best.Mean
		if objective == batching.P99 {
			got = choice.Best.Last
		}
		if choice.Best.KeepsUp != !math.IsInf(best, 1) {
			t.Fatalf("keeps up %v with %g s every %g s; the shortest is %g s", choice.Best.KeepsUp, choice.Best.Last, query.PeriodSeconds, shortest)
		}
		if choice.Best.KeepsUp && (got > best*1.0021 || got < best*(1-1e-9)) {
			t.Fatalf("%s comes to %g, the best of all is %g", choice.Best, got, best)
		}
		if keeps := choice.MostSamples >= query.Samples; keeps != choice.Best.KeepsUp {
			t.Fatalf("most samples %d of %d, keeps up %v", choice.MostSamples, query.Samples, choice.Best.KeepsUp)
		}
	})
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
	if !slices.Equal(choice.Best.Chunks, []int{17, 15}) && choice.Best.Mean > 0.021+1e-9 || choice.Best.Mean >= choice.Whole.Mean || choice.Single.KeepsUp {
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
	if tight.Best.KeepsUp || tight.MostSamples != 8 {
		t.Errorf("32 samples every 10 ms keep up %v; at most %d do, want 8", tight.Best.KeepsUp, tight.MostSamples)
	}
}

func TestMLPerfScenarios(t *testing.T) {
	server := fixedCost(t, false)
	scenarios, err := batching.Scenarios(server, batching.ScenarioSettings{LatencyBound: 0.05, Requests: 40_000})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"SingleStream": 0.006, "MultiStream": 0.0112, "Offline": 32 / 0.029}
	var names []string
	for _, one := range scenarios {
		names = append(names, one.Name)
		if value, known := want[one.Name]; known && math.Abs(one.Value-value) > 1e-9 {
			t.Errorf("%s: %g, want %g", one.Name, one.Value, value)
		}
		if one.Name == "Server" && (one.Value < 1/0.006 || one.Value >= 32/0.029) {
			t.Errorf("Server: %g requests/s", one.Value)
		}
	}
	if !slices.Equal(names, []string{"SingleStream", "MultiStream", "Server", "Offline"}) {
		t.Errorf("scenarios %v", names)
	}
	// Times that are exponential have known percentiles.
	noisy := batching.Server{Curve: curveOf(t, batching.Point{Batch: 1, Seconds: 1, Deviation: 1})}
	scenarios, err = batching.Scenarios(noisy, batching.ScenarioSettings{SamplesPerQuery: 1})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "p90 of SingleStream", scenarios[0].Value, -math.Log(0.1), 0.03)
	within(t, "p99 of MultiStream", scenarios[1].Value, -math.Log(0.01), 0.06)
}
