package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
)

// cycles is what one epoch takes, from its start to the start of the next, in a process
// of its own and under a worker, in the order in which the pairs ran.
type cycles struct {
	Workload string    `json:"workload"`
	Alone    []float64 `json:"alone_seconds"`
	Worker   []float64 `json:"worker_seconds"`
	// Outside is the part of Worker in which the report is sent and answered.
	Outside []float64 `json:"outside_seconds"`
	Load    float64   `json:"load"`
}

// timeOverhead compares epochs in a process of its own with epochs under a worker, which
// reports, profiles and keeps a checkpoint of each: one trial at a time with one thread.
// The two take turns, and which is first in a pair alternates.
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
	here := thisMachine(ctx, o)
	fmt.Printf("%d cores, %s; commit %s. Seconds of an epoch with one thread, medians of %d epochs; %d pairs.\n\n", here.Cores, here.Model, commit(ctx), o.epochs-1, o.repetitions)
	fmt.Printf("| workload | process of its own | under a worker | of it, the report | worker / own (95%% interval) |\n|---|---|---|---|---|\n")
	for _, w := range chosen {
		measured, err := o.pairs(ctx, w)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if err := add(o.inFolder("overhead.jsonl"), measured); err != nil {
			return err
		}
		ratios := make([]float64, len(measured.Alone))
		for i := range ratios {
			ratios[i] = measured.Worker[i] / measured.Alone[i]
		}
		low, high := bootstrapped(ratios)
		fmt.Printf("| %s | %s | %s | %s | %.3f (%.3f to %.3f) |\n", w.name, spread(measured.Alone, 3), spread(measured.Worker, 3), spread(measured.Outside, 3), median(ratios), low, high)
	}
	return nil
}

// pairs are all those of a workload, on one server.
func (o options) pairs(ctx context.Context, w workload) (measured cycles, err error) {
	measured = cycles{Workload: w.name, Load: loadAverage()}
	s, err := openSite(ctx, o, "1", nil)
	if err != nil {
		return measured, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	alone := func(int) error {
		outcome, err := o.train(ctx, w, w.usual, o.epochs, 1)
		if err == nil {
			measured.Alone = append(measured.Alone, median(outcome.Seconds[1:]))
		}
		return err
	}
	under := func(pair int) error {
		cycle, outside, err := o.cycle(ctx, s, w, pair)
		measured.Worker, measured.Outside = append(measured.Worker, cycle), append(measured.Outside, outside)
		return err
	}
	for pair := range o.repetitions {
		order := []func(int) error{alone, under}
		if pair%2 == 1 {
			slices.Reverse(order)
		}
		for _, one := range order {
			if err := one(pair); err != nil {
				return measured, err
			}
		}
	}
	return measured, nil
}

// cycle trains the usual configuration as the only trial of a study. Its cycles are the
// times between reports.
func (o options) cycle(ctx context.Context, s *site, w workload, pair int) (cycle, outside float64, err error) {
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
		return 0, 0, err
	}
	if _, err := s.client.CreateStudy(ctx, file, "application/json"); err != nil {
		return 0, 0, err
	}
	if _, err := s.finished(ctx, name, time.Duration(o.patience*float64(time.Second))); err != nil {
		return 0, 0, err
	}
	detail, err := s.client.Trial(ctx, name, 0)
	if err != nil {
		return 0, 0, err
	}
	var cycles, rest []float64
	for i, report := range detail.Reports[1:] {
		between := report.At.Sub(detail.Reports[i].At).Seconds()
		cycles, rest = append(cycles, between), append(rest, between-float64(report.Seconds))
	}
	return median(cycles), median(rest), nil
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
