package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// development names the problems on which Tandem's defaults were chosen. The
// others tell whether that generalizes.
func development() []string {
	return []string{"fmnist", "taskset-lstm128-bs64", "lcbench-3945", "lcbench-189908"}
}

// report compares runs. The first method is compared with each other one.
type report struct {
	tables   []*table
	runs     []finished
	failures []error
}

// methods in the order in which they first appear.
func (r report) methods() []string {
	var methods []string
	for _, one := range r.runs {
		if !slices.Contains(methods, one.method) {
			methods = append(methods, one.method)
		}
	}
	return methods
}

// seeds of all runs, sorted.
func (r report) seeds() []uint64 {
	var seeds []uint64
	for _, one := range r.runs {
		seeds = append(seeds, one.seed)
	}
	slices.Sort(seeds)
	return slices.Compact(seeds)
}

// place is where one comparison happens.
type place struct {
	problem string
	seed    uint64
}

// places are where the method was run, and what was measured there.
func (r report) places(method string, of measure) map[place]float64 {
	found := map[place]float64{}
	for _, one := range r.runs {
		if one.method == method && slices.ContainsFunc(r.tables, func(t *table) bool { return t.name == one.problem }) {
			found[place{one.problem, one.seed}] = of(one)
		}
	}
	return found
}

func (r report) print(w io.Writer) {
	r.printProblems(w)
	r.printAnswers(w, fmt.Sprintf("all %d problems", len(r.tables)))
	r.printComparison(w, "% of the budget until it is measured, ", censored(goals()))
	r.printClock(w)
	tuned, others := r, r
	tuned.tables, others.tables = nil, nil
	for _, t := range r.tables {
		if slices.Contains(development(), t.name) {
			tuned.tables = append(tuned.tables, t)
		} else {
			others.tables = append(others.tables, t)
		}
	}
	if len(tuned.tables) > 0 && len(others.tables) > 0 {
		tuned.printRanks(w, "problems the defaults were tried on: ")
		others.printRanks(w, "the other problems: ")
		others.printComparison(w, "regret on the other problems, ", regrets())
	}
	r.printRanks(w, "")
	r.printComparison(w, "regret, ", regrets())
	for _, failure := range r.failures {
		fmt.Fprintf(w, "\nfailed: %v\n", failure)
	}
}

func header(w io.Writer, first string, rest ...string) {
	fmt.Fprintf(w, "\n| %s | %s |\n|---|%s\n", first, strings.Join(rest, " | "), strings.Repeat("---|", len(rest)))
}

// printProblems shows what each problem costs, and means of the regret with their
// confidence.
func (r report) printProblems(w io.Writer) {
	for _, t := range r.tables {
		report{tables: []*table{t}, runs: r.runs}.printAnswers(w, t.name)
		header(w, t.name+": mean regret (95% band)", append([]string{"runs"}, headings(regrets())...)...)
		for _, method := range r.methods() {
			count, cells := 0, []string{}
			for _, c := range regrets() {
				values := r.on(t, method, c.of)
				if count = len(values); count == 0 {
					break
				}
				low, high := band(values)
				cells = append(cells, fmt.Sprintf("%.3f (%.3f to %.3f)", mean(values), low, high))
			}
			if count > 0 {
				fmt.Fprintf(w, "| %s | %d | %s |\n", method, count, strings.Join(cells, " | "))
			}
		}
	}
}

// on measures the method's runs on a problem.
func (r report) on(t *table, method string, of measure) []float64 {
	var values []float64
	for _, one := range r.runs {
		if one.problem == t.name && one.method == method {
			values = append(values, of(one))
		}
	}
	return values
}

// clock is the shares of time at which searches are compared; all of it is what
// the first method takes with one worker to spend the budget, on average.
func clock() []float64 { return []float64{0.01, 0.03, 0.1, 0.3, 1} }

// printClock shows regret against simulated time: its mean over the problems,
// and the band of that mean over the seeds.
func (r report) printClock(w io.Writer) {
	first := r.methods()[0]
	var columns []string
	for _, share := range clock() {
		columns = append(columns, fmt.Sprintf("%.0f%%", 100*share))
	}
	header(w, fmt.Sprintf("mean regret over %d problems (95%% band) after a share of the time that %s takes", len(r.tables), first), columns...)
	for _, method := range r.methods() {
		var cells []string
		for _, share := range clock() {
			bySeed := map[uint64][]float64{}
			for _, t := range r.tables {
				whole := mean(r.on(t, first, func(one finished) float64 { return one.seconds }))
				for _, one := range r.runs {
					if one.problem == t.name && one.method == method {
						bySeed[one.seed] = append(bySeed[one.seed], one.regretBy(share*whole))
					}
				}
			}
			var values []float64
			for _, seed := range slices.Sorted(maps.Keys(bySeed)) {
				if len(bySeed[seed]) == len(r.tables) {
					values = append(values, mean(bySeed[seed]))
				}
			}
			low, high := band(values)
			cells = append(cells, fmt.Sprintf("%.3f (%.3f to %.3f)", mean(values), low, high))
		}
		fmt.Fprintf(w, "| %s | %s |\n", method, strings.Join(cells, " | "))
	}
}

