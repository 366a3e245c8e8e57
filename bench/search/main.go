// Command search measures how good the searches are: Tandem's own, through the
// simulator and so through the server's code, and other tools, on recorded
// trainings, with the same budgets and the same oracle.
//
//	go run ./bench/search -save runs.jsonl                        # Tandem and every peer
//	go run ./bench/search -peers "" -methods bohb -workers 1,8,32 # Tandem alone
//	go run ./bench/search -methods "" -peers "" -load runs.jsonl  # the report again
//	go run ./bench/search -warm all -methods bohb,tpe -workers 1 -seeds 30 # with results of elsewhere, good and wrong
//	go run ./bench/search -peers "" -ladder epochs -promotions asynchronous,none,none+median,none+halving
//
// The tables are read from TANDEM_DATA (../shared/data if unset), the peers run
// in the Python interpreter of -python. Cost is counted in data passes: epochs
// times the share of the data. A tool that trains a promoted configuration
// from the start pays for it again, as it would in earnest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/bench/program"
	"github.com/tandem-tune/tandem/bench/search/onefold"
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
)

type options struct {
	seeds     int
	first     int // seed
	trainings float64
	workers   []int
	methods   []string
	// climbs are promotions, each with an early-stopping rule behind a plus;
	// empty: what the problem's study file has.
	climbs []string
	// policy replaces that of every problem's ladder, unless it is empty.
	policy   budget.Policy
	peers    []string
	python   string
	seconds  bool
	limit    time.Duration
	problems []string
	save     string
	load     string
	compare  string
	warm     []string
	sure     space.Sureness
}

func main() {
	program.Run("bench/search", func(ctx context.Context) error {
		o, err := parse(os.Args[1:])
		if err != nil {
			return err
		}
		return run(ctx, o)
	})
}

