package batching

import (
	"math"
	"slices"
)

// Estimate is a simulated value. HalfWidth is half of its 95% confidence
// interval, by the means (or quantiles) of 20 groups of consecutive requests
// that are long enough to be nearly independent; 0 when there are too few
// requests to tell.
type Estimate struct {
	Value     float64 `json:"value"`
	HalfWidth float64 `json:"half_width,omitempty"`
}

// Result is what a policy came to in a simulation. Response times, in seconds,
// are from a request's arrival to the end of its batch.
type Result struct {
	Policy Policy `json:"policy"`
	// Overloaded tells that requests come at least as fast as the policy
	// sustains: the queue grows as long as they do, and the response times say
	// how long the simulation was, nothing else.
	Overloaded bool `json:"overloaded,omitempty"`
	// SustainsPerSecond is the rate up to which the policy keeps up.
	SustainsPerSecond float64 `json:"sustains_per_second"`
	ArrivalsPerSecond float64 `json:"arrivals_per_second"`
	// Requests are all that came, and Counted those of them that the response
	// times are of.
	Requests int      `json:"requests"`
	Counted  int      `json:"counted"`
	Mean     Estimate `json:"mean_seconds"`
	P50      Estimate `json:"p50_seconds"`
	P90      Estimate `json:"p90_seconds"`
	P99      Estimate `json:"p99_seconds"`
	P999     Estimate `json:"p99_9_seconds"`
	// Throughput is requests by the seconds from the beginning until the last
	// one was answered, and Utilization the share of them that instances work.
	Throughput  float64 `json:"throughput_per_second"`
	Utilization float64 `json:"utilization"`
	MeanBatch   float64 `json:"mean_batch"`
	// JoulesPerSample is the energy of all batches, and of the idle instances
	// when the server has idle watts, by the requests; 0 if not known.
	JoulesPerSample float64 `json:"joules_per_sample,omitempty"`
	// Backlog is how many requests had no answer when the last one came.
	Backlog int `json:"backlog"`
}

// groups is the number of groups of requests behind an interval, and studentT
// the 97.5% quantile of Student's distribution with one degree of freedom less.
const (
	groups   = 20
	studentT = 2.093
)

func (p *play) result(policy Policy) Result {
	sum := p.dispatch(policy)
	rate := p.run.Arrivals.PerSecond()
	sustains := p.server.Sustains(policy)
	counted := p.responses[p.uncounted:]
	result := Result{
		Policy: policy, SustainsPerSecond: sustains, ArrivalsPerSecond: rate,
		Overloaded: rate >= sustains,
		Requests:   len(p.times), Counted: len(counted),
		Mean:       p.estimate(meanOf),
		Throughput: float64(len(p.times)) / sum.end,
		MeanBatch:  float64(len(p.times)) / float64(sum.batches),
	}
	for _, one := range []struct {
		into *Estimate
		rank float64
	}{{&result.P50, 0.5}, {&result.P90, 0.9}, {&result.P99, 0.99}, {&result.P999, 0.999}} {
		*one.into = p.estimate(quantileOf(one.rank))
	}
	result.Utilization = sum.busy / (sum.end * float64(p.server.instances()))
	result.JoulesPerSample = p.joules(sum)
	last := p.times[len(p.times)-1]
	for i, at := range p.times {
		if at+p.responses[i] > last {
			result.Backlog++
		}
	}
	return result
}

// joules are those of a sample, 0 if they are not known.
func (p *play) joules(sum tally) float64 {
	if !p.server.Curve.HasJoules() {
		return 0
	}
	idle := sum.end*float64(p.server.instances()) - sum.busy
	return (sum.joules + p.server.IdleWatts*idle) / float64(len(p.times))
}

// brief is what the policy comes to in the objective, and the 99th percentile.
func (p *play) brief(policy Policy, objective Objective) (value, tail float64) {
	sum := p.dispatch(policy)
	p.scratch = append(p.scratch[:0], p.responses[p.uncounted:]...)
	center := mean(p.scratch)
	tail = quantile(p.scratch, 0.99)
	return map[Objective]float64{MeanResponse: center, P99: tail, Joules: p.joules(sum)}[objective], tail
}

// statistic is a value of a group of response times, which it may reorder.
// tail is how many requests a group needs at least for it to mean something.
type statistic struct {
	of   func([]float64) float64
	tail int
}

var meanOf = statistic{mean, 20}

func mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / float64(len(values))
}

func quantileOf(rank float64) statistic {
	return statistic{func(values []float64) float64 { return quantile(values, rank) }, int(10 / (1 - rank))}
}

// quantile is the smallest value that at least the share of all are not above.
func quantile(values []float64, rank float64) float64 {
	at := int(math.Ceil(rank*float64(len(values))-1e-9)) - 1
	slices.Sort(values)
	return values[min(max(at, 0), len(values)-1)]
}

// estimate is the statistic of all counted requests and its interval.
func (p *play) estimate(what statistic) Estimate {
	p.scratch = append(p.scratch[:0], p.responses[p.uncounted:]...)
	estimate := Estimate{Value: what.of(p.scratch)}
	if len(p.scratch) >= groups*what.tail {
		estimate.HalfWidth = halfWidth(p.byGroup(what))
	}
	return estimate
}

// byGroup is the statistic of each group of requests.
func (p *play) byGroup(what statistic) []float64 {
	p.scratch = append(p.scratch[:0], p.responses[p.uncounted:]...)
	values := make([]float64, groups)
	for group := range values {
		values[group] = what.of(p.scratch[len(p.scratch)*group/groups : len(p.scratch)*(group+1)/groups])
	}
	return values
}

// halfWidth is that of the 95% confidence interval of the mean of the values.
func halfWidth(values []float64) float64 {
	center, sum := mean(values), 0.0
	for _, value := range values {
		sum += (value - center) * (value - center)
	}
	n := float64(len(values))
	return studentT * math.Sqrt(sum/(n-1)/n)
}