// averageRanks ranks the methods with one worker, as every peer has, at every
// place where all of them were run, and averages over the places. A method with
// fewer than half the runs is left out, so that a slow one does not decide
// where the others are compared.
func (r report) averageRanks(of measure) (methods []string, average []float64, places int) {
	var measured []map[place]float64
	most := 0
	for _, method := range r.methods() {
		most = max(most, len(r.places(method, of)))
	}
	for _, method := range r.methods() {
		found := r.places(method, of)
		if 2*len(found) >= most && !r.parallel(method) {
			methods, measured = append(methods, method), append(measured, found)
		}
	}
	average = make([]float64, len(methods))
	for _, t := range r.tables {
		for _, seed := range r.seeds() {
			values := make([]float64, 0, len(methods))
			for _, found := range measured {
				if value, run := found[place{t.name, seed}]; run {
					values = append(values, value)
				}
			}
			if len(values) < len(methods) {
				continue
			}
			places++
			for i, rank := range ranks(values) {
				average[i] += rank
			}
		}
	}
	for i := range average {
		average[i] /= float64(max(places, 1))
	}
	return methods, average, places
}

// parallel reports whether the method had several workers.
func (r report) parallel(method string) bool {
	return slices.ContainsFunc(r.runs, func(one finished) bool { return one.method == method && one.workers > 1 })
}

func (r report) printRanks(w io.Writer, title string) {
	rows := map[string][]string{}
	methods, places := []string{}, 0
	for _, c := range regrets() {
		var average []float64
		methods, average, places = r.averageRanks(c.of)
		for i, method := range methods {
			rows[method] = append(rows[method], fmt.Sprintf("%.2f", average[i]))
		}
	}
	header(w, fmt.Sprintf("%saverage rank of %d with one worker, over %d runs on %d problems", title, len(methods), places, len(r.tables)), headings(regrets())...)
	for _, method := range methods {
		fmt.Fprintf(w, "| %s | %s |\n", method, strings.Join(rows[method], " | "))
	}
}

// comparison is one of two methods at the places where both were run.
type comparison struct {
	better, worse     int
	clustered, single float64 // p-values, see [differences.chance]
}

func (r report) compare(first, other string, of measure) comparison {
	ours, theirs := r.places(first, of), r.places(other, of)
	var c comparison
	var found differences
	shared := spaces(r.tables)
	for _, t := range r.tables {
		for _, seed := range r.seeds() {
			at := place{t.name, seed}
			mine, run := ours[at]
			yours, also := theirs[at]
			if !run || !also {
				continue
			}
			found.add(draws{shared[t.name], seed}, mine-yours)
			switch {
			case mine < yours:
				c.better++
			case mine > yours:
				c.worse++
			}
		}
	}
	c.clustered, c.single = found.chance()
	return c
}

// printComparison corrects the p-values of its table for their number, by Holm.
// Behind each stands, in brackets, what it would be if runs shared nothing.
func (r report) printComparison(w io.Writer, title string, columns []column) {
	methods := r.methods()
	header(w, title+methods[0]+" against: better, worse, p by space and seed (by run; both Holm)", headings(columns)...)
	var all []comparison
	var clustered, single []float64
	for _, other := range methods[1:] {
		for _, column := range columns {
			c := r.compare(methods[0], other, column.of)
			all, clustered, single = append(all, c), append(clustered, c.clustered), append(single, c.single)
		}
	}
	clustered, single = holm(clustered), holm(single)
	for i, other := range methods[1:] {
		var cells []string
		for k := range columns {
			at := i*len(columns) + k
			cells = append(cells, fmt.Sprintf("%d, %d, p = %.2g (%.2g)", all[at].better, all[at].worse, clustered[at], single[at]))
		}
		fmt.Fprintf(w, "| %s | %s |\n", other, strings.Join(cells, " | "))
	}
}
