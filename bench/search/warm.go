package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// priorRows is how many results of elsewhere a study begins with.
const priorRows = 100

// warm is one kind of results that a study begins with.
type warm struct {
	name, is string
	// prior answers nil where the kind does not exist for the table.
	prior func(r *rand.Rand, t *table, all []*table) []protocol.Observation
	// seeds are added to the study's: a study without a prior under another seed
	// shows how much differs by chance.
	seeds uint64
	// expect chooses the row around which the optimum is expected, of the rows at their
	// full budget, the best first; nil: nothing is expected.
	expect func(r *rand.Rand, ranked []int) int
}

// warms are the kinds, beside none.
func warms() []warm {
	return []warm{
		{name: "none", is: "nothing, but other seeds", seeds: 1000},
		{name: "same", is: "of the very problem, at its full budget", prior: func(r *rand.Rand, t *table, _ []*table) []protocol.Observation {
			return drawn(r, t, "same", func(row int) float64 { return t.full(row) })
		}},
		{name: "related", is: "of the next of the three related tasks", prior: func(r *rand.Rand, t *table, all []*table) []protocol.Observation {
			other := relative(t, all)
			if other == nil {
				return nil
			}
			return drawn(r, other, "related", func(row int) float64 { return other.full(row) })
		}},
		{name: "shifted", is: "of the problem with its learning rate taken for ten times as much", prior: shifted},
		{name: "unrelated", is: "of the problem, the values shuffled", prior: unrelated},
		{name: "inverted", is: "of the problem, the worst taken for the best", prior: inverted},
		{name: "both", is: "related (or same) and inverted, as two sources", prior: func(r *rand.Rand, t *table, all []*table) []protocol.Observation {
			good := t
			if other := relative(t, all); other != nil {
				good = other
			}
			return append(drawn(r, good, "good", func(row int) float64 { return good.full(row) }), inverted(r, t, all)...)
		}},
		{name: "good", is: "none, but one of the best 2% of the rows is expected", expect: func(r *rand.Rand, ranked []int) int {
			return ranked[r.IntN(1+len(ranked)/50)]
		}},
		{name: "bad", is: "none, but a random row is expected", expect: func(r *rand.Rand, ranked []int) int { return ranked[r.IntN(len(ranked))] }},
		{name: "adversarial", is: "none, but one of the worst 2% of the rows is expected", expect: func(r *rand.Rand, ranked []int) int {
			return ranked[len(ranked)-1-r.IntN(1+len(ranked)/50)]
		}},
	}
}

// known are the points of rows.
func (t *table) known() [][]float64 { return append(slices.Clone(t.points), t.drawn...) }

// ranked are the rows by their losses at the full budget, the best first.
func (t *table) ranked() []int {
	rows := make([]int, len(t.known()))
	for i := range rows {
		rows[i] = i
	}
	slices.SortStableFunc(rows, func(a, b int) int { return worseLast(t.loss(t.full(a)), t.loss(t.full(b))) })
	return rows
}

func warmNames() []string {
	var names []string
	for _, kind := range warms() {
		names = append(names, kind.name)
	}
	return names
}

// relative is the next task of the same family, in a circle.
func relative(t *table, all []*table) *table {
	var family []*table
	for _, one := range all {
		if strings.HasPrefix(one.name, "taskset") {
			family = append(family, one)
		}
	}
	at := slices.Index(family, t)
	if at < 0 {
		return nil
	}
	return family[(at+1)%len(family)]
}

// drawn are the results of random rows, as somebody's random search had them.
func drawn(r *rand.Rand, t *table, source string, value func(row int) float64) []protocol.Observation {
	var list []protocol.Observation
	for _, row := range r.Perm(len(t.points))[:min(priorRows, len(t.points)/2)] {
		list = append(list, protocol.Observation{
			Params: t.cube.Decode(t.points[row]), Values: []trial.Float{trial.Float(value(row))}, Source: source,
		})
	}
	return list
}

func inverted(r *rand.Rand, t *table, _ []*table) []protocol.Observation {
	list := drawn(r, t, "inverted", func(row int) float64 { return -t.full(row) })
	for i, o := range list {
		if math.IsNaN(float64(o.Values[0])) { // what diverged is the best, to an enemy
			list[i].Values[0] = trial.Float(-t.loss(math.MaxFloat64))
		}
	}
	return list
}

func unrelated(r *rand.Rand, t *table, _ []*table) []protocol.Observation {
	list := drawn(r, t, "unrelated", t.full)
	r.Shuffle(len(list), func(i, j int) { list[i].Values, list[j].Values = list[j].Values, list[i].Values })
	return list
}

func shifted(r *rand.Rand, t *table, _ []*table) []protocol.Observation {
	var kept []protocol.Observation
	for _, o := range drawn(r, t, "shifted", t.full) {
		for _, name := range []string{"lr", "learning_rate"} {
			if v, there := o.Params[name]; there {
				rate, _ := v.Number()
				o.Params[name] = space.Float(10 * rate)
			}
		}
		if len(t.definition.Space.Check(o.Params)) == 0 {
			kept = append(kept, o)
		}
	}
	return kept
}

// warmRuns has the runs of one problem by seed: without a prior, and with it.
type warmRuns struct {
	method, kind, problem string
	without, with         []finished
}

