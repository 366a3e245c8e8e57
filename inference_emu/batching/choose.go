package batching

import (
	"fmt"
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

// Objectives are all objectives.
func Objectives() []Objective { return []Objective{MeanResponse, P99, Joules} }

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
	Result Result `json:"result"`
	// MeetsBound tells that the 99th percentile is within the bound, in the
	// arrivals it was chosen by; without a bound it is true. If no policy meets
	// it, the choice is the one with the lowest 99th percentile.
	MeetsBound bool `json:"meets_bound"`
	// Tried is the number of policies compared.
	Tried int `json:"tried"`
	// Why says in a sentence what the choice rests on.
	Why string `json:"why"`
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
	if err := server.check(); err != nil {
		return Choice{}, err
	}
	if err := run.check(); err != nil {
		return Choice{}, err
	}
	if err := goal.check(server.Curve); err != nil {
		return Choice{}, err
	}
	run.Observe = nil
	rate, size := run.Arrivals.PerSecond(), server.Curve.Cheapest()
	choice := Choice{}
	best := Greedy(size)
	if rate >= server.Capacity() {
		choice.Tried, choice.Why = 1, fmt.Sprintf("no policy sustains %.6g samples/s: the most is %.6g, with batches of %d", rate, server.Capacity(), size)
	} else {
		best = choice.take(server, goal, run)
	}
	var err error
	choice.Result, err = Simulate(server, best, run.fresh())
	return choice, err
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
	c.MeetsBound, c.Tried = meets, len(policies)
	switch what := map[Objective]string{MeanResponse: "mean response time", P99: "99th percentile of response times", Joules: "energy a sample"}[goal.Objective]; {
	case !meets:
		c.Why = fmt.Sprintf("no policy tried keeps the 99th percentile within %.4g ms; this one comes closest", goal.LatencyBound*1000)
	case best.MaxBatch == 1:
		c.Why = "do not batch: at this rate no policy tried has a lower " + what + " than single samples"
	default:
		c.Why = "the lowest " + what + " of the policies tried, or within 1% of it and simpler"
	}
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
	var fields []problem.Field
	if !slices.Contains(Objectives(), g.Objective) {
		fields = append(fields, problem.Field{Path: "goal.objective", Message: fmt.Sprintf("must be one of %v", Objectives()), Value: string(g.Objective)})
	}
	if !(g.LatencyBound >= 0) {
		fields = append(fields, problem.Field{Path: "goal.latency_bound", Message: "must be a number of seconds, 0 for no bound", Value: g.LatencyBound})
	}
	if g.Objective == Joules && !curve.HasJoules() {
		fields = append(fields, problem.Field{Path: "goal.objective", Message: "the curve has no joules: add them to every point, or choose mean or p99", Value: string(g.Objective)})
	}
	if len(fields) > 0 {
		return problem.WithFields("there is no best policy for this goal", fields)
	}
	return nil
}

// fresh is the run with other random numbers.
func (r Run) fresh() Run {
	r.Seed = ^r.Seed
	return r
}

// Compare plays policies against the same arrivals, those that the result of
// [Choose] is of.
func Compare(server Server, policies []Policy, run Run) ([]Result, error) {
	var results []Result
	for _, policy := range policies {
		result, err := Simulate(server, policy, run.fresh())
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}
