// Package live measures priorities on a real server with real workers: studies of two
// classes arrive at random, and urgent ones evict trials, wait for them, or have them
// leave data out. The trials sleep, so that several sites share one machine; an epoch
// of part of the data sleeps as much less. Nothing sprints: that needs the hardware.
package live

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
)

const (
	// workers of so many slots each serve a site.
	workers, slots = 2, 2
	// most is how much of its data a trial may leave out.
	most = 0.4
	// second is an epoch over all data, longest what a measurement may take.
	second  = time.Second
	longest = 25 * time.Minute
)

// class is what studies of one priority are like: so many trials, of which so many run
// at once, of so many epochs each.
type class struct {
	name                     string
	priority                 int
	trials, parallel, epochs int
}

// Of three studies two are urgent; one of the low class takes 13 times as much. With
// nothing left out or lost they keep a share of the slots busy that is the load.
var low, high = class{"low", -1, 4, 4, 20}, class{"high", 5, 2, 1, 3}

const urgent, load = 2.0 / 3, 0.8

// arm is how low trials are treated that are in the way of high ones.
type arm struct {
	name string
	// evicts has them make way, keeps by a checkpoint. leavesOut has them leave data out
	// while high trials take longer than so many times the limit.
	evicts, keeps bool
	leavesOut     float64
}

// arms are all that is compared; the first two are what the others are measured against.
var arms = []arm{
	{name: "evicted, all lost", evicts: true},
	{name: "evicted, from checkpoints", evicts: true, keeps: true},
	{name: "waits"},
	{name: "leaves data out", leavesOut: 1},
	{name: "leaves data out, ten times the limit", leavesOut: 10},
}

type options struct {
	seeds, first, studies int
	limit                 float64
	arms, tandem          string
}

// Measure plays every seed in every arm, all at once, and prints what came of it.
func Measure(args []string, out io.Writer) (err error) {
	var o options
	flags := flag.NewFlagSet("bench/pool live", flag.ContinueOnError)
	flags.IntVar(&o.seeds, "runs", 5, "seeds")
	flags.IntVar(&o.first, "first", 1, "the first of them")
	flags.IntVar(&o.studies, "studies", 60, "studies of a run")
	flags.Float64Var(&o.limit, "limit", 4.3, "response_seconds.mean of the high class: half way from evicting to waiting with seed 0")
	flags.StringVar(&o.arms, "arms", "", "only the arms whose name this expression matches")
	flags.StringVar(&o.tandem, "tandem", "", "a binary to measure (default: built from here)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	folder, err := os.MkdirTemp("", "tandem-live-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if o.tandem == "" {
		if o.tandem, err = launch.Build(ctx, folder); err != nil {
			return err
		}
	}
	wanted, err := regexp.Compile(o.arms)
	if err != nil {
		return err
	}
	var sites []*site
	defer func() {
		for _, one := range sites {
			err = errors.Join(err, one.close())
		}
	}()
	for _, a := range arms {
		for seed := o.first; seed < o.first+o.seeds && wanted.MatchString(a.name); seed++ {
			one := &site{options: o, arm: a, seed: seed, folder: filepath.Join(folder, fmt.Sprint(len(sites)))}
			sites = append(sites, one)
			if err := one.open(ctx); err != nil {
				return err
			}
		}
	}
	met, failed := make([]result, len(sites)), make([]error, len(sites))
	var all sync.WaitGroup
	for i, one := range sites {
		all.Go(func() { met[i], failed[i] = one.run(ctx) })
	}
	all.Wait()
	for _, one := range met {
		fmt.Fprintf(out, "%+v\n", one)
	}
	summarize(out, met)
	return errors.Join(failed...)
}

// arrival is a study that comes after so many seconds.
type arrival struct {
	at float64
	class
}

// arrivals are those of the seed, the same in each arm.
func (o options) arrivals(seed int) []arrival {
	random := rand.New(rand.NewPCG(uint64(seed), 25)) //nolint:gosec // what is drawn has to repeat
	work := func(c class) float64 { return second.Seconds() * float64(c.trials*c.epochs) }
	rate := load * workers * slots / (urgent*work(high) + (1-urgent)*work(low))
	list, at := make([]arrival, o.studies), 0.0
	for i := range list {
		at += random.ExpFloat64() / rate
		list[i] = arrival{at, low}
		if random.Float64() < urgent {
			list[i].class = high
		}
	}
	return list
}

// result is what a run came to. Responses are means, and Tails 95th percentiles, from a
// study's creation to its end, in seconds.
type result struct {
	Arm                          string
	Seed                         int
	Low, LowTail, High, HighTail float64
	// Trial is the mean response of a high trial, which the limit is for. Kept is the
	// share of minutes in which high trials ended and kept it in the mean.
	Trial, Kept float64
	// LeftOut is the share of the low trials' data that they left out, Again the share
	// of epochs that were trained again, Evictions how often trials made way.
	LeftOut, Again, Evictions float64
	// Slower is how long training took, against what its epochs slept.
	Slower float64
}

// columns are what is printed of each arm.
var columns = []struct {
	name, format string
	value        func(r, lost, kept result) float64
}{
	{"low, s", "%.1f", func(r, _, _ result) float64 { return r.Low }},
	{"95%", "%.1f", func(r, _, _ result) float64 { return r.LowTail }},
	{"against lost", "%+.0f%%", func(r, lost, _ result) float64 { return 100 * (r.Low/lost.Low - 1) }},
	{"against checkpoints", "%+.0f%%", func(r, _, kept result) float64 { return 100 * (r.Low/kept.Low - 1) }},
	{"high, s", "%.1f", func(r, _, _ result) float64 { return r.High }},
	{"95%", "%.1f", func(r, _, _ result) float64 { return r.HighTail }},
	{"high trial, s", "%.2f", func(r, _, _ result) float64 { return r.Trial }},
	{"minutes kept", "%.0f%%", func(r, _, _ result) float64 { return 100 * r.Kept }},
	{"left out", "%.1f%%", func(r, _, _ result) float64 { return 100 * r.LeftOut }},
	{"trained again", "%.1f%%", func(r, _, _ result) float64 { return 100 * r.Again }},
	{"evictions", "%.0f", func(r, _, _ result) float64 { return r.Evictions }},
	{"slower", "%.3f", func(r, _, _ result) float64 { return r.Slower }},
}

// summarize prints a row for each arm: medians over the seeds, with their ranges.
func summarize(out io.Writer, met []result) {
	at := map[string]map[int]result{}
	for _, one := range met {
		if at[one.Arm] == nil {
			at[one.Arm] = map[int]result{}
		}
		at[one.Arm][one.Seed] = one
	}
	for _, a := range arms {
		if at[a.name] == nil {
			continue
		}
		fmt.Fprintf(out, "\n%s\n", a.name)
		for _, c := range columns {
			var values []float64
			for seed, one := range at[a.name] {
				values = append(values, c.value(one, at[arms[0].name][seed], at[arms[1].name][seed]))
			}
			slices.Sort(values)
			fmt.Fprintf(out, "  %s: "+c.format+" ("+c.format+" to "+c.format+")\n", c.name, values[len(values)/2], values[0], values[len(values)-1])
		}
	}
}
