package emulator

import (
	"math"
	"slices"
)

// confidence95 is how many standard deviations to either side hold 95% of a
// normal distribution.
const confidence95 = 1.959964

// latencyOf is the distribution of runs, of which there is at least one.
func latencyOf(seconds []float64) Latency {
	sorted := slices.Sorted(slices.Values(seconds))
	sum := 0.0
	for _, one := range sorted {
		sum += one
	}
	mean, squares := sum/float64(len(sorted)), 0.0
	for _, one := range sorted {
		squares += (one - mean) * (one - mean)
	}
	low, high := medianInterval(sorted)
	return Latency{
		P50: percentile(sorted, 0.50), P90: percentile(sorted, 0.90), P99: percentile(sorted, 0.99),
		Mean: mean, Min: sorted[0], Max: sorted[len(sorted)-1],
		Deviation: math.Sqrt(squares / float64(max(1, len(sorted)-1))),
		MedianLow: low, MedianHigh: high,
	}
}

// percentile is the value that a part of the sorted ones are at most, by nearest
// rank.
func percentile(sorted []float64, part float64) float64 {
	rank := int(math.Ceil(part*float64(len(sorted)) - 1e-9))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// medianInterval is a 95% confidence interval of the median: the number of runs
// below the true median is binomial with one half, whatever the distribution of
// the runs, and its normal approximation gives the ranks. Below six runs even all
// of them hold the median with less than 95%: then it is all of them.
func medianInterval(sorted []float64) (low, high float64) {
	n := float64(len(sorted))
	half := confidence95 * math.Sqrt(n) / 2
	lowest := int(math.Floor(n/2 - half)) // ranks from 1
	highest := int(math.Ceil(n/2+half)) + 1
	return sorted[max(lowest, 1)-1], sorted[min(highest, len(sorted))-1]
}

// relativeWidth is how far the interval goes to the farther side of the median,
// as a part of it.
func (l Latency) relativeWidth() float64 {
	return max(l.MedianHigh-l.P50, l.P50-l.MedianLow) / l.P50
}