func parse(arguments []string) (options, error) {
	o, names := options{}, []string(nil)
	for _, one := range peers() {
		names = append(names, one.name)
	}
	// Of five parameters or more the grid sees one corner.
	ours := slices.DeleteFunc(search.Names(), func(method string) bool { return method == "grid" })
	flags := flag.NewFlagSet("search", flag.ContinueOnError)
	flags.IntVar(&o.seeds, "seeds", 30, "runs of each method on each problem")
	flags.IntVar(&o.first, "first", 1, "seed of the first run; the others follow")
	flags.Float64Var(&o.trainings, "budget", 30, "budget of a run, in full trainings")
	flags.BoolVar(&o.seconds, "seconds", false, "a run may take the time of its budget, not its passes (Tandem alone)")
	workers := flags.String("workers", "1,8", "numbers of simulated workers Tandem runs with; peers have one")
	methods := flags.String("methods", strings.Join(ours, ","), "Tandem's methods; NAME+down rounds ladders down, NAME+one learns from one rung")
	climbs := flags.String("promotions", "", "Tandem's promotions, each with an early-stopping rule behind a plus (none+median); empty: the problems' own")
	policy := flags.String("ladder", "", "budget policy of every problem for Tandem: multi, epochs or dataset; empty: the problems' own")
	wanted := flags.String("peers", strings.Join(names, ","), "the other tools; empty: none")
	flags.StringVar(&o.python, "python", ".venv-bench/bin/python", "interpreter in which they are installed")
	flags.DurationVar(&o.limit, "limit", 10*time.Minute, "time for one peer; the runs it finished count")
	problems := flags.String("problems", "", "names of problems, all when empty")
	flags.StringVar(&o.save, "save", "", "file to write the runs to")
	flags.StringVar(&o.load, "load", "", "file of runs to compare with, which are not measured again")
	flags.StringVar(&o.compare, "compare", "", "instead of all that: \"policies\" of budgets, \"plans\" with what was trained, or \"onefold\" search with hierarchical search")
	warm := flags.String("warm", "", "compare Tandem with and without these results of elsewhere, instead of with peers: all, or some of "+strings.Join(warmNames(), ","))
	flags.StringVar((*string)(&o.sure), "sure", string(space.Medium), "how sure the expectations of -warm good, bad and adversarial are: low, medium or high")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	for _, text := range list(*workers) {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 {
			return o, fmt.Errorf("-workers: %q is not a number of workers", text)
		}
		o.workers = append(o.workers, number)
	}
	o.methods, o.peers, o.problems = list(*methods), list(*wanted), list(*problems)
	if o.warm = list(*warm); *warm == "all" {
		o.warm = warmNames()
	}
	for _, name := range o.warm {
		if !slices.Contains(warmNames(), name) {
			return o, fmt.Errorf("-warm: there is no %q, only %s", name, strings.Join(warmNames(), ", "))
		}
	}
	o.policy = budget.Policy(*policy)
	if o.climbs = list(*climbs); len(o.climbs) == 0 {
		o.climbs = []string{""}
	}
	for _, name := range o.peers {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("-peers: there is no peer %q, only %s", name, strings.Join(names, ", "))
		}
	}
	if o.seeds < 1 || o.first < 1 || !(o.trainings > 0) || len(o.workers) == 0 {
		return o, errors.New("needs at least one seed (from 1 on), one worker, and a budget")
	}
	return o, nil
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func run(ctx context.Context, o options) error {
	switch o.compare {
	case "policies":
		return comparePolicies(ctx, o)
	case "onefold":
		if err := onefold.Print(ctx, os.Stdout, onefold.Options{Folder: filepath.Join(dataFolder(), "zeus"), Methods: o.methods, Seeds: o.seeds}); err != nil {
			return fmt.Errorf("%w (%w)", errNoData, err)
		}
		return nil
	case "", "plans":
	default:
		return fmt.Errorf("-compare: there is no comparison %q, only policies, plans and onefold", o.compare)
	}
	tables, err := loadTables(dataFolder())
	if err != nil {
		return err
	}
	if len(o.problems) > 0 {
		tables = slices.DeleteFunc(tables, func(t *table) bool { return !slices.Contains(o.problems, t.name) })
	}
	if len(tables) == 0 {
		return fmt.Errorf("-problems: there is none of %s", strings.Join(o.problems, ", "))
	}
	if o.compare == "plans" {
		return comparePlans(ctx, tables, o)
	}
	if len(o.warm) > 0 {
		return runWarm(ctx, tables, o)
	}
	ours, err := runTandem(ctx, tables, o)
	if err != nil {
		return err
	}
	theirs, failures := runPeers(ctx, tables, o)
	if err := ctx.Err(); err != nil {
		return err
	}
	runs := append(ours, theirs...)
	if o.save != "" {
		if err := saveRuns(o.save, runs); err != nil {
			return err
		}
	}
	if o.load != "" {
		loaded, err := loadRuns(o.load)
		if err != nil {
			return err
		}
		runs = append(runs, loaded...)
	}
	if len(runs) == 0 {
		return errors.Join(append(failures, errors.New("there are no runs: name methods, peers or a file of runs"))...)
	}
	report{tables: tables, runs: runs, failures: failures}.print(os.Stdout)
	return nil
}

// budget is what a run may spend on the problem, in data passes.
func (o options) budget(t *table) float64 {
	if o.seconds {
		return o.trainings * meanTraining(t)
	}
	return o.trainings * float64(t.maxEpochs())
}

// runPeers runs two peers at a time. What goes wrong is part of the result.
func runPeers(ctx context.Context, tables []*table, o options) (runs []finished, failures []error) {
	if len(o.peers) == 0 {
		return nil, nil
	}
	var group sync.WaitGroup
	var mutex sync.Mutex
	slots := make(chan struct{}, 2)
	for _, one := range peers() {
		if !slices.Contains(o.peers, one.name) {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			started := time.Now()
			done, err := one.run(ctx, o.python, o.jobs(one.name, tables), o.limit)
			fmt.Fprintf(os.Stderr, "%s: %d runs in %.0f s\n", one.name, len(done), time.Since(started).Seconds())
			mutex.Lock()
			defer mutex.Unlock()
			runs = append(runs, done...)
			if err != nil {
				failures = append(failures, err)
			}
		})
	}
	group.Wait()
	return runs, failures
}

// jobs are a peer's runs, all problems with one seed before the next.
func (o options) jobs(method string, tables []*table) []*session {
	var jobs []*session
	for seed := range o.seeds {
		for _, t := range tables {
			jobs = append(jobs, newSession(method, t, uint64(seed+o.first), o.budget(t)))
		}
	}
	return jobs
}
