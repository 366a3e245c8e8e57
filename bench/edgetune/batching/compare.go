package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"text/tabwriter"

	"github.com/tandem-tune/tandem/inference_emu/batching"
)

// compare measures the curve, and then the policies at each rate.
func compare(out io.Writer, with runner, p plan) error {
	curve, err := measured(out, with, p.sizes)
	if err != nil {
		return err
	}
	server := batching.Server{Curve: curve}
	fmt.Fprintf(out, "Capacity: %.1f samples/s; single samples sustain %.1f/s\n", server.Capacity(), server.Sustains(batching.Single()))
	for i, share := range p.shares {
		rate := share * server.Capacity()
		run := batching.Run{Arrivals: batching.Poisson{Rate: rate}, Requests: 50_000, Seed: p.seed + uint64(i)}
		choice, err := batching.Choose(server, batching.Goal{Objective: batching.MeanResponse}, run)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%.1f requests/s, %.0f%% of the capacity. Chosen: %s\n", rate, share*100, named(choice.Result.Policy))
		policies := contestants(server, choice.Result.Policy, p.sizes)
		if err := p.compareAt(out, contest{with: with, server: server, rate: rate, seed: p.seed + uint64(i)<<32}, policies); err != nil {
			return err
		}
	}
	return nil
}

// contestants are the choice, first, and what it is compared with.
func contestants(server batching.Server, chosen batching.Policy, sizes []int) []batching.Policy {
	policies := []batching.Policy{chosen}
	add := func(policy batching.Policy) {
		if policy != chosen {
			policies = append(policies, policy)
		}
	}
	add(batching.Single())
	add(batching.Greedy(server.Curve.Largest()))
	for _, size := range sizes {
		if size > 1 {
			add(batching.Fixed(size))
		}
	}
	return policies
}

// contest is one rate.
type contest struct {
	with   runner
	server batching.Server
	rate   float64
	seed   uint64
}

// compareAt plays the policies at one rate: in each repetition all of them meet
// the same arrivals, in random order.
func (p plan) compareAt(out io.Writer, c contest, policies []batching.Policy) error {
	means := make([][]float64, len(policies))
	predicted := make([]float64, len(policies))
	random := rand.New(rand.NewPCG(c.seed, 7))
	for repetition := range p.repetitions {
		// Full batches to the end, for sizes that divide the largest.
		largest := c.server.Curve.Largest()
		requests := (int(c.rate*p.length.Seconds())/largest + 1) * largest
		times := batching.Poisson{Rate: c.rate}.Times(requests, c.seed+uint64(repetition))
		for _, i := range random.Perm(len(policies)) {
			if c.rate >= c.server.Sustains(policies[i]) {
				continue
			}
			mean, err := trial(c.with, policies[i], times)
			if err != nil {
				return err
			}
			means[i] = append(means[i], mean)
			result := batching.Simulate(c.server, policies[i], batching.Run{Arrivals: recorded(times), Seed: p.seed})
			predicted[i] += result.Mean / float64(p.repetitions)
		}
	}
	return printContest(out, policies, means, predicted)
}

func printContest(out io.Writer, policies []batching.Policy, means [][]float64, predicted []float64) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "POLICY\tMEAN RESPONSE\tSIMULATED\tAGAINST THE CHOICE (95%)")
	for i, policy := range policies {
		if len(means[i]) == 0 {
			fmt.Fprintf(w, "%s\toverloaded, not run\t-\t-\n", named(policy))
			continue
		}
		mean, _ := meanAndDeviation(means[i])
		against := "the choice"
		if i > 0 && len(means[0]) > 0 {
			center, half := relative(means[i], means[0])
			against = fmt.Sprintf("%+.1f%% (%+.1f to %+.1f)", center*100, (center-half)*100, (center+half)*100)
		}
		fmt.Fprintf(w, "%s\t%.3f ms\t%.3f ms\t%s\n", named(policy), mean*1000, predicted[i]*1000, against)
	}
	return w.Flush()
}

// relative is the mean of the pairs' relative differences, and half of its 95%
// interval by Student's distribution.
func relative(values, base []float64) (center, half float64) {
	differences := make([]float64, len(values))
	for i := range values {
		differences[i] = values[i]/base[i] - 1
	}
	center, deviation := meanAndDeviation(differences)
	return center, studentT(len(values)-1) * deviation / math.Sqrt(float64(len(values)))
}

// studentT is the 97.5% quantile of Student's distribution: exact for few
// degrees of freedom, else by the first terms of its expansion around the
// normal one.
func studentT(freedom int) float64 {
	few := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}
	if freedom <= len(few) {
		return few[freedom-1]
	}
	const z = 1.959964
	n := float64(freedom)
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n)
}
