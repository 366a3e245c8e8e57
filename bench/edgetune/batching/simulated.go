package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/tandem-tune/tandem/inference_emu/batching"
)

// example is a curve for the simulated tables.
type example struct {
	name   string
	points []batching.Point
}

func examples() []example {
	return []example{
		{"a small CNN, measured with ONNX Runtime on 1 thread (medians)", []batching.Point{{Batch: 1, Seconds: 0.00024}, {Batch: 8, Seconds: 0.00184}, {Batch: 64, Seconds: 0.0146}}},
		{"made up: 5.2 ms for each inference and 0.75 ms for each sample", []batching.Point{{Batch: 1, Seconds: 0.00595}, {Batch: 32, Seconds: 0.0292}}},
	}
}

// simulated prints the mean response times by rate, in simulation of so many
// requests.
func simulated(out io.Writer, requests int, seed uint64) error {
	for _, one := range examples() {
		curve, err := batching.NewCurve(one.points)
		if err != nil {
			return err
		}
		server := batching.Server{Curve: curve}
		fmt.Fprintf(out, "\nThe curve is %s; capacity %.0f samples/s; single samples sustain %.0f/s\n", one.name, server.Capacity(), server.Sustains(batching.Single()))
		w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "RATE\tCHOSEN\tMEAN\tP99\tSINGLE\tGREEDY\tBEST FIXED OF ALL SIZES")
		for _, share := range []float64{0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95} {
			if err := simulatedAt(w, server, batching.Run{Arrivals: batching.Poisson{Rate: share * server.Capacity()}, Requests: requests, Seed: seed}); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func simulatedAt(w io.Writer, server batching.Server, run batching.Run) error {
	choice, err := batching.Optimize(server, batching.Goal{Objective: batching.MeanResponse}, run)
	if err != nil {
		return err
	}
	policies := []batching.Policy{batching.Single(), batching.Greedy(server.Curve.Largest())}
	for size := 2; size <= server.Curve.Largest(); size++ {
		policies = append(policies, batching.Fixed(size))
	}
	results, err := batching.Compare(server, policies, run)
	if err != nil {
		return err
	}
	shown := func(result batching.Result) string {
		if result.Overloaded {
			return "overloaded"
		}
		return fmt.Sprintf("%.3f ms", result.Mean.Value*1000)
	}
	var best batching.Result
	for _, result := range results[2:] {
		if !result.Overloaded && (best.Policy.MaxBatch == 0 || result.Mean.Value < best.Mean.Value) {
			best = result
		}
	}
	_, err = fmt.Fprintf(w, "%.0f/s\t%s\t%s ± %.3f\t%.3f ms\t%s\t%s\t%s (%d)\n", run.Arrivals.PerSecond(), choice.Result.Policy, shown(choice.Result), choice.Result.Mean.HalfWidth*1000,
		choice.Result.P99.Value*1000, shown(results[0]), shown(results[1]), shown(best), best.Policy.MaxBatch)
	return err
}
