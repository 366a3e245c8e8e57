// Command tuning measures how many configurations inference_emu/tuning has to try until
// it is near the best one, on grids of a Jetson TX2 that others have measured
// completely, so that the best one is known.
//
//	go run ./bench/edgetune/tuning              # the tables of docs/benchmarks/edgetune.md
//	go run ./bench/edgetune/tuning -seeds 5 -methods tpe,random
//
// The grids are read from TANDEM_DATA (../shared/data if unset).
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

func main() {
	seeds := flag.Int("seeds", 20, "searches of each grid with each method")
	methods := flag.String("methods", "tpe,bohb,cma-es,random,sobol", "methods to compare; gp is slow")
	most := flag.Int("most", 768, "configurations that a search may try")
	flag.Parse()
	if err := run(os.Stdout, *seeds, *most, strings.Split(*methods, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "tuning:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, seeds, most int, methods []string) error {
	grids, err := read()
	if err != nil {
		return err
	}
	if len(grids) == 0 {
		fmt.Fprintln(out, "no measured grids found: nothing to do")
		return nil
	}
	if err := fastest(out, grids); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nConfigurations tried until one is within 1 and 5 %% of the best: median (90th percentile) of %d searches on each of %d grids\n", seeds, len(grids))
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "OBJECTIVE\tMETHOD\t1 %\t5 %")
	for _, metric := range []tuning.Metric{tuning.Latency, tuning.Energy} {
		for _, method := range methods {
			one, five, err := needed(grids, metric, tuning.Settings{Method: method, MaxEvaluations: most}, seeds)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", objective(metric), method, spread(one), spread(five))
		}
	}
	return w.Flush()
}

func objective(metric tuning.Metric) string {
	if metric == tuning.Energy {
		return "energy column"
	}
	return "time"
}

// spread is the median and the 90th percentile.
func spread(counts []float64) string {
	slices.Sort(counts)
	shown := func(count float64) string {
		if math.IsInf(count, 1) {
			return "never"
		}
		return fmt.Sprint(count)
	}
	return fmt.Sprintf("%s (%s)", shown(counts[len(counts)/2]), shown(counts[len(counts)*9/10]))
}

// first is how many configurations a search tries at first. What it tries does
// not depend on how many it may try, so it is asked for more only if none of
// them is near enough.
const first = 48

// needed is how many configurations each search tries until one is within 1 and
// 5 % of the best; +Inf if none is.
func needed(grids []grid, metric tuning.Metric, settings tuning.Settings, seeds int) (one, five []float64, err error) {
	settings.Objective = metric
	most := settings.MaxEvaluations
	for _, g := range grids {
		best, err := g.best(metric)
		if err != nil {
			return nil, nil, err
		}
		goal := best.value(metric)
		settings.Space = g.space
		for seed := range seeds {
			settings.Seed = uint64(seed)
			for settings.MaxEvaluations = min(first, most); ; settings.MaxEvaluations = min(2*settings.MaxEvaluations, most) {
				result, err := tuning.Search(settings, g.evaluate)
				if err != nil {
					return nil, nil, err
				}
				near := until(result.Tried, metric, 1.01*goal)
				if math.IsInf(near, 1) && settings.MaxEvaluations < most {
					continue
				}
				one, five = append(one, near), append(five, until(result.Tried, metric, 1.05*goal))
				break
			}
		}
	}
	return one, five, nil
}

func until(tried []tuning.Evaluation, metric tuning.Metric, goal float64) float64 {
	for i, e := range tried {
		if (point{e}).value(metric) <= goal {
			return float64(i + 1)
		}
	}
	return math.Inf(1)
}

// fastest compares the fastest configuration of each grid with the most
// economical one.
func fastest(out io.Writer, grids []grid) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "GRID\tCONFIGURATIONS\tFASTEST\tMOST ECONOMICAL\tFASTEST TAKES MORE ENERGY\tMOST ECONOMICAL TAKES MORE TIME\tFRONT")
	for _, g := range grids {
		fast, err := g.best(tuning.Latency)
		if err != nil {
			return err
		}
		thrifty, err := g.best(tuning.Energy)
		if err != nil {
			return err
		}
		settings := tuning.Settings{Space: g.space, Objective: tuning.Latency, Front: []tuning.Metric{tuning.Latency, tuning.Energy}, MaxEvaluations: tuning.MaxEvaluations}
		result, err := tuning.Search(settings, g.evaluate)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%+.1f %%\t%+.1f %%\t%d\n", g.name, result.Evaluations, fast, thrifty,
			100*(fast.value(tuning.Energy)/thrifty.value(tuning.Energy)-1), 100*(thrifty.value(tuning.Latency)/fast.value(tuning.Latency)-1), len(result.Front))
	}
	return w.Flush()
}
