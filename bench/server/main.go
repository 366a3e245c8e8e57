// Command server measures how fast a real tandem server hands out and takes
// back trials that cost nothing: REST, SQLite with synchronous=FULL, the
// search and every check included.
//
//	go run ./bench/server                         # 5 runs of 2,000 trials, 2 workers; and of 200 scripts
//	go run ./bench/server -optuna PYTHON          # and Optuna on SQLite, alternating
//	go run ./bench/server -workers 32 -trials 10000 -scripts 0 # what one study takes at most
//	go run ./bench/server -postgresql -scripts 0  # and on PostgreSQL, alternating
//
// Each run has a new data folder. A trial is three durable requests: a lease
// (with a new configuration, of the BOHB search unless -method says otherwise), one report, and its end.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/tandem-tune/tandem/bench/program"
	"github.com/tandem-tune/tandem/e2e/launch"
)

type options struct {
	runs, trials, workers int
	scripts               int
	optuna                string
	optunaTrials          int
	data                  string
	method                string
	postgresql            bool
}

func main() {
	var o options
	flag.IntVar(&o.runs, "runs", 5, "how often to repeat")
	flag.IntVar(&o.trials, "trials", 2000, "trials in a run")
	flag.IntVar(&o.workers, "workers", 2, "workers at once")
	flag.IntVar(&o.scripts, "scripts", 200, "trials in a run of worker processes that start a script for each; 0: none")
	flag.StringVar(&o.optuna, "optuna", "", "Python interpreter with Optuna: compare in the same session")
	flag.IntVar(&o.optunaTrials, "optuna-trials", 200, "trials of an Optuna run")
	flag.StringVar(&o.method, "method", "bohb", "search method of the studies")
	flag.BoolVar(&o.postgresql, "postgresql", false, "compare with a PostgreSQL on the same disk and processors in the same session")
	flag.StringVar(&o.data, "data", "", "folder on the disk to measure; the system's temporary folder when empty")
	flag.Parse()
	debug.SetGCPercent(400) // the clients share the processors with what is measured
	program.Run("bench/server", func(ctx context.Context) error { return run(ctx, o) })
}

func run(ctx context.Context, o options) (err error) {
	folder, err := os.MkdirTemp(o.data, "tandem-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	bench, err := newBench(ctx, folder)
	if err != nil {
		return err
	}
	if o.postgresql {
		if bench.database, err = launch.NewDatabase(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, bench.database.Remove()) }()
	}
	var tandem, postgres, scripts []result
	var optuna []optunaResult
	for i := range o.runs {
		measured, err := bench.run(ctx, filepath.Join(folder, fmt.Sprintf("data-%d", i)), o)
		if err != nil {
			return err
		}
		tandem = append(tandem, measured)
		print(measured)
		if o.postgresql {
			measured, err := bench.runOnPostgreSQL(ctx, filepath.Join(folder, fmt.Sprintf("postgresql-%d", i)), i, o)
			if err != nil {
				return err
			}
			postgres = append(postgres, measured)
			print(measured)
		}
		if o.scripts > 0 {
			measured, err := bench.runScripts(ctx, filepath.Join(folder, fmt.Sprintf("scripts-%d", i)), o)
			if err != nil {
				return err
			}
			scripts = append(scripts, measured)
			print(measured)
		}
		if o.optuna == "" {
			continue
		}
		peer, err := runOptuna(ctx, o, filepath.Join(folder, fmt.Sprintf("optuna-%d.db", i)))
		if err != nil {
			return err
		}
		optuna = append(optuna, peer)
		print(peer)
	}
	summarize(tandem, scripts, optuna)
	comparePostgreSQL(tandem, postgres)
	return nil
}

func print(measured any) {
	line, err := json.Marshal(measured)
	if err == nil {
		fmt.Println(string(line))
	}
}

func summarize(tandem, scripts []result, optuna []optunaResult) {
	rate := spreadOf(tandem, func(r result) float64 { return r.TrialsPerSecond })
	fmt.Printf("\ntandem   %s trials/s, suggest p50 %s ms and p99 %s ms with at least 1,000 finished trials\n", rate,
		spreadOf(tandem, func(r result) float64 { return r.SuggestP50 }), spreadOf(tandem, func(r result) float64 { return r.SuggestP99 }))
	if len(scripts) > 0 {
		fmt.Printf("scripts  %s trials/s with worker processes that start a script for each trial\n", spreadOf(scripts, func(r result) float64 { return r.TrialsPerSecond }))
	}
	if len(optuna) == 0 {
		return
	}
	peer := spreadOf(optuna, func(r optunaResult) float64 { return r.TrialsPerSecond })
	fmt.Printf("optuna   %s trials/s\nratio    %.1f (of the medians)\n", peer, rate.median/peer.median)
}

// comparePostgreSQL compares the runs in their pairs.
func comparePostgreSQL(sqlite, postgres []result) {
	if len(postgres) == 0 {
		return
	}
	ratios := make([]float64, len(postgres))
	for i, one := range postgres {
		ratios[i] = one.TrialsPerSecond / sqlite[i].TrialsPerSecond
	}
	itself := func(ratio float64) float64 { return ratio }
	fmt.Printf("postgresql   %s trials/s, suggest p50 %s ms; %s times those on SQLite\n", spreadOf(postgres, func(r result) float64 { return r.TrialsPerSecond }),
		spreadOf(postgres, func(r result) float64 { return r.SuggestP50 }), spreadOf(ratios, itself))
}

// spread is a median with the smallest and the largest value.
type spread struct{ median, low, high float64 }

func (s spread) String() string { return fmt.Sprintf("%.4g (%.4g to %.4g)", s.median, s.low, s.high) }

func spreadOf[T any](list []T, value func(T) float64) spread {
	values := make([]float64, len(list))
	for i, one := range list {
		values[i] = value(one)
	}
	slices.Sort(values)
	return spread{median: quantile(values, 0.5), low: values[0], high: values[len(values)-1]}
}

// quantile is the nearest rank of a sorted list.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
