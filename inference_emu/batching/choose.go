package batching

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Objective is what a policy is chosen by.
type Objective string

// The objectives.
const (
	MeanResponse Objective = "mean"   // the mean response time
	P99          Objective = "p99"    // the 99th percentile of response times
	Joules       Objective = "joules" // the energy a sample
)

// Goal is the objective and the bound it is pursued under.
type Goal struct {
	Objective Objective
	// LatencyBound is the most seconds that the 99th percentile of response
	// times may be; 0 is no bound.
	LatencyBound float64
}

// Choice is the policy found for a load.
type Choice struct {
	// Result is what the policy comes to with other arrivals than those it was
	// chosen by, so that luck in the choice does not show in it.
	Result Result
	// MeetsBound tells that the 99th percentile is within the bound, in the
	// arrivals it was chosen by; without a bound it is true. If no policy meets
	// it, the choice is the one with the lowest 99th percentile.
	MeetsBound bool
}

// worse is by how much, in parts, a policy may be worse than another and still go
// before it, because it is simpler.
const worse = 0.01

// comparedBy bounds the requests that policies are compared by.
const comparedBy = 50_000

// Choose takes the best of a few policies for the arrivals of the run, by
// simulation. For response times these are two: single samples, and whatever waits,
// up to the batch that takes the least time a sample. To wait for others, or to take
// less than what waits, gains little under random arrivals, and costs much where
// requests come in bursts (docs/benchmarks/edgetune.md). Energy is saved by waiting
// for others: as long as the bound lets, or without one until batches are full.
func Choose(server Server, goal Goal, run Run) (Choice, error) {
	if err := goal.check(server.Curve); err != nil {
		return Choice{}, err
	}
	run.Observe = nil
	choice, best := Choice{}, Greedy(server.Curve.Cheapest())
	if run.Arrivals.PerSecond() < server.Capacity() {
		best = choice.take(server, goal, run)
	}
	choice.Result = Simulate(server, best, run.fresh())
	return choice, nil
}

// take compares the policies that sustain the arrivals, the simplest first.
func (c *Choice) take(server Server, goal Goal, run Run) Policy {
	policies := slices.DeleteFunc(candidates(server.Curve, goal), func(one Policy) bool { return run.Arrivals.PerSecond() >= server.Sustains(one) })
	run.Requests = min(run.requests(), comparedBy)
	stage := newPlay(server, run)
	var best Policy
	least, meets := math.Inf(1), false
	for i, one := range policies {
		if one.WaitSeconds > 0 && !meets {
			break // those that do not wait are too slow, and waiting takes longer
		}
		value, tail := stage.brief(one, goal.Objective)
		within := goal.LatencyBound == 0 || tail <= goal.LatencyBound
		if !within {
			value = tail
		}
		if i == 0 || within && !meets || within == meets && value < (1-worse)*least {
			best, least, meets = one, value, within
		}
	}
	c.MeetsBound = meets
	return best
}

// candidates are the policies to compare, the simplest first.
func candidates(curve Curve, goal Goal) []Policy {
	size := curve.Cheapest()
	list := []Policy{Single()}
	if size > 1 {
		list = append(list, Greedy(size))
	}
	if goal.Objective != Joules {
		return list
	}
	for batch := size; batch <= curve.Largest(); batch++ {
		if curve.At(batch).Joules/float64(batch) < curve.At(size).Joules/float64(size) {
			size = batch
		}
	}
	if goal.LatencyBound == 0 {
		return append(list, Fixed(size))
	}
	const parts = 20
	for part := 1.0; part < parts; part++ {
		list = append(list, Policy{MaxBatch: size, WaitSeconds: goal.LatencyBound * part / parts})
	}
	return list
}

func (g Goal) check(curve Curve) error {
	if g.Objective == Joules && !curve.HasJoules() {
		return problem.New(problem.Invalid, "the energy of a batch is not known: choose by the mean or the 99th percentile")
	}
	return nil
}

// fresh is the run with other random numbers.
func (r Run) fresh() Run {
	r.Seed = ^r.Seed
	return r
}
