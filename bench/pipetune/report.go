package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// table is the runs of a comparison that are comparable: those without an
// error, of one budget.
type table struct{ runs []run }

// report prints what was measured as Markdown, for docs/benchmarks/pipetune.md.
func report(o options, out io.Writer) error {
	all, err := load[run](o.resultsFile())
	if err != nil {
		return err
	}
	t := table{slices.DeleteFunc(slices.Clone(all), func(r run) bool { return r.Error != "" || r.Passes != o.passes || r.Scale != o.scale })}
	if len(t.runs) == 0 {
		return errors.Join(fmt.Errorf("%s has no run with a budget of %d epochs at scale %g: begin with the command run", o.resultsFile(), o.passes, o.scale), tenancyReport(o, out))
	}
	t.header(out, len(all)-len(t.runs))
	for _, w := range workloads() {
		if len(t.of(w.name, "")) > 0 {
			t.workload(out, w)
		}
	}
	t.ratios(out)
	return tenancyReport(o, out)
}

func (t table) header(out io.Writer, left int) {
	first := t.runs[0]
	var loads []float64
	var commits []string
	for _, one := range t.runs {
		loads = append(loads, one.Load)
		commits = append(commits, one.Commit)
	}
	slices.Sort(commits)
	fmt.Fprintf(out, "\n%d cores, %s; PyTorch takes %d threads by itself. Commit %s. Load before the runs: %s. Each study trains %d epochs in all, 1, 3 or 9 of a trial, at scale %g. ",
		first.Machine.Cores, first.Machine.Model, first.Machine.Threads, strings.Join(slices.Compact(commits), ", "), spread(loads, 2), first.Passes, first.Scale)
	fmt.Fprintf(out, "Joules are of the whole machine, %s. Medians, with the smallest and the largest in brackets.", first.Method)
	if left > 0 {
		fmt.Fprintf(out, " %d runs failed or had another budget and are not in here.", left)
	}
	fmt.Fprint(out, "\n")
}

// of are the runs of an arm on a workload; of all arms if it is "".
func (t table) of(workload, arm string) []run {
	var list []run
	for _, one := range t.runs {
		if one.Workload == workload && (arm == "" || one.Arm == arm) {
			list = append(list, one)
		}
	}
	return list
}

func each(runs []run, value func(run) float64) []float64 {
	var list []float64
	for _, one := range runs {
		list = append(list, value(one))
	}
	return list
}

// workload prints a table with a row for each arm.
func (t table) workload(out io.Writer, w workload) {
	best := t.best(w.name)
	fmt.Fprintf(out, "\n**%s** (type %s; best validation accuracy of any arm: %.4f)\n\n", w.name, w.kind, best)
	fmt.Fprint(out, "| arm | n | tuning s | of trials' seconds, starts | to 95% s | to 99% s | validation | test | winner trains s | its threads | J tuning | trials | epochs |\n")
	fmt.Fprint(out, "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, a := range arms() {
		runs := t.of(w.name, a.name)
		if len(runs) == 0 {
			continue
		}
		retrained := slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return !r.Winner.Retrained })
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", a.name, len(runs),
			spread(each(runs, func(r run) float64 { return r.Seconds }), 1),
			spread(each(runs, func(r run) float64 { return r.Setup }), 1),
			spread(each(runs, func(r run) float64 { return secondsTo(r.Curve, 0.95*best) }), 1),
			spread(each(runs, func(r run) float64 { return secondsTo(r.Curve, 0.99*best) }), 1),
			spread(each(runs, func(r run) float64 { return r.Winner.Accuracy }), 4),
			spread(each(retrained, func(r run) float64 { return r.Winner.TestAccuracy }), 4),
			spread(each(retrained, func(r run) float64 { return r.Winner.Seconds }), 1),
			spread(each(runs, func(r run) float64 { return float64(r.Winner.Threads) }), 0),
			spread(each(runs, func(r run) float64 { return r.Joules }), 0),
			spread(each(runs, func(r run) float64 { return float64(r.Trials) }), 0),
			spread(each(runs, func(r run) float64 { return float64(r.Epochs) }), 0))
	}
}

// quantity is what ratios are taken of.
type quantity struct {
	name  string
	value func(run) float64
}

func quantities() []quantity {
	return []quantity{
		{"tuning time", func(r run) float64 { return r.Seconds }},
		{"joules", func(r run) float64 { return r.Joules }},
		{"winner's training time", func(r run) float64 { return r.Winner.Seconds }},
	}
}

