// Command profiler measures what profiling costs a training.
//
//	go run ./bench/profiler                               # LeNet-5 in PyTorch, 20 pairs, about 5 minutes
//	go run ./bench/profiler -workload arithmetic,processes # other workloads
//	go run ./bench/profiler -samples 60                    # what keeping the samples costs, 20 pairs of a minute
//	go run ./bench/profiler -python .venv/bin/python       # another interpreter
//
// Each pair is the same training once plain and once profiled, with all events
// the machine counts; which comes first alternates. What counts is the median of
// the pairs' relative differences, with a bootstrap interval.
//
// The workload lenet runs examples/lenet-fashion-mnist under a server and a
// worker of their own, with as many threads as there are cores, so that the
// profiler has none to itself. Its time is from the server's receipt of the first
// epoch's report to that of the last: it has all that a script waits for at its
// reports. The other workloads run under the profiler alone.
//
// Markdown goes to standard output, a line of JSON for each pair to standard
// error.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/profiler"
)

// run is one run of a workload.
type run struct {
	// Seconds are of an epoch, on average, or of the whole command.
	Seconds float64 `json:"seconds"`
	// Watching is the CPU time that the profiler itself used, in seconds, where
	// it is known.
	Watching float64 `json:"watching_cpu_seconds,omitempty"`
	// Events is how many were counted, Level how much of the process.
	Events int    `json:"events,omitempty"`
	Level  string `json:"level,omitempty"`
}

// pair is one workload run both ways.
type pair struct {
	Workload string `json:"workload"`
	Plain    run    `json:"plain"`
	Profiled run    `json:"profiled"`
}

// workload is something to run with and without the profiler.
type workload struct {
	name, what string
	run        func(ctx context.Context, profiled bool) (run, error)
}

// errSkip says that this machine lacks what a workload needs.
var errSkip = errors.New("not measured")

func main() {
	pairs := flag.Int("pairs", 20, "runs with and runs without the profiler, at least 5")
	only := flag.String("workload", "lenet", "which to measure, separated by commas: lenet, arithmetic, processes, digits")
	python := flag.String("python", "/usr/bin/python3", "an interpreter with PyTorch for lenet, with scikit-learn for digits")
	images := flag.Int("images", 6000, "training images of lenet")
	epochs := flag.Int("epochs", 4, "epochs of lenet, of which the first is not timed")
	work := flag.Int("work", 0, "do the arithmetic of so many epochs; the benchmark starts itself with it")
	seconds := flag.Int("samples", 0, "measure instead what it costs to keep samples, in runs of so many seconds")
	flag.Parse()
	if *work > 0 {
		arithmetic(*work)
		return
	}
	if *seconds > 0 {
		if err := measureSamples(*seconds, *pairs); err != nil {
			fmt.Fprintln(os.Stderr, "bench/profiler:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	lenet := &training{python: *python, images: *images, epochs: *epochs}
	err := measure(ctx, append(direct(*python), lenet.workload()), strings.Split(*only, ","), *pairs)
	if err = errors.Join(err, lenet.close()); err != nil {
		fmt.Fprintln(os.Stderr, "bench/profiler:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, workloads []workload, names []string, pairs int) error {
	if pairs < 5 {
		return fmt.Errorf("%d pairs tell nothing: at least 5", pairs)
	}
	var chosen []workload
	for _, name := range names {
		at := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
		if at < 0 {
			return fmt.Errorf("no workload is called %q", name)
		}
		chosen = append(chosen, workloads[at])
	}
	fmt.Printf("%s\n\n%s", machine(), heading)
	for _, one := range chosen {
		list, err := one.pairs(ctx, pairs)
		switch {
		case errors.Is(err, errSkip):
			fmt.Fprintf(os.Stderr, "%s: %v\n", one.name, err)
		case err != nil:
			return fmt.Errorf("%s: %w", one.name, err)
		default:
			fmt.Println(row(one, list))
		}
	}
	return nil
}

// machine says where and beside what the numbers were taken.
func machine() string {
	m := profiler.ThisMachine()
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		load = []byte("not told")
	}
	return fmt.Sprintf("%s, %d cores; load before the first run: %s.", m.CPUModel, m.Cores, strings.Join(strings.Fields(string(load))[:2], " "))
}

// pairs runs the workload both ways; which comes first alternates.
func (w workload) pairs(ctx context.Context, pairs int) ([]pair, error) {
	var list []pair
	for at := range pairs {
		one := pair{Workload: w.name}
		for half := range 2 {
			profiled := (half == 1) == (at%2 == 0)
			got, err := w.run(ctx, profiled)
			if err != nil {
				return nil, err
			}
			if profiled {
				one.Profiled = got
			} else {
				one.Plain = got
			}
		}
		line, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, string(line))
		list = append(list, one)
	}
	return list, nil
}
