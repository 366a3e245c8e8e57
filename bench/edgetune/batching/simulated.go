package main

import (
	"fmt"
	"io"
	"math/rand/v2"
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
		for _, load := range []struct {
			name     string
			shares   []float64
			arrivals func(rate float64) batching.Arrivals
		}{
			{"requests that come independently", []float64{0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95}, func(rate float64) batching.Arrivals { return batching.Poisson{Rate: rate} }},
			{"bursts: four times the rate for half a second after 4.5 s, on average", []float64{0.2, 0.5, 0.7}, func(rate float64) batching.Arrivals { return bursts(rate, requests, seed) }},
		} {
			fmt.Fprintf(out, "%s\n", load.name)
			w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
			fmt.Fprintln(w, "RATE\tCHOSEN\tMEAN\tP99\tSINGLE\tGREEDY\tBEST FIXED OF ALL SIZES\tBEST OF ALL")
			for _, share := range load.shares {
				if err := simulatedAt(w, server, batching.Run{Arrivals: load.arrivals(share * server.Capacity()), Requests: requests, Seed: seed}); err != nil {
					return err
				}
			}
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// bursts are arrivals of which four times as many come in bursts as between them.
func bursts(rate float64, requests int, seed uint64) recorded {
	const calmSeconds, burstSeconds, factor = 4.5, 0.5, 4
	random := rand.New(rand.NewPCG(seed, 5))
	calm := rate * (calmSeconds + burstSeconds) / (calmSeconds + factor*burstSeconds)
	var times []float64
	for clock, burst := 0.0, false; len(times) < requests; burst = !burst {
		speed, end := calm, clock+random.ExpFloat64()*calmSeconds
		if burst {
			speed, end = calm*factor, clock+random.ExpFloat64()*burstSeconds
		}
		for at := clock + random.ExpFloat64()/speed; at < end && len(times) < requests; at += random.ExpFloat64() / speed {
			times = append(times, at)
		}
		clock = end
	}
	return times
}

// recorded is requests that came once, at these seconds.
type recorded []float64

// PerSecond is the gaps between the requests by the time from first to last.
func (r recorded) PerSecond() float64 { return float64(len(r)-1) / (r[len(r)-1] - r[0]) }

// Times are the recorded ones, at most so many, whatever the seed.
func (r recorded) Times(requests int, _ uint64) []float64 { return r[:min(requests, len(r))] }

// against are policies against the arrivals that the result of a choice is of.
func against(server batching.Server, policies []batching.Policy, run batching.Run) (results []batching.Result) {
	run.Seed = ^run.Seed
	for _, policy := range policies {
		results = append(results, batching.Simulate(server, policy, run))
	}
	return results
}

// named is the policy in words.
func named(p batching.Policy) string {
	switch {
	case p.MaxBatch == 1:
		return "single"
	case p.UntilFull:
		return fmt.Sprintf("fixed batches of %d", p.MaxBatch)
	case p.WaitSeconds == 0:
		return fmt.Sprintf("greedy, at most %d", p.MaxBatch)
	default:
		return fmt.Sprintf("at most %d, wait %.3g ms", p.MaxBatch, p.WaitSeconds*1000)
	}
}

// all are policies of many sizes, with and without waiting.
func all(curve batching.Curve) []batching.Policy {
	policies := []batching.Policy{batching.Single()}
	for size := 2; size <= curve.Largest(); size = max(size+1, size*4/3) {
		policies = append(policies, batching.Fixed(size))
		for _, wait := range []float64{0, 0.25 * curve.At(1).Seconds, curve.At(1).Seconds, 0.25 * curve.At(size).Seconds, 0.5 * curve.At(size).Seconds} {
			policies = append(policies, batching.Policy{MaxBatch: size, WaitSeconds: wait})
		}
	}
	return policies
}

func simulatedAt(w io.Writer, server batching.Server, run batching.Run) error {
	choice, err := batching.Choose(server, batching.Goal{Objective: batching.MeanResponse}, run)
	if err != nil {
		return err
	}
	policies := []batching.Policy{batching.Single(), batching.Greedy(server.Curve.Largest())}
	for size := 2; size <= server.Curve.Largest(); size++ {
		policies = append(policies, batching.Fixed(size))
	}
	results := against(server, policies, run)
	shown := func(result batching.Result) string {
		if result.Overloaded {
			return "overloaded"
		}
		return fmt.Sprintf("%.3f ms", result.Mean*1000)
	}
	best := least(results[2:])
	any := least(against(server, append(all(server.Curve), choice.Result.Policy), run))
	_, err = fmt.Fprintf(w, "%.0f/s\t%s\t%s ± %.3f\t%.3f ms\t%s\t%s\t%s (%d)\t%s, %s\n", run.Arrivals.PerSecond(), named(choice.Result.Policy), shown(choice.Result), choice.Result.HalfWidth*1000,
		choice.Result.P99*1000, shown(results[0]), shown(results[1]), shown(best), best.Policy.MaxBatch, shown(any), named(any.Policy))
	return err
}

// least is the result with the least mean of those that keep up.
func least(results []batching.Result) batching.Result {
	var best batching.Result
	for _, result := range results {
		if !result.Overloaded && (best.Policy.MaxBatch == 0 || result.Mean < best.Mean) {
			best = result
		}
	}
	return best
}
