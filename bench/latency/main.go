// Command latency measures how long a suggestion takes in a study of many
// trials: in the search alone, and through a real server with REST and SQLite;
// and how much memory a trial takes.
//
//	go run ./bench/latency                                     # 1,000, 10,000 and 100,000 trials of 20 parameters
//	go run ./bench/latency -server=false                       # the search alone
//	go run ./bench/latency -optuna .venv-bench/bin/python      # and Optuna's TPE with 10,000 trials of 10
//
// The study is a real one: every trial is suggested by the search and measured,
// one after the other, while as many others as -pending are out. The last
// trials before each size are timed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/bench/program"
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

type options struct {
	sizes                        []int
	parameters, pending, samples int
	method                       string
	server                       bool
	optuna                       string
	optunaTrials, optunaWidth    int
}

func main() {
	program.Run("bench/latency", func(ctx context.Context) error {
		o, err := parse(os.Args[1:])
		if err != nil {
			return err
		}
		return run(ctx, o)
	})
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("latency", flag.ContinueOnError)
	sizes := flags.String("trials", "1000,10000,100000", "finished trials at which suggestions are timed")
	flags.IntVar(&o.parameters, "parameters", 20, "numbers in the space")
	flags.IntVar(&o.pending, "pending", 64, "trials that are out")
	flags.IntVar(&o.samples, "samples", 500, "suggestions that are timed")
	flags.StringVar(&o.method, "method", "bohb", "the search's method")
	flags.BoolVar(&o.server, "server", true, "measure a server too (100,000 trials take minutes)")
	flags.StringVar(&o.optuna, "optuna", "", "Python interpreter with Optuna: compare in the same session")
	flags.IntVar(&o.optunaTrials, "optuna-trials", 10_000, "finished trials of Optuna's study")
	flags.IntVar(&o.optunaWidth, "optuna-parameters", 10, "numbers in its space")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < o.samples {
			return o, fmt.Errorf("-trials: %q is not a number of at least -samples trials", text)
		}
		o.sizes = append(o.sizes, n)
	}
	slices.Sort(o.sizes)
	if o.parameters < 1 || o.pending < 1 || o.samples < 1 {
		return o, errors.New("-parameters, -pending and -samples must be at least 1")
	}
	return o, nil
}

func run(ctx context.Context, o options) error {
	fmt.Printf("%s, %d parameters, %d trials out; %d suggestions at each size\n\n", o.method, o.parameters, o.pending, o.samples)
	fmt.Println("| | trials | p50 | p99 | slowest | bytes a trial |\n|---|---|---|---|---|---|")
	if err := alone(ctx, o); err != nil {
		return err
	}
	if o.server {
		if err := served(ctx, o); err != nil {
			return err
		}
	}
	if o.optuna == "" {
		return nil
	}
	command := exec.CommandContext(ctx, o.optuna, "bench/latency/optuna_ask.py",
		"--trials", fmt.Sprint(o.optunaTrials), "--parameters", fmt.Sprint(o.optunaWidth))
	output, err := command.Output()
	if err != nil {
		return fmt.Errorf("optuna: %w", err)
	}
	fmt.Print(string(output))
	return nil
}

// alone times the search: a request, and taking the result of another trial in.
func alone(ctx context.Context, o options) error {
	settings := search.Settings{
		Method: o.method, Seed: 1, Eta: 3, Maximize: []bool{false}, RandomFraction: 1. / 3, Brackets: 1,
		Rungs: []budget.Rung{{Budget: budget.Budget{Epochs: 1, DataFraction: 1}}},
	}
	for i := range o.parameters {
		settings.Space.Parameters = append(settings.Space.Parameters,
			space.Parameter{Name: name(i), Kind: space.Training, Type: space.FloatType, Low: -5, High: 5})
	}
	method, err := search.New(settings)
	if err != nil {
		return err
	}
	before := heap()
	var out []search.Action
	var times []time.Duration
	for done := 0; done < o.sizes[len(o.sizes)-1]; {
		started := time.Now()
		actions, err := method.Handle(search.Event{Kind: search.Request})
		if err != nil {
			return err
		}
		out = append(out, actions[0])
		took := time.Since(started)
		if len(out) <= o.pending {
			continue
		}
		event := search.Event{Kind: search.Measured, Trial: out[0].Trial, Values: []trial.Float{trial.Float(loss(out[0].Configuration))}}
		out = out[1:]
		started = time.Now()
		if _, err := method.Handle(event); err != nil {
			return err
		}
		times = append(times, took+time.Since(started))
		if done++; slices.Contains(o.sizes, done) {
			show("search alone", done, times[len(times)-o.samples:], (heap()-before)/int64(done))
			times = times[:0]
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	runtime.KeepAlive(method)
	return nil
}

func name(i int) string { return fmt.Sprintf("x%02d", i) }

// loss is the squared distance from 1.
func loss(c space.Configuration) float64 {
	sum := 0.0
	for _, v := range c {
		x, _ := v.Number()
		sum += (x - 1) * (x - 1)
	}
	return sum
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func show(what string, trials int, times []time.Duration, bytes int64) {
	sorted := slices.Sorted(slices.Values(times))
	at := func(q float64) float64 {
		return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Seconds() * 1000
	}
	fmt.Printf("| %s | %d | %.2f ms | %.2f ms | %.2f ms | %d |\n", what, trials, at(0.5), at(0.99), at(1), bytes)
}
