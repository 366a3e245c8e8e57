package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/workers/forecast"
)

// fifths are into how many parts the tested one is cut, for the spread over time.
const fifths = 5

// printBrief shows what the corrected knob serves and saves by each way, on all of the
// tested part and on its fifths, with GPUs that are switched off, and which way the
// server's own rule takes on what came before.
func printBrief(t trace, all [][]outcome) error {
	fmt.Println("| asked for | by | demand served (in fifths) | energy saved (in fifths) | who knows the future saves |\n|---|---|---|---|---|")
	power := states()[1].Power
	for _, asked := range []float64{0.98, 0.99, 0.999} {
		for _, runs := range all {
			for _, one := range runs {
				var served, saved, perfect []float64
				whole := every(one.testing, forecast.Horizon)
				for part := -1; part < fifths; part++ {
					some := whole
					if part >= 0 {
						some = whole[len(whole)*part/fifths : len(whole)*(part+1)/fifths]
					}
					knob, err := forecast.NewKnob(one.choosing, t.total, power)
					if err != nil {
						return err
					}
					play, _, err := playCorrected(knob, some, asked, forecast.Correction{})
					if err != nil {
						return err
					}
					best, err := playPerfect(knob, t, some)
					if err != nil {
						return err
					}
					served, saved, perfect = append(served, 100*play.Served), append(saved, 100*play.Saved), append(perfect, 100*best.Saved)
				}
				fmt.Printf("| %g | %s | %s%% | %s%% | %.1f%% |\n", asked, one.name, overFifths(served, 2), overFifths(saved, 1), perfect[0])
			}
		}
	}
	printLosses(all)
	return nil
}

// overFifths is the value of all, with the least and the most of the fifths.
func overFifths(values []float64, digits int) string {
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, values[0], digits, slices.Min(values[1:]), digits, slices.Max(values[1:]))
}

// printLosses shows the loss of each way, and what it takes.
func printLosses(all [][]outcome) {
	fmt.Println("\n| by | pinball | trained, CPU s | a forecast, CPU ms |\n|---|---|---|---|")
	for _, runs := range all {
		fmt.Printf("| %s | %s | %s | %s |\n", runs[0].name,
			spread(runs, "%.3f", func(o outcome) float64 { return forecast.Rate(o.testing, 0.9).Pinball }),
			spread(runs, "%.1f", func(o outcome) float64 { return o.trained }),
			spread(runs, "%.2f", func(o outcome) float64 { return 1000 * o.each }))
	}
}

// playPerfect plays as who knows the future.
func playPerfect(k *forecast.Knob, t trace, all []forecast.Judged) (forecast.Play, error) {
	return k.PlayBy(all, func(one forecast.Judged) int {
		return min(t.total, int(math.Ceil(slices.Max(one.Actual)-1e-9)))
	}, func(_, _ float64) {})
}
