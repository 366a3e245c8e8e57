package main

import (
	"fmt"

	"github.com/tandem-tune/tandem/workers/forecast"
)

// tune compares settings of the networks on the part between training and test.
func tune(t trace, o forecastOptions) error {
	n := len(t.demand)
	var grid []forecast.Settings
	for _, hidden := range []int{12, 24} {
		for _, rate := range []float64{0.003, 0.01} {
			grid = append(grid, forecast.Settings{Hidden: hidden, Rate: rate, Samples: o.samples})
		}
	}
	results := make([][]outcome, len(grid))
	for i, settings := range grid {
		results[i] = make([]outcome, o.runs)
		for run := range o.runs {
			settings.Seed = uint64(run) //nolint:gosec // a small number
			begin := processSeconds()
			f, err := forecast.Train(t.demand[:n*7/10], settings)
			if err != nil {
				return err
			}
			trained := processSeconds() - begin
			all, err := forecast.Collect(f, t.demand[:n*8/10], n*7/10, 1)
			if err != nil {
				return err
			}
			results[i][run] = outcome{trained: trained, testing: all}
		}
	}
	fmt.Println("| hidden | rate | trained, CPU s | pinball | coverage off by | under at 0.9 |\n|---|---|---|---|---|---|")
	for i, settings := range grid {
		fmt.Printf("| %d | %g | %s | %s | %s | %s |\n", settings.Hidden, settings.Rate,
			spread(results[i], "%.1f", func(o outcome) float64 { return o.trained }),
			spread(results[i], "%.4f", func(o outcome) float64 { return forecast.Rate(o.testing, 0.9).Pinball }),
			spread(results[i], "%.3f", func(o outcome) float64 { return offCoverage(forecast.Rate(o.testing, 0.9), forecast.Quantiles()) }),
			spread(results[i], "%.1f%%", func(o outcome) float64 { return 100 * forecast.Rate(o.testing, 0.9).Under }))
	}
	return nil
}
