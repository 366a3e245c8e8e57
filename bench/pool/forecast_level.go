package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/workers/forecast"
)

// adaptRate is the step of adaptive conformal inference that its paper uses.
const adaptRate = 0.005

// adapted are shares of minutes whose demand was above the forecast at a quantile
// whose level follows what was covered (Gibbs and Candès, NeurIPS 2021, equation 2),
// of all minutes and of those with at least so much demand. Forecasts are a minute
// apart. Each of the minutes ahead has a level of its own, which knows only what has
// come by then.
func adapted(all []forecast.Judged, quantile, least float64) (under, high float64) {
	var levels [forecast.Horizon]float64
	for i := range levels {
		levels[i] = quantile
	}
	missed := make([][forecast.Horizon]bool, len(all))
	minutes, highs := 0, 0
	for i, one := range all {
		for ahead := range levels {
			if from := i - ahead - 1; from >= 0 { // what it told of this minute is known now
				outcome := 0.0
				if missed[from][ahead] {
					outcome = 1
				}
				levels[ahead] += adaptRate * (outcome - (1 - quantile))
			}
		}
		for ahead, actual := range one.Actual {
			missed[i][ahead] = actual > one.Forecast.At(ahead, levels[ahead])
			minutes++
			if actual >= least {
				highs++
			}
			if missed[i][ahead] {
				under++
				if actual >= least {
					high++
				}
			}
		}
	}
	return under / float64(max(1, minutes)), high / float64(max(1, highs))
}

// printAdapted compares quantiles as they are told with ones whose level adapts.
func printAdapted(t trace, all [][]outcome) {
	sorted := slices.Clone(t.demand[len(t.demand)*8/10:])
	slices.Sort(sorted)
	least := sorted[len(sorted)*9/10]
	fmt.Printf("\nUnder-predicted at 0.9, as told and with a level that adapts by %g a minute; of all minutes and of those with %g %s and more:\n\n| | as told | adapted | high, as told | high, adapted |\n|---|---|---|---|---|\n", adaptRate, least, t.unit)
	for _, runs := range all {
		share := func(of func(o outcome) float64) string {
			return spread(runs, "%.1f%%", func(o outcome) float64 { return 100 * of(o) })
		}
		fmt.Printf("| %s | %s | %s | %s | %s |\n", runs[0].name,
			share(func(o outcome) float64 { return forecast.Rate(o.testing, 0.9).Under }),
			share(func(o outcome) float64 { under, _ := adapted(o.testing, 0.9, least); return under }),
			share(func(o outcome) float64 { high, _ := underAt(o.testing, 0.9, least); return high }),
			share(func(o outcome) float64 { _, high := adapted(o.testing, 0.9, least); return high }))
	}
}

// offCoverage is how far the coverage is from the quantiles in the mean, from 0
// to 1.
func offCoverage(s forecast.Score, quantiles []float64) float64 {
	sum := 0.0
	for i, q := range quantiles {
		sum += math.Abs(s.Coverage[i] - q)
	}
	return sum / float64(max(1, len(quantiles)))
}

// underAt is the share of the minutes with a demand of at least so many GPUs
// whose demand was above the forecast at the quantile: the under-prediction at a
// workload level (section 4.3). It is 0 where no minute has such a demand; minutes is how
// many have.
func underAt(all []forecast.Judged, quantile, least float64) (share float64, minutes int) {
	under := 0
	for _, one := range all {
		for minute, actual := range one.Actual {
			if actual < least {
				continue
			}
			minutes++
			if actual > one.Forecast.At(minute, quantile) {
				under++
			}
		}
	}
	return float64(under) / float64(max(1, minutes)), minutes
}