// ratios compares every arm with those it has to beat: medians over the
// repetitions of the ratio within each, and their geometric mean over the workloads.
func (t table) ratios(out io.Writer) {
	for _, base := range []string{"optuna-processes", "slots", "optuna", "v1", "v2"} {
		if !slices.ContainsFunc(t.runs, func(r run) bool { return r.Arm == base }) {
			continue
		}
		fmt.Fprintf(out, "\n**Ratios to %s** (below 1 is less; of each repetition, then the median), and the difference of test accuracy in points\n\n", base)
		fmt.Fprint(out, "| arm | workload | tuning time | joules | winner's training time | test accuracy |\n|---|---|---|---|---|---|\n")
		for _, a := range arms() {
			if a.name != base {
				t.against(out, a.name, base)
			}
		}
		t.arrivals(out, base)
	}
}

// arrivals compares how long an arm and its base are expected to take to a share
// of the best accuracy that any arm reached (expectedTo).
func (t table) arrivals(out io.Writer, base string) {
	fmt.Fprintf(out, "\n**Expected seconds to a share of the best accuracy**, runs that reach it, and the ratio to %s with its 95%% interval (bootstrap over repetitions)\n\n", base)
	fmt.Fprintf(out, "| share | arm | workload | its seconds | reached | %[1]s | reached | ratio |\n|---|---|---|---|---|---|---|---|\n", base)
	for _, share := range []float64{0.95, 0.99} {
		for _, a := range arms() {
			var all [][]pair
			for _, w := range workloads() {
				pairs := t.curves(w.name, a.name, base, share)
				if a.name == base || len(pairs) == 0 {
					continue
				}
				one, reached := expectedTo(pairs, 0)
				other, also := expectedTo(pairs, 1)
				all = append(all, pairs)
				fmt.Fprintf(out, "| %.0f%% | %s | %s | %s | %d of %d | %s | %d of %d | %s |\n", 100*share, a.name, w.name, number(one, 1), reached, len(pairs),
					number(other, 1), also, len(pairs), ratio(pairs))
			}
			if len(all) > 1 {
				fmt.Fprintf(out, "| %.0f%% | **%s** | median workload | | | | | **%s** |\n", 100*share, a.name, ratio(all...))
			}
		}
	}
}

// curves are the repetitions that both arms have: when each reached the share of
// the best accuracy that any arm had on the workload, and how long it searched.
func (t table) curves(workload, arm, base string, share float64) []pair {
	best := t.best(workload)
	var list []pair
	for _, one := range t.of(workload, arm) {
		for _, other := range t.of(workload, base) {
			if other.Repetition == one.Repetition {
				list = append(list, pair{
					{secondsTo(one.Curve, share*best), one.Seconds}, {secondsTo(other.Curve, share*best), other.Seconds},
				})
			}
		}
	}
	return list
}

// best is the highest accuracy that any arm had on a workload.
func (t table) best(workload string) float64 {
	best := 0.0
	for _, one := range t.of(workload, "") {
		for _, p := range one.Curve {
			best = max(best, p.Accuracy)
		}
	}
	return best
}

// against prints an arm's rows of such a table.
func (t table) against(out io.Writer, arm, base string) {
	means := make([][]float64, len(quantities()))
	rows := 0
	for _, w := range workloads() {
		var cells []string
		for at, q := range quantities() {
			ratios := t.paired(w.name, arm, base, func(one, other run) float64 { return q.value(one) / q.value(other) })
			if m := median(ratios); m > 0 && !math.IsInf(m, 0) {
				means[at] = append(means[at], m)
			}
			cells = append(cells, spread(ratios, 2))
		}
		differences := t.paired(w.name, arm, base, func(one, other run) float64 {
			if !one.Winner.Retrained || !other.Winner.Retrained {
				return math.NaN()
			}
			return 100 * (one.Winner.TestAccuracy - other.Winner.TestAccuracy)
		})
		if cells[0] == "" {
			continue
		}
		rows++
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", arm, w.name, strings.Join(cells, " | "), spread(differences, 2))
	}
	if rows > 1 {
		fmt.Fprintf(out, "| **%s** | geometric mean | **%s** | **%s** | **%s** | |\n", arm, number(geometricMean(means[0]), 2), number(geometricMean(means[1]), 2), number(geometricMean(means[2]), 2))
	}
}

// paired compares two arms within each repetition that both have.
func (t table) paired(workload, arm, base string, compare func(one, other run) float64) []float64 {
	var list []float64
	for _, one := range t.of(workload, arm) {
		for _, other := range t.of(workload, base) {
			if value := compare(one, other); other.Repetition == one.Repetition && !math.IsNaN(value) {
				list = append(list, value)
			}
		}
	}
	return list
}
