package main

import (
	"context"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/bench/edgetune/gather"
	"github.com/tandem-tune/tandem/inference_emu/batching"
)

// gathered hands batches to the runner.
type gathered struct{ with runner }

func (g gathered) Run(batch []int) error { return g.with.infer(len(batch)) }

// trial lets requests come at the times, in seconds from its start, and returns
// the mean of their response times.
func trial(with runner, policy batching.Policy, times []float64) (float64, error) {
	g, err := gather.New(gather.Settings{Policy: policy, MostWaiting: len(times) + policy.MaxBatch}, gathered{with})
	if err != nil {
		return 0, err
	}
	var group sync.WaitGroup
	responses, faults := make([]float64, len(times)), make([]error, len(times))
	begin := time.Now().Add(10 * time.Millisecond)
	for i, at := range times {
		due := begin.Add(time.Duration(at * float64(time.Second)))
		time.Sleep(time.Until(due))
		group.Go(func() {
			faults[i] = g.Do(context.Background(), i)
			responses[i] = time.Since(due).Seconds()
		})
	}
	if policy.UntilFull && len(times)%policy.MaxBatch > 0 {
		// The requests that came last would wait for ever; Close lets them go
		// when they have all begun to wait.
		time.Sleep(20 * time.Millisecond)
		g.Close()
	}
	group.Wait()
	g.Close()
	sum := 0.0
	for i, seconds := range responses {
		if faults[i] != nil {
			return 0, faults[i]
		}
		sum += seconds
	}
	return sum / float64(len(times)), nil
}
