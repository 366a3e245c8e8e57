package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/workers/forecast"
)

// printScores compares all candidates in one line each.
func printScores(all [][]outcome) {
	fmt.Println("| | trained, CPU s | a forecast, CPU ms | MAE at 0.5 | under at 0.5 | under at 0.9 | pinball | coverage off by |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, runs := range all {
		fmt.Printf("| %s | %s | %s | %s | %s |", runs[0].name,
			spread(runs, "%.1f", func(o outcome) float64 { return o.trained }),
			spread(runs, "%.2f", func(o outcome) float64 { return 1000 * o.each }),
			spread(runs, "%.2f", func(o outcome) float64 { return forecast.Rate(o.testing, 0.5).MAE }),
			spread(runs, "%.1f%%", func(o outcome) float64 { return 100 * forecast.Rate(o.testing, 0.5).Under }))
		fmt.Printf(" %s | %s | %s |\n",
			spread(runs, "%.1f%%", func(o outcome) float64 { return 100 * forecast.Rate(o.testing, 0.9).Under }),
			spread(runs, "%.3f", func(o outcome) float64 { return forecast.Rate(o.testing, 0.9).Pinball }),
			spread(runs, "%.3f", func(o outcome) float64 { return offCoverage(forecast.Rate(o.testing, 0.9), forecast.Quantiles()) }))
	}
}

// printCalibration shows for each quantile what it covers and loses.
func printCalibration(all [][]outcome) {
	fmt.Println("\nCovered by each quantile (its pinball loss); the first run:")
	heading, line := "\n| quantile |", "|---|"
	for _, runs := range all {
		heading += " " + runs[0].name + " |"
		line += "---|"
	}
	fmt.Println(heading + "\n" + line)
	scores := make([]forecast.Score, len(all))
	for i, runs := range all {
		scores[i] = forecast.Rate(runs[0].testing, 0.5)
	}
	for i, quantile := range forecast.Quantiles() {
		fmt.Printf("| %.2f |", quantile)
		for _, score := range scores {
			fmt.Printf(" %.3f (%.3f) |", score.Coverage[i], score.Losses[i])
		}
		fmt.Println()
	}
}

// printLoads shows how often the demand was above the forecast, by how high it
// was: the minutes with the highest demand of the part that is tested.
func printLoads(t trace, all [][]outcome) {
	fmt.Println("\nUnder-predicted minutes, by the demand of the minute:")
	columns := []struct {
		candidate string
		quantile  float64
	}{
		{"persistence", 0.9}, {"GRU", 0.5}, {"GRU", 0.9}, {"GRU", 0.99},
	}
	heading := "\n| minutes |"
	for _, one := range columns {
		heading += fmt.Sprintf(" %s at %g |", one.candidate, one.quantile)
	}
	fmt.Println(heading + "\n|" + strings.Repeat("---|", len(columns)+1))
	sorted := slices.Clone(t.demand[len(t.demand)*8/10:])
	slices.Sort(sorted)
	for _, level := range []struct {
		name string
		from float64
	}{{"all", 0}, {"the higher half", 0.5}, {"the highest quarter", 0.75}, {"the highest tenth", 0.9}} {
		least := sorted[int(level.from*float64(len(sorted)))]
		fmt.Printf("| %s, %g %s and more |", level.name, least, t.unit)
		for _, one := range columns {
			fmt.Printf(" %s |", spread(named(all, one.candidate), "%.1f%%", func(o outcome) float64 {
				share, _ := underAt(o.testing, one.quantile, least)
				return 100 * share
			}))
		}
		fmt.Println()
	}
}

func named(all [][]outcome, name string) []outcome {
	at := slices.IndexFunc(all, func(runs []outcome) bool { return runs[0].name == name })
	return all[at]
}

// states are how GPUs are put to sleep: 25 W less by the lowest clock (section
// 4.2) of 50 W idle, and off. All three watts are assumptions, as are the delays.
func states() []struct {
	name string
	forecast.Power
} {
	return []struct {
		name string
		forecast.Power
	}{
		{"lowest clock: 25 instead of 50 W (assumed), 1 minute to be back", forecast.Power{AwakeWatts: 50, AsleepWatts: 25, DelayMinutes: 1}},
		{"off: 0 instead of 50 W (assumed), 2 minutes to be back", forecast.Power{AwakeWatts: 50, AsleepWatts: 0, DelayMinutes: 2}},
	}
}

