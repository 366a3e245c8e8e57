package main

import (
	"context"
	"fmt"
	"slices"
)

// timing is what an epoch takes in one way to use the machine.
type timing struct {
	Workload string    `json:"workload"`
	Threads  int       `json:"threads"`
	Beside   int       `json:"beside"` // how many trainings run at once
	Seconds  []float64 `json:"epoch_seconds"`
	Load     float64   `json:"load"`
}

// timeEpochs times single epochs with one thread and with one for each core,
// alone and as many beside each other as there are cores: what there is to gain.
func timeEpochs(ctx context.Context, o options) error {
	if o.workloads == "" {
		o.set = "full"
	}
	chosen, err := o.chosen()
	if err != nil {
		return err
	}
	if err := o.ready(ctx, chosen); err != nil {
		return err
	}
	here := thisMachine(ctx, o)
	fmt.Printf("%d cores, %s; PyTorch takes %d threads by itself; commit %s; load %.2f. Seconds of an epoch, medians of %d and more.\n\n",
		here.Cores, here.Model, here.Threads, commit(ctx), loadAverage(), o.epochs-1)
	fmt.Printf("| workload | 1 thread | %[1]d threads | 1 thread, %[1]d at once | %[1]d threads, %[1]d at once | epochs a second, best to %[1]d threads alone |\n|---|---|---|---|---|---|\n", here.Cores)
	for _, w := range chosen {
		var medians []float64
		for _, way := range [][2]int{{1, 1}, {here.Cores, 1}, {1, here.Cores}, {here.Cores, here.Cores}} {
			measured, err := o.timeWay(ctx, w, way[0], way[1])
			if err != nil {
				return err
			}
			if err := add(o.inFolder("epochs.jsonl"), measured); err != nil {
				return err
			}
			medians = append(medians, median(measured.Seconds))
		}
		rates := []float64{1 / medians[0], 1 / medians[1], float64(here.Cores) / medians[2], float64(here.Cores) / medians[3]}
		fmt.Printf("| %s | %.3f | %.3f | %.3f | %.3f | %.2f |\n", w.name, medians[0], medians[1], medians[2], medians[3], slices.Max(rates)/rates[1])
	}
	return nil
}

// timeWay trains so many processes at once, and leaves out each one's first
// epoch, which warms up.
func (o options) timeWay(ctx context.Context, w workload, threads, beside int) (timing, error) {
	type answer struct {
		outcome training
		err     error
	}
	measured := timing{Workload: w.name, Threads: threads, Beside: beside, Load: loadAverage()}
	answers := make(chan answer, beside)
	for range beside {
		go func() {
			outcome, err := o.train(ctx, w, w.usual, o.epochs, threads)
			answers <- answer{outcome, err}
		}()
	}
	var failed error
	for range beside {
		one := <-answers
		if one.err != nil {
			failed = one.err
			continue
		}
		measured.Seconds = append(measured.Seconds, one.outcome.Seconds[1:]...)
	}
	return measured, failed
}
