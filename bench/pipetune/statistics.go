package main

import (
	"fmt"
	"math"
	"math/rand/v2"
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

// arrival is when a study reached an accuracy, +Inf if it never did, and when it
// ended. Both are seconds since it began.
type arrival struct{ at, end float64 }

// pair is a repetition: an arm's arrival, and its base's.
type pair [2]arrival

// expectedTo is the expected running time to an accuracy, in seconds, as COCO has
// it (Hansen et al. 2021, section 4): the seconds that all runs spent until they
// reached it or ended, divided by how many reached it. A user who starts again
// after a study that failed waits so long. +Inf if none did.
func expectedTo(pairs []pair, side int) (seconds float64, reached int) {
	for _, one := range pairs {
		if seconds += min(one[side].at, one[side].end); !math.IsInf(one[side].at, 1) {
			reached++
		}
	}
	return seconds / float64(reached), reached
}

// ratio is the median over the workloads of the ratio of both sides' expected
// seconds, with its interval. It says where only one side arrives.
func ratio(workloads ...[]pair) string {
	low, high := ratioInterval(workloads...)
	return fmt.Sprintf("%s (%s to %s)", ratioNumber(medianRatio(workloads...)), ratioNumber(low), ratioNumber(high))
}

// ratioNumber prints a ratio of expected seconds, which is 0 where the base never arrives.
func ratioNumber(value float64) string {
	if value == 0 {
		return "base never"
	}
	return number(value, 2)
}

func medianRatio(workloads ...[]pair) float64 {
	var ratios []float64
	for _, pairs := range workloads {
		one, _ := expectedTo(pairs, 0)
		other, _ := expectedTo(pairs, 1)
		if ratio := one / other; !math.IsNaN(ratio) {
			ratios = append(ratios, ratio)
		}
	}
	return median(ratios)
}

// ratioInterval is the 95% interval of medianRatio, by bootstrap over the
// repetitions: the workloads share their seeds, so a draw takes the same ones of
// each. Draws in which neither side arrives say nothing.
func ratioInterval(workloads ...[]pair) (low, high float64) {
	least := len(workloads[0])
	for _, pairs := range workloads {
		least = min(least, len(pairs))
	}
	random, drawn := rand.New(rand.NewPCG(1, 2)), make([][]pair, len(workloads))
	var ratios []float64
	for range 10_000 {
		clear(drawn)
		for range least {
			seed := random.IntN(least)
			for w, pairs := range workloads {
				drawn[w] = append(drawn[w], pairs[seed])
			}
		}
		if ratio := medianRatio(drawn...); !math.IsNaN(ratio) {
			ratios = append(ratios, ratio)
		}
	}
	if len(ratios) == 0 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(ratios)
	return ratios[len(ratios)*25/1000], ratios[len(ratios)*975/1000]
}