// printKnob compares what is served and saved. Saved with GPUs that are off is
// the paper's definition: the share of GPUs that are not awake.
func printKnob(t trace, all [][]outcome) error {
	for _, state := range states() {
		fmt.Printf("\nThe knob, %s:\n\n| | quantile | demand served | minutes in which all was | energy saved |\n|---|---|---|---|---|\n", state.name)
		row := func(name, quantile string, runs []outcome, play func(outcome) (forecast.Play, error)) error {
			plays := map[*forecast.Judged]forecast.Play{}
			for _, one := range runs {
				got, err := play(one)
				if err != nil {
					return err
				}
				plays[&one.testing[0]] = got
			}
			of := func(value func(forecast.Play) float64) func(outcome) float64 {
				return func(o outcome) float64 { return 100 * value(plays[&o.testing[0]]) }
			}
			fmt.Printf("| %s | %s | %s | %s | %s |\n", name, quantile,
				spread(runs, "%.2f%%", of(func(p forecast.Play) float64 { return p.Served })),
				spread(runs, "%.1f%%", of(func(p forecast.Play) float64 { return p.Met })),
				spread(runs, "%.1f%%", of(func(p forecast.Play) float64 { return p.Saved })))
			return nil
		}
		if err := printChosen(t, all, state.Power, row); err != nil {
			return err
		}
		if err := printBaselines(t, all, state.Power, row); err != nil {
			return err
		}
	}
	return nil
}

// printing writes a row of the knob's table.
type printing func(name, quantile string, runs []outcome, play func(outcome) (forecast.Play, error)) error

// printChosen shows the knob at several performances: chosen on one part, played
// on the next, as it was chosen and corrected as a server does.
func printChosen(t trace, all [][]outcome, power forecast.Power, row printing) error {
	for _, name := range []string{"GRU", "persistence", "margin"} {
		for _, asked := range []float64{0.9, 0.95, 0.98, 0.99, 0.999} {
			var quantiles []string
			play := func(o outcome) (forecast.Play, error) {
				knob, err := forecast.NewKnob(o.choosing, t.total, power)
				if err != nil {
					return forecast.Play{}, err
				}
				setting, _, err := knob.Set(asked)
				if err != nil {
					return forecast.Play{}, err
				}
				return knob.Play(every(o.testing, forecast.Horizon), setting.Quantile)
			}
			for _, one := range named(all, name) {
				knob, err := forecast.NewKnob(one.choosing, t.total, power)
				if err != nil {
					return err
				}
				setting, _, err := knob.Set(asked)
				if err != nil {
					return err
				}
				quantiles = append(quantiles, fmt.Sprintf("%.2f", setting.Quantile))
			}
			slices.Sort(quantiles)
			if err := row(fmt.Sprintf("%s, %g asked for", name, asked), strings.Join(slices.Compact(quantiles), ", "), named(all, name), play); err != nil {
				return err
			}
			corrected := func(o outcome) (forecast.Play, error) {
				knob, err := forecast.NewKnob(o.choosing, t.total, power)
				if err != nil {
					return forecast.Play{}, err
				}
				play, _, err := playCorrected(knob, every(o.testing, forecast.Horizon), asked, forecast.Correction{})
				return play, err
			}
			if err := row(fmt.Sprintf("%s, %g asked for, corrected by what is served", name, asked), "–", named(all, name), corrected); err != nil {
				return err
			}
		}
	}
	return nil
}

// printBaselines shows two quantiles as they are, and what nothing can beat.
func printBaselines(t trace, all [][]outcome, power forecast.Power, row printing) error {
	for _, one := range []struct {
		name, candidate string
		quantile        float64
	}{
		{"GRU at 0.9", "GRU", 0.9}, {"GRU at 0.99", "GRU", 0.99},
	} {
		err := row(one.name, "–", named(all, one.candidate), func(o outcome) (forecast.Play, error) {
			knob, err := forecast.NewKnob(o.choosing, t.total, power)
			if err != nil {
				return forecast.Play{}, err
			}
			return knob.Play(every(o.testing, forecast.Horizon), one.quantile)
		})
		if err != nil {
			return err
		}
	}
	return row("who knows the future", "–", named(all, "persistence"), func(o outcome) (forecast.Play, error) {
		knob, err := forecast.NewKnob(o.choosing, t.total, power)
		if err != nil {
			return forecast.Play{}, err
		}
		return playPerfect(knob, t, every(o.testing, forecast.Horizon))
	})
}

// playCorrected plays a knob that is set anew at each of the forecasts for a performance
// as it is corrected by what the ones before it served. It returns the last correction.
func playCorrected(k *forecast.Knob, all []forecast.Judged, performance float64, c forecast.Correction) (forecast.Play, forecast.Correction, error) {
	if _, _, err := k.Set(performance); err != nil {
		return forecast.Play{}, c, err
	}
	play, err := k.PlayBy(all, func(one forecast.Judged) int {
		setting, _, _ := k.Set(c.Aim(performance)) // an aim is a performance
		return k.Awake(one.Forecast, setting.Quantile)
	}, func(demand, served float64) { c = c.Seen(performance, demand, served, k.MeanDemand()) })
	return play, c, err
}
