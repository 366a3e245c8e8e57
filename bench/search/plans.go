package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// comparePlans runs studies to their last trial and compares what was trained with what
// their plans had expected: passes over the data, and trials at the top rung.
func comparePlans(ctx context.Context, tables []*table, o options) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "search\ttrials\tstudies\tpasses / plan: median\t10 to 90%\twithin its range\ttop rung / plan: median\t10 to 90%\t")
	for _, s := range o.setups() {
		for _, trials := range []int{27, 60, 200} {
			var passes, tops []float64
			within := 0
			for seed := range o.seeds {
				s.seed = uint64(seed + o.first)
				for _, t := range tables {
					def := s.apply(t.definition)
					def.Stop = definition.Stop{Trials: trials}
					trace, err := simulator.Run(ctx, def, t, simulator.Options{Workers: s.workers, Seed: s.seed, LeaseSeconds: longLease})
					if err != nil {
						return fmt.Errorf("%s on %s: %w", s.name(), t.name, err)
					}
					plan := def.Plan()
					top := plan.Stages[len(plan.Stages)-1]
					if plan.FewestPasses <= trace.Cost && trace.Cost <= plan.MostPasses {
						within++
					}
					passes = append(passes, trace.Cost/plan.DataPasses)
					tops = append(tops, float64(trace.Study.Progress.Trials[trial.Completed])/float64(top.Started+top.Promoted))
				}
			}
			slices.Sort(passes)
			slices.Sort(tops)
			fmt.Fprintf(w, "%s\t%d\t%d\t", s.name(), trials, len(passes))
			inDeciles(w, passes)
			fmt.Fprintf(w, "%d%%\t", 100*within/len(passes))
			inDeciles(w, tops)
			fmt.Fprintln(w)
		}
	}
	return w.Flush()
}

func inDeciles(w io.Writer, sorted []float64) {
	at := func(part float64) float64 { return sorted[int(part*float64(len(sorted)-1))] }
	fmt.Fprintf(w, "%.2f\t%.2f to %.2f\t", at(0.5), at(0.1), at(0.9))
}
