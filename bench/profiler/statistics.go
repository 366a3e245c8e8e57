package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// goal is how much of an epoch's time profiling may cost.
const goal = 0.01

// resamples is how many times the pairs are drawn anew.
const resamples = 10_000

const heading = "| workload | pairs | plain, median s | profiled, median s | median difference of a pair (95% by bootstrap) | CPU of the profiler in a run | counted | at most 1% |\n|---|---|---|---|---|---|---|---|\n"

// row is a workload's line of the table.
func row(w workload, list []pair) string {
	column := func(of func(pair) float64) []float64 {
		var values []float64
		for _, one := range list {
			values = append(values, of(one))
		}
		return values
	}
	differences := column(func(p pair) float64 { return p.Profiled.Seconds/p.Plain.Seconds - 1 })
	low, high := interval(differences)
	watching := "not told"
	if seconds := median(column(func(p pair) float64 { return p.Profiled.Watching })); seconds > 0 {
		watching = fmt.Sprintf("%.3f s", seconds)
	}
	return fmt.Sprintf("| `%s`: %s | %d | %.3f | %.3f | %+.2f%% (%+.2f to %+.2f) | %s | %d events, %s | %s |", w.name, w.what, len(list),
		median(column(func(p pair) float64 { return p.Plain.Seconds })), median(column(func(p pair) float64 { return p.Profiled.Seconds })),
		100*median(differences), 100*low, 100*high, watching, list[0].Profiled.Events, list[0].Profiled.Level, verdict(low, high))
}

// verdict is what an interval of the relative difference says of the goal.
func verdict(low, high float64) string {
	switch {
	case high <= goal:
		return "met"
	case low > goal:
		return "missed"
	}
	return "undecided"
}

// median of values in any order.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// interval holds the median with 95%, by the percentiles of resampled medians.
// The draws are the same each time.
func interval(values []float64) (low, high float64) {
	random := rand.New(rand.NewPCG(1, 1))
	medians := make([]float64, resamples)
	sample := make([]float64, len(values))
	for at := range medians {
		for i := range sample {
			sample[i] = values[random.IntN(len(values))]
		}
		medians[at] = median(sample)
	}
	slices.Sort(medians)
	return medians[resamples*25/1000], medians[resamples*975/1000-1]
}