// runWarm compares studies that begin with results of elsewhere to ones that
// begin with nothing, seed by seed.
func runWarm(ctx context.Context, tables []*table, o options) error {
	var all []warmRuns
	for _, method := range o.methods {
		for _, workers := range o.workers {
			for _, t := range tables {
				runs, err := o.warmRuns(ctx, t, tables, setup{method: method, workers: workers})
				if err != nil {
					return fmt.Errorf("%s on %s: %w", method, t.name, err)
				}
				all = append(all, runs...)
				fmt.Fprintf(os.Stderr, "%s on %s, %d workers: done\n", method, t.name, workers)
			}
		}
	}
	return printWarm(os.Stdout, all, o, spaces(tables))
}

func (o options) warmRuns(ctx context.Context, t *table, tables []*table, s setup) ([]warmRuns, error) {
	var without []finished
	for seed := range o.seeds {
		s.seed = uint64(seed + o.first)
		one, err := runStudy(ctx, t, o.budget(t), s)
		if err != nil {
			return nil, err
		}
		without = append(without, one)
	}
	var all []warmRuns
	for _, kind := range warms() {
		if !slices.Contains(o.warm, kind.name) {
			continue
		}
		runs := warmRuns{method: s.name(), kind: kind.name, problem: t.name, without: without}
		for seed := range o.seeds {
			s.seed, s.prior = uint64(seed+o.first)+kind.seeds, nil
			r := rand.New(rand.NewPCG(s.seed, 0x7072696f72))
			s.expect = nil
			if kind.expect != nil {
				s.expect, s.sure = t.cube.Decode(t.known()[kind.expect(r, t.ranked())]), o.sure
			} else if kind.prior != nil {
				if s.prior = kind.prior(r, t, tables); s.prior == nil {
					break
				}
			}
			one, err := runStudy(ctx, t, o.budget(t), s)
			if err != nil {
				return nil, err
			}
			runs.with = append(runs.with, one)
		}
		if len(runs.with) > 0 {
			all = append(all, runs)
		}
	}
	return all, nil
}

// warmShares are the shares of the budget at which regrets are compared.
var warmShares = [...]float64{0.1, 0.3, 1}

// printWarm prints, for each method and kind of prior, the mean regret without
// and with it over all problems and seeds, and the p-value of the difference.
func printWarm(out io.Writer, all []warmRuns, o options, of map[string]string) error {
	for _, kind := range warms() {
		fmt.Fprintf(out, "%-10s %s\n", kind.name, kind.is)
	}
	fmt.Fprintf(out, "\n%d seeds, %g full trainings, %d results of elsewhere; mean regret without > with, the 95%% band of the mean difference by space and seed, and its p (Wilcoxon, paired, by space and seed; in brackets by run)\n\n", o.seeds, o.trainings, priorRows)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "METHOD\tPRIOR\tPROBLEM\t10%\t30%\t100%\tTHE SAME END")
	groups := map[string]warmRuns{}
	var order []string
	for _, runs := range all {
		fmt.Fprintln(w, runs.line(runs.problem, of))
		key := runs.method + "\t" + runs.kind
		sum, known := groups[key]
		if !known {
			order = append(order, key)
			sum = warmRuns{method: runs.method, kind: runs.kind}
		}
		sum.without, sum.with = append(sum.without, runs.without...), append(sum.with, runs.with...)
		groups[key] = sum
	}
	for _, key := range order {
		fmt.Fprintln(w, groups[key].line("all", of))
	}
	return w.Flush()
}

func (r warmRuns) line(problem string, of map[string]string) string {
	cells := []string{r.method, r.kind, problem}
	for _, share := range warmShares {
		without, with := 0.0, 0.0
		var found differences
		for i := range r.with {
			before, after := r.without[i].regretAt(share), r.with[i].regretAt(share)
			without, with = without+before/float64(len(r.with)), with+after/float64(len(r.with))
			found.add(draws{of[r.without[i].problem], r.without[i].seed}, after-before)
		}
		clustered, single := found.chance()
		low, high := band(found.means())
		cells = append(cells, fmt.Sprintf("%.3f > %.3f (%+.3f to %+.3f), p %.2g (%.2g)", without, with, low, high, clustered, single))
	}
	return strings.Join(append(cells, r.worth()), "\t")
}

// worth says with which share of the budget the better of the two has the mean
// regret that the other one has at the end.
func (r warmRuns) worth() string {
	without, with := meanAt(r.without[:len(r.with)], 1), meanAt(r.with, 1)
	if with <= without {
		return fmt.Sprintf("with, at %.0f%%", 100*reaches(r.with, without))
	}
	return fmt.Sprintf("without, at %.0f%%", 100*reaches(r.without[:len(r.with)], with))
}

func meanAt(runs []finished, share float64) float64 {
	sum := 0.0
	for _, one := range runs {
		sum += one.regretAt(share)
	}
	return sum / float64(len(runs))
}

func reaches(runs []finished, regret float64) float64 {
	for percent := 1; percent < 100; percent++ {
		if share := float64(percent) / 100; meanAt(runs, share) <= regret {
			return share
		}
	}
	return 1
}
