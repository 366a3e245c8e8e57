package batching

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Objective is what a policy is chosen by.
type Objective string

// The objectives.
const (
	MeanResponse Objective = "mean"       // the mean response time
	P99          Objective = "p99"        // the 99th percentile of response times
	Joules       Objective = "joules"     // the energy a sample
	Throughput   Objective = "throughput" // the highest rate at which the bound holds
)

// Objectives are all objectives.
func Objectives() []Objective { return []Objective{MeanResponse, P99, Joules, Throughput} }

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
	// Tried is the number of policies compared, 1 if the answer needed no search.
	Tried int `json:"tried"`
	// Why says in a sentence what the choice rests on.
	Why string `json:"why"`
}

// Optimize finds the best policy for the arrivals of the run by simulation. All
// policies meet the same arrivals (common random numbers); many are compared
// on few requests and the best of them on ever more, up to those of the run.
// Among policies that cannot be told from the best, or are at most 0.2% worse,
// it takes the simplest: single samples before greedy batches before waiting.
//
// For [Throughput] the run's arrivals are the pattern that is sped up, by
// [HighestRate]; the result is then that at the highest rate.
func Optimize(server Server, goal Goal, run Run) (Choice, error) {
	if err := server.check(); err != nil {
		return Choice{}, err
	}
	if err := run.check(); err != nil {
		return Choice{}, err
	}
	if err := goal.check(server); err != nil {
		return Choice{}, err
	}
	run.Observe = nil
	if goal.Objective == Throughput {
		return fastest(server, goal, run)
	}
	rate := run.Arrivals.PerSecond()
	if rate >= server.Capacity() {
		return finish(server, Greedy(server.Curve.Cheapest()), run, Choice{Tried: 1,
			Why: fmt.Sprintf("no policy sustains %.6g samples/s: the most is %.6g, with batches of %d", rate, server.Capacity(), server.Curve.Cheapest())})
	}
	if goal.Objective != Joules && neverPays(server.Curve) {
		choice := Choice{Tried: 1, Why: "do not batch: no batch size takes less time a sample than single samples, so whatever is put together would be answered earlier one by one (exact)"}
		choice, err := finish(server, Single(), run, choice)
		choice.MeetsBound = goal.LatencyBound == 0 || choice.Result.P99.Value <= goal.LatencyBound
		return choice, err
	}
	list := candidates(server, rate)
	best, tried := search(server, goal, run, list)
	choice := Choice{Tried: tried, MeetsBound: best.meets, Why: reason(best, goal)}
	return finish(server, best.policy, run, choice)
}

func (g Goal) check(server Server) error {
	var fields []problem.Field
	if !slices.Contains(Objectives(), g.Objective) {
		fields = append(fields, problem.Field{Path: "goal.objective", Message: fmt.Sprintf("must be one of %v", Objectives()), Value: string(g.Objective)})
	}
	if !(g.LatencyBound >= 0) {
		fields = append(fields, problem.Field{Path: "goal.latency_bound", Message: "must be a number of seconds, 0 for no bound", Value: g.LatencyBound})
	}
	if g.Objective == Joules && !server.Curve.HasJoules() {
		fields = append(fields, problem.Field{Path: "goal.objective", Message: "the curve has no joules: add them to every point, or choose mean, p99 or throughput", Value: string(g.Objective)})
	}
	if len(fields) > 0 {
		return problem.WithFields("there is no best policy for this goal", fields)
	}
	return nil
}

// neverPays tells that inferring the samples of any batch one by one takes no
// longer, always: then every request is answered no later without batches.
func neverPays(curve Curve) bool {
	if curve.Varies() {
		return false
	}
	return curve.Cheapest() == 1
}

// finish measures the choice on fresh arrivals.
func finish(server Server, policy Policy, run Run, choice Choice) (Choice, error) {
	var err error
	choice.Result, err = Simulate(server, policy, run.fresh())
	return choice, err
}

// fresh is the run with other random numbers.
func (r Run) fresh() Run {
	r.Seed = ^r.Seed
	return r
}

// Compare plays policies against the same arrivals, those that the result of
// [Optimize] is of.
func Compare(server Server, policies []Policy, run Run) ([]Result, error) {
	if err := server.check(); err != nil {
		return nil, err
	}
	if err := run.check(); err != nil {
		return nil, err
	}
	run.Observe = nil
	stage := newPlay(server, run.fresh())
	var results []Result
	for _, policy := range policies {
		if err := policy.check(server.Curve); err != nil {
			return nil, err
		}
		results = append(results, stage.result(policy))
	}
	return results, nil
}

// verdict is what a policy came to in the search.
type verdict struct {
	policy  Policy
	value   float64   // of the objective, the smaller the better
	byGroup []float64 // the same for each group of requests
	p99     float64   // seconds, if there is a bound
	meets   bool
}

func (p *play) judge(policy Policy, goal Goal) verdict {
	sum := p.dispatch(policy)
	one := verdict{policy: policy, meets: true}
	switch goal.Objective {
	case P99:
		one.byGroup = p.byGroup(quantileOf(0.99))
		one.value = p.value(quantileOf(0.99))
	case Joules:
		one.byGroup = make([]float64, groups)
		for group := range one.byGroup {
			one.byGroup[group] = sum.groupJoules[group] / float64(max(sum.groupRequests[group], 1))
		}
		one.value = mean(one.byGroup) + p.server.IdleWatts*float64(p.server.instances())/p.run.Arrivals.PerSecond()
	default:
		one.byGroup = p.byGroup(meanOf)
		one.value = mean(one.byGroup)
	}
	if goal.LatencyBound > 0 {
		one.p99 = p.value(quantileOf(0.99))
		one.meets = one.p99 <= goal.LatencyBound
	}
	return one
}

// value is the statistic of all counted requests.
func (p *play) value(what statistic) float64 {
	p.scratch = append(p.scratch[:0], p.responses[p.uncounted:]...)
	return what.of(p.scratch)
}

// better orders policies that meet the bound by their value, before those that
// do not, by their 99th percentile.
func better(a, b verdict) int {
	switch {
	case a.meets != b.meets && a.meets:
		return -1
	case a.meets != b.meets:
		return 1
	case !a.meets:
		return cmp.Compare(a.p99, b.p99)
	default:
		return cmp.Compare(a.value, b.value)
	}
}
