// Command pipetune compares what tuning the system parameters while trials
// train is worth (Rocha, section 6.4), side by side with tuning none (V1),
// with tuning them like hyperparameters (V2), with Optuna and with Ray Tune.
//
//	bench/pipetune/data.sh                               # once: the data
//	go run ./bench/pipetune run -optuna PYTHON           # the quick set, 5 repetitions
//	go run ./bench/pipetune run -set full -ray PYTHON    # every workload and arm
//	go run ./bench/pipetune report                       # Markdown of what was measured
//	go run ./bench/pipetune epochs                       # what there is to gain
//	go run ./bench/pipetune overhead                     # what a worker adds to an epoch
//	go run ./bench/pipetune tenancy                      # many studies, arriving at random
//
// README.md beside it says what each arm and each number is.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// usualPasses is the budget of a study, where the command line has none: about
// a dozen trials on the ladder of 1, 3 and 9 epochs.
const usualPasses = 27

// options are what the command line says.
type options struct {
	command                string
	set, workloads, arms   string
	teachers               string
	repetitions, first     int
	passes                 int
	scale                  float64
	out                    string
	python, optuna, ray    string
	scripts, client, data  string
	retrain                bool
	full                   bool // no ladder: what a ground truth is learned from
	jobs                   int
	interarrival, patience float64
	epochs                 int
	against                string
}

func main() {
	o := parse(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := dispatch(ctx, o)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // which signal it was, instead of what it broke
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/pipetune:", err)
		os.Exit(1)
	}
}

func parse(args []string) options {
	o := options{command: "help"}
	if len(args) > 0 {
		o.command, args = args[0], args[1:]
	}
	cache, _ := os.UserCacheDir() // without one the flags have to say where
	folder := filepath.Join(cache, "tandem", "pipetune")
	f := flag.NewFlagSet("pipetune "+o.command, flag.ExitOnError)
	f.StringVar(&o.set, "set", "quick", "quick or full: which workloads and arms, unless they are named")
	f.StringVar(&o.workloads, "workloads", "", "comma-separated names: "+strings.Join(names(workloads(), func(w workload) string { return w.name }), ", "))
	f.StringVar(&o.arms, "arms", "", "comma-separated names: "+strings.Join(names(arms(), func(a arm) string { return a.name }), ", "))
	f.StringVar(&o.teachers, "teachers", "", "comma-separated workloads that ground truths are measured on; all of them when empty. Never the data set itself for the arm warm")
	f.IntVar(&o.repetitions, "repetitions", 5, "how often each arm searches on each workload, each time with another seed")
	f.IntVar(&o.first, "first", 1, "number of the first repetition, which is its seed")
	f.IntVar(&o.passes, "passes", 0, fmt.Sprintf("budget of a study: epochs over all trials (default %d; %d for tenancy)", usualPasses, tenancyPasses))
	f.Float64Var(&o.scale, "scale", 2, "length of an epoch: 1 is 0.1 to 0.6 s of one thread; the longer, the less the starts of processes count")
	f.StringVar(&o.out, "out", "pipetune-results", "folder of the results; runs that are in it are not repeated")
	f.StringVar(&o.python, "python", "/usr/bin/python3", "an interpreter with PyTorch")
	f.StringVar(&o.optuna, "optuna", "", "an interpreter with PyTorch and Optuna; without one its arms are left out")
	f.StringVar(&o.ray, "ray", "", "an interpreter with PyTorch, ray[tune], hpbandster and ConfigSpace; without one its arm is left out")
	f.StringVar(&o.scripts, "scripts", "bench/pipetune/scripts", "folder of the training scripts")
	f.StringVar(&o.client, "client", "clients/python", "folder of the Python client")
	f.StringVar(&o.data, "data", folder, "folder that data.sh has filled")
	f.BoolVar(&o.retrain, "retrain", true, "train each winner again, alone, for its training time and its test accuracy")
	f.IntVar(&o.jobs, "jobs", 10, "tenancy: how many studies arrive")
	f.Float64Var(&o.interarrival, "interarrival", 9, "tenancy: mean seconds between two arrivals")
	f.Float64Var(&o.patience, "patience", 900, "seconds until a study is given up")
	f.IntVar(&o.epochs, "epochs", 4, "epochs, overhead: how many each process trains; the first is not timed")
	f.StringVar(&o.against, "against", "", "overhead: folder of another version of the source, whose worker takes turns too")
	f.Parse(args) //nolint:errcheck // it exits
	for _, path := range []*string{&o.scripts, &o.client, &o.data, &o.out} {
		*path, _ = filepath.Abs(*path) // fails without a working directory only
	}
	return o
}

func names[T any](all []T, name func(T) string) []string {
	var list []string
	for _, one := range all {
		list = append(list, name(one))
	}
	return list
}

func dispatch(ctx context.Context, o options) error {
	if o.passes == 0 && o.command != "tenancy" {
		o.passes = usualPasses
	}
	switch o.command {
	case "run":
		return compare(ctx, o)
	case "report":
		return report(o, os.Stdout)
	case "epochs":
		return timeEpochs(ctx, o)
	case "overhead":
		return timeOverhead(ctx, o)
	case "tenancy":
		return tenancy(ctx, o)
	default:
		return fmt.Errorf("say what to do: run, report, epochs, overhead or tenancy; -h behind it lists the flags")
	}
}
