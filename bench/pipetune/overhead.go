package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
)

// cycles is what one epoch takes, from its start to the start of the next, in a process
// of its own and under a worker, in the order in which the pairs ran.
type cycles struct {
	Workload string    `json:"workload"`
	Alone    []float64 `json:"alone_seconds"`
	// Saves is what that process takes to save its state besides, which is not in Alone.
	Saves  []float64 `json:"save_seconds"`
	Worker []float64 `json:"worker_seconds"`
	// Outside is the part of Worker in which the report is sent and answered, Keeping the
	// part in which the script saves its state and waits for the worker.
	Outside []float64 `json:"outside_seconds"`
	Keeping []float64 `json:"checkpoint_seconds"`
	Load    float64   `json:"load"`
}

// timeOverhead compares epochs in a process of its own with epochs under a worker, which
// reports, profiles and keeps a checkpoint of each: one trial at a time with one thread.
// They take turns, and which is first in a pair alternates.
func timeOverhead(ctx context.Context, o options) error {
	chosen, err := o.chosen()
	if err != nil {
		return err
	}
	if _, err := launch.Build(ctx, o.inFolder("bin")); err != nil {
		return err
	}
	if err := o.ready(ctx, chosen); err != nil {
		return err
	}
	workers := []options{o}
	if o.against != "" {
		other := o
		other.out, other.client = o.inFolder("against"), filepath.Join(o.against, "clients", "python")
		build := exec.CommandContext(ctx, "go", "build", "-C", o.against, "-o", other.binary(), "./cmd/tandem")
		if output, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", o.against, err, output)
		}
		workers = append(workers, other)
	}
	here := thisMachine(ctx, o)
	fmt.Printf("%d cores, %s; commit %s. Seconds of an epoch with one thread, medians of %d epochs; %d pairs.\n\n", here.Cores, here.Model, commit(ctx), o.epochs-1, o.repetitions)
	fmt.Printf("| workload | process of its own | saving its state besides | under a worker | of it, the report | of it, the checkpoint | worker / own (95%% interval) | worker / own that saves |\n|---|---|---|---|---|---|---|---|\n")
	for _, w := range chosen {
		measured, err := pairs(ctx, workers, w)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		for i, one := range measured {
			if err := add(workers[i].inFolder("overhead.jsonl"), one); err != nil {
				return err
			}
			name := w.name
			if i > 0 {
				name += ", " + o.against
			}
			fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", name, spread(one.Alone, 3), spread(one.Saves, 3), spread(one.Worker, 3), spread(one.Outside, 3), spread(one.Keeping, 3),
				one.ratio(0), one.ratio(1))
		}
		fmt.Printf("\nload %.1f\n\n", loadAverage())
	}
	return nil
}

// ratio of the worker's epochs to those of the process of its own, and so many times what
// that takes to save its state, with the 95% interval.
func (c cycles) ratio(saves float64) string {
	ratios := make([]float64, len(c.Worker))
	for i := range ratios {
		ratios[i] = c.Worker[i] / (c.Alone[i] + saves*c.Saves[i])
	}
	low, high := bootstrapped(ratios)
	return fmt.Sprintf("%.3f (%.3f to %.3f)", median(ratios), low, high)
}

// pairs are all those of a workload, of each worker, on a server of its own.
func pairs(ctx context.Context, workers []options, w workload) (measured []cycles, err error) {
	measured = make([]cycles, len(workers))
	var alone, saves []float64
	turns := []func(pair int) error{func(int) error {
		outcome, err := workers[0].train(ctx, w, w.usual, workers[0].epochs, 1)
		if err == nil {
			alone, saves = append(alone, median(outcome.Seconds[1:])), append(saves, median(outcome.Saves[1:]))
		}
		return err
	}}
	for i, o := range workers {
		measured[i] = cycles{Workload: w.name, Load: loadAverage()}
		turns = append(turns, func(pair int) (err error) {
			s, err := openSite(ctx, o, "1", nil)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.close()) }()
			return o.cycle(ctx, s, w, pair, &measured[i])
		})
	}
	for pair := range workers[0].repetitions {
		for turn := range turns {
			if err := turns[(turn+pair)%len(turns)](pair); err != nil {
				return nil, err
			}
		}
	}
	for i := range measured {
		measured[i].Alone, measured[i].Saves = alone, saves
	}
	return measured, nil
}

// cycle trains the usual configuration as the only trial of a study. Its cycles are the
// times between reports.
func (o options) cycle(ctx context.Context, s *site, w workload, pair int, into *cycles) error {
	space := map[string]any{}
	for name, value := range w.usual {
		space[name] = map[string]any{"type": "categorical", "values": []any{value}}
	}
	name := fmt.Sprintf("%s-overhead-%d", w.name, pair)
	file, err := json.Marshal(map[string]any{
		"name": name, "command": []string{o.python, "train.py", "--workload", w.name}, "space": space,
		"environment": map[string]string{"PIPETUNE_DATA": o.data, "PIPETUNE_SCALE": fmt.Sprint(o.scale), "PYTHONPATH": o.client, "PYTHONUNBUFFERED": "1"},
		"objective":   map[string]any{"metric": "accuracy", "direction": "maximize"},
		"budget":      map[string]any{"epochs": o.epochs}, "stop": map[string]any{"trials": 1}, "system": map[string]any{"cpu_threads": 1},
	})
	if err != nil {
		return err
	}
	if _, err := s.client.CreateStudy(ctx, file, "application/json"); err != nil {
		return err
	}
	if _, err := s.finished(ctx, name, time.Duration(o.patience*float64(time.Second))); err != nil {
		return err
	}
	detail, err := s.client.Trial(ctx, name, 0)
	if err != nil {
		return err
	}
	var between, outside, keeping []float64
	for i, report := range detail.Reports[1:] {
		took := report.At.Sub(detail.Reports[i].At).Seconds()
		between, outside = append(between, took), append(outside, took-float64(report.Seconds))
		keeping = append(keeping, float64(report.Metrics["checkpoint_seconds"]))
	}
	into.Worker, into.Outside = append(into.Worker, median(between)), append(into.Outside, median(outside))
	into.Keeping = append(into.Keeping, median(keeping))
	return nil
}

// bootstrapped is the 95% interval of the median, by resampling the pairs.
func bootstrapped(values []float64) (low, high float64) {
	random := rand.New(rand.NewPCG(1, 1))
	medians := make([]float64, 10_000)
	for i := range medians {
		drawn := make([]float64, len(values))
		for j := range drawn {
			drawn[j] = values[random.IntN(len(values))]
		}
		medians[i] = median(drawn)
	}
	slices.Sort(medians)
	return medians[249], medians[9749]
}
