package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/bench/edgetune/learning"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// calibrations are how many measurements a device is calibrated with.
func calibrations() []int { return []int{0, 10, 20} }

// line is all that is reported of a series.
type line struct {
	of         *series
	chosen     bool // whether constants were chosen with it
	count      int
	modelled   []accuracy // by calibrations
	operations accuracy
	parameters accuracy
	nearest    accuracy
}

// report prints, for each source and quantity, a table with a line for each
// series, and what they have in common.
func report(out io.Writer, all []*series, only string) error {
	knowledge, err := lookups(all)
	if err != nil {
		return err
	}
	half := chosen(all)
	for _, table := range []string{"mlperf", "nb201", "tx2", "unicorn"} {
		for _, of := range []quantity{seconds(), joules()} {
			var lines []line
			for _, s := range all {
				if s.table != table || only != "" && table != only || measured(s, of) < fewest {
					continue
				}
				known, err := knowledge(s)
				if err != nil {
					return err
				}
				one := judge(s, all, of, known)
				one.chosen = half[s.Device.Name]
				lines = append(lines, one)
			}
			if len(lines) > 0 {
				fmt.Fprintf(out, "\n**%s, %s** (%d series)\n\n", table, of.name, len(lines))
				print(out, lines)
			}
		}
	}
	if only == "" || only == "onnxruntime" {
		return reportOwn(out)
	}
	return nil
}

func measured(s *series, of quantity) int {
	n := 0
	for _, m := range s.Measurements {
		if of.measured(m) > 0 {
			n++
		}
	}
	return n
}

// lookups finds knowledge for a device that it was not learned from: that which
// the program brings along if it does not know the device, otherwise the same
// without it.
func lookups(all []*series) (func(*series) (estimate.Knowledge, error), error) {
	shipped, err := estimate.Known()
	if err != nil {
		return nil, err
	}
	without := map[string]estimate.Knowledge{}
	return func(s *series) (estimate.Knowledge, error) {
		if !slices.Contains(shipped.Devices, s.Device.Name) {
			return shipped, nil
		}
		if _, known := without[s.Device.Name]; !known {
			learned := learning.Learn(others(all, func(o *series) bool {
				return o.Device.Name != s.Device.Name && slices.Contains(shipped.Devices, o.Device.Name)
			}))
			extended, err := extend(learned, func(string) bool { return true })
			if err != nil {
				return learned, err
			}
			without[s.Device.Name] = extended
		}
		return without[s.Device.Name], nil
	}, nil
}

// chosen is every second device by name: with these, constants were chosen.
func chosen(all []*series) map[string]bool {
	var names []string
	for _, s := range all {
		names = append(names, s.Device.Name)
	}
	slices.Sort(names)
	out := map[string]bool{}
	for i, name := range slices.Compact(names) {
		out[name] = i%2 == 0
	}
	return out
}

func judge(s *series, all []*series, of quantity, knowledge estimate.Knowledge) line {
	out := line{of: s, count: measured(s, of)}
	for _, n := range calibrations() {
		out.modelled = append(out.modelled, evaluate(s, n, of, modelled(s.Device, knowledge)))
	}
	out.operations = evaluate(s, 20, of, proportional(operations))
	out.parameters = evaluate(s, 20, of, proportional(func(m estimate.Measurement) float64 { return s.parameters[m.Workload.Name] }))
	out.nearest = evaluate(s, 20, of, nearest(s, all, of))
	return out
}

func print(out io.Writer, lines []line) {
	fmt.Fprintln(out, "| device | series | half | n | 0 points: median % / 90th / ρ / in band | 10 points | 20 points | goal met | operations: median % / 90th | parameters | nearest device |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|---|")
	for _, l := range lines {
		half := "B"
		if l.chosen {
			half = "A"
		}
		fmt.Fprintf(out, "| %s | %s | %s | %d |", l.of.Device.Name, shorten(l.of.name), half, l.count)
		for _, a := range l.modelled {
			fmt.Fprintf(out, " %.1f / %.1f / %.3f / %.0f%% |", a.median, a.high, a.spearman, 100*a.coverage)
		}
		fmt.Fprintf(out, " %s | %s | %s | %s |\n", yes(l.modelled[2].good()), pair(l.operations), pair(l.parameters), pair(l.nearest))
	}
	fmt.Fprintln(out)
	for _, half := range []bool{true, false} {
		summarize(out, lines, half)
	}
}

// summarize says what the series of one half have in common.
func summarize(out io.Writer, lines []line, half bool) {
	var of []line
	for _, l := range lines {
		if l.chosen == half {
			of = append(of, l)
		}
	}
	if len(of) == 0 {
		return
	}
	name := "B (constants not chosen with these)"
	if half {
		name = "A (constants chosen with these)"
	}
	fmt.Fprintf(out, "Half %s, %d series: medians over series of median / 90th / ρ / in band:", name, len(of))
	for i, n := range calibrations() {
		var middle, high, rank, band []float64
		for _, l := range of {
			a := l.modelled[i]
			middle, high, rank, band = append(middle, a.median), append(high, a.high), append(rank, a.spearman), append(band, 100*a.coverage)
		}
		fmt.Fprintf(out, " %d points %.1f / %.1f / %.3f / %.0f%%;", n, median(middle), median(high), median(rank), median(band))
	}
	good, thesis, tails := 0, 0, 0
	for _, l := range of {
		if l.modelled[2].good() {
			good++
		}
		if l.modelled[2].median <= 20 {
			thesis++
		}
		if l.modelled[2].high <= 20 {
			tails++
		}
	}
	fmt.Fprintf(out, " goal met by %d, median error at most 20%% in %d, 90th percentile at most 20%% in %d.\n\n", good, thesis, tails)
}

// good is the goal: median error at most 10 %, the 90th percentile at most 20 %,
// rank correlation at least 0.95.
func (a accuracy) good() bool { return a.median <= 10 && a.high <= 20 && a.spearman >= 0.95 }

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "**no**"
}

func pair(a accuracy) string {
	if math.IsNaN(a.median) {
		return "–"
	}
	return fmt.Sprintf("%.0f / %.0f", a.median, a.high)
}

// shorten leaves out what every name of a platform has in common.
func shorten(name string) string {
	return strings.NewReplacer("-default_config", "", "tflite_cpp-cpu-", "", "tflite_armnn_cpp-cpu-", "", "-power.0-fan.cool", "", "-using_neon", "", "with_live_preprocessing", "live").Replace(name)
}
