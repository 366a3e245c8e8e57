package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/bench/wholemachine"
	"github.com/tandem-tune/tandem/e2e/launch"
)

// cores is how many the machine has for this process.
func cores() int { return runtime.NumCPU() }

// inFolder is a path below the results' folder.
func (o options) inFolder(parts ...string) string {
	return filepath.Join(append([]string{o.out}, parts...)...)
}

// binary is where the tandem of this source is built.
func (o options) binary() string { return o.inFolder("bin", "tandem") }

// compare runs every arm on every workload, as often as wanted. What was run
// before is not run again.
func compare(ctx context.Context, o options) error {
	chosen, err := o.chosen()
	if err != nil {
		return err
	}
	fielded, err := o.fielded()
	if err != nil {
		return err
	}
	if _, err := launch.Build(ctx, o.inFolder("bin")); err != nil {
		return err
	}
	if err := o.ready(ctx, chosen); err != nil {
		return err
	}
	if err := o.prepare(ctx, chosen, fielded); err != nil {
		return err
	}
	here, version := thisMachine(ctx, o), commit(ctx)
	fmt.Printf("%d cores, %s; PyTorch takes %d threads by itself; commit %s; load %.2f\n", here.Cores, here.Model, here.Threads, version, loadAverage())
	for repetition := o.first; repetition < o.first+o.repetitions; repetition++ {
		for _, w := range chosen {
			order := slices.Clone(fielded)
			shuffle := rand.New(rand.NewPCG(uint64(repetition), 0))
			shuffle.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			for _, a := range order {
				mark := run{Workload: w.name, Arm: a.name, Repetition: repetition, Passes: o.passes, Scale: o.scale, Commit: version, Machine: here}
				if err := o.once(ctx, w, a, mark); err != nil {
					return err
				}
			}
		}
	}
	return report(o, os.Stdout)
}

// ready tells what is missing before an hour is spent.
func (o options) ready(ctx context.Context, chosen []workload) error {
	if _, err := os.Stat(filepath.Join(o.data, "graph-neighbours.npy")); err != nil {
		return fmt.Errorf("%w: fetch the data with bench/pipetune/data.sh %s", err, o.data)
	}
	probe := "import torch; print(torch.cuda.is_available())"
	output, err := exec.CommandContext(ctx, o.python, "-c", probe).Output()
	if err != nil {
		return fmt.Errorf("%s cannot import torch (Debian's package is python3-torch; -python names another interpreter): %w", o.python, err)
	}
	for _, w := range chosen {
		if w.kind == "GPU" && strings.TrimSpace(string(output)) != "True" {
			return fmt.Errorf("%s needs a GPU, and the PyTorch of %s sees none (torch.cuda.is_available() is False): leave it out of -workloads", w.name, o.python)
		}
	}
	return nil
}

// once measures one run, if it was not measured before, and keeps it. A run
// that fails is kept with its error, and is tried again by the next command.
func (o options) once(ctx context.Context, w workload, a arm, mark run) error {
	before, err := load[run](o.resultsFile())
	if err != nil {
		return err
	}
	if slices.ContainsFunc(before, func(r run) bool {
		return r.Error == "" && r.Workload == mark.Workload && r.Arm == mark.Arm && r.Repetition == mark.Repetition && r.Passes == mark.Passes && r.Scale == mark.Scale
	}) {
		return nil
	}
	mark.Started, mark.Load = time.Now().UTC().Format(time.RFC3339), loadAverage()
	search := o.peer
	if a.tool == byTandem {
		search = o.tune
	}
	measured, err := search(ctx, w, a, mark.Repetition)
	if err == nil && o.retrain {
		err = o.again(ctx, w, &measured.Winner, mark.Repetition)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		measured = run{Error: err.Error()}
		fmt.Fprintf(os.Stderr, "%s, %s, repetition %d: %v\n", w.name, a.name, mark.Repetition, err)
	}
	measured.Workload, measured.Arm, measured.Repetition, measured.Passes, measured.Scale = mark.Workload, mark.Arm, mark.Repetition, mark.Passes, mark.Scale
	measured.Started, measured.Load, measured.Commit, measured.Machine = mark.Started, mark.Load, mark.Commit, mark.Machine
	fmt.Printf("%-13s %-17s %2d: %6.1f s, %2d trials, %3d epochs, accuracy %.4f (test %.4f), winner trains %.1f s with %d threads, %.0f J, load before %.2f\n",
		w.name, a.name, mark.Repetition, measured.Seconds, measured.Trials, measured.Epochs, measured.Winner.Accuracy,
		measured.Winner.TestAccuracy, measured.Winner.Seconds, measured.Winner.Threads, measured.Joules, measured.Load)
	return add(o.resultsFile(), measured)
}

// training is what scripts/epochs.py prints.
type training struct {
	Threads int       `json:"threads"`
	Seconds []float64 `json:"epoch_seconds"`
	Saves   []float64 `json:"save_seconds"`
	Values  []float64 `json:"accuracies"`
	Test    float64   `json:"test_accuracy"`
}

// train trains a configuration outside of any study. No threads are the
// process's own choice.
func (o options) train(ctx context.Context, w workload, params map[string]any, epochs, threads int) (training, error) {
	var outcome training
	text, err := json.Marshal(params)
	if err != nil {
		return outcome, err
	}
	variable := ""
	if threads > 0 {
		variable = strconv.Itoa(threads)
	}
	command := exec.CommandContext(ctx, o.python, filepath.Join(o.scripts, "epochs.py"), "--workload", w.name,
		"--params", string(text), "--epochs", strconv.Itoa(epochs), "--threads", strconv.Itoa(threads))
	if o.command == "overhead" {
		command.Args = append(command.Args, "--save")
	}
	command.Env = o.environment(variable)
	output, err := command.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return outcome, fmt.Errorf("train %s: %w", w.name, err)
	}
	return outcome, json.Unmarshal(output, &outcome)
}

// again trains the winner alone for the full budget.
func (o options) again(ctx context.Context, w workload, best *winner, seed int) error {
	meter := wholemachine.Start()
	outcome, err := o.train(ctx, w, best.Params, maxEpochs, best.Threads)
	if err != nil {
		return err
	}
	_, energy, _ := meter.Stop()
	best.Retrained, best.Seconds, best.TestAccuracy, best.Joules = true, sum(outcome.Seconds), outcome.Test, energy.Joules
	return nil
}

func sum(values []float64) float64 {
	total := 0.0
	for _, value := range values {
		total += value
	}
	return total
}

// copyTo writes a stream to a file, whose folder it makes.
func copyTo(from io.Reader, path string, mode int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|mode, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
