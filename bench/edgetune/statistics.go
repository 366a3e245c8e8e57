package main

import (
	"math"
	"slices"
)

func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile interpolates; NaN of nothing.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// ranks are 1 for the least; equal values share the mean of theirs.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if values[a] < values[b] {
			return -1
		}
		if values[a] > values[b] {
			return 1
		}
		return 0
	})
	out := make([]float64, len(values))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && values[order[j]] == values[order[i]] {
			j++
		}
		for _, at := range order[i:j] {
			out[at] = float64(i+j+1) / 2
		}
		i = j
	}
	return out
}

// spearman is the correlation of ranks; NaN where one side does not vary.
func spearman(a, b []float64) float64 {
	a, b = ranks(a), ranks(b)
	middle := float64(len(a)+1) / 2
	var top, left, right float64
	for i := range a {
		top += (a[i] - middle) * (b[i] - middle)
		left += (a[i] - middle) * (a[i] - middle)
		right += (b[i] - middle) * (b[i] - middle)
	}
	return top / math.Sqrt(left*right)
}
