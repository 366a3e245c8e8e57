package main

import (
	"fmt"
	"math"
	"slices"
)

// median of any number of values; NaN of none. An infinity is a value that was
// never reached.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 || sorted[middle-1] == sorted[middle] {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// spread is the median with the smallest and the largest value in brackets.
func spread(values []float64, decimals int) string {
	if len(values) == 0 {
		return ""
	}
	if slices.Min(values) == slices.Max(values) {
		return number(values[0], decimals)
	}
	return fmt.Sprintf("%s (%s to %s)", number(median(values), decimals), number(slices.Min(values), decimals), number(slices.Max(values), decimals))
}

func number(value float64, decimals int) string {
	switch {
	case math.IsNaN(value):
		return ""
	case math.IsInf(value, 0):
		return "never"
	default:
		return fmt.Sprintf("%.*f", decimals, value)
	}
}

// geometricMean of positive values; NaN of none.
func geometricMean(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	total := 0.0
	for _, value := range values {
		total += math.Log(value)
	}
	return math.Exp(total / float64(len(values)))
}

// secondsTo is when a study first had an accuracy; +Inf if it never had.
func secondsTo(curve []point, accuracy float64) float64 {
	first := math.Inf(1)
	for _, one := range curve {
		if one.Accuracy >= accuracy {
			first = min(first, one.At)
		}
	}
	return first
}
