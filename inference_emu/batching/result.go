package batching

import (
	"math"
	"slices"
)

// Result is what a policy came to in a simulation. Response times, in seconds,
// are from a request's arrival to the end of its batch.
type Result struct {
	Policy Policy
	// Overloaded tells that requests come at least as fast as the policy
	// sustains: the queue grows as long as they do, and the response times say
	// how long the simulation was, nothing else.
	Overloaded bool
	// SustainsPerSecond is the rate up to which the policy keeps up.
	SustainsPerSecond float64
	// Mean and P99 are of response times. HalfWidth is half of the mean's 95%
	// confidence interval, by 20 groups of consecutive requests that are long enough
	// to be nearly independent; 0 when there are too few requests to tell.
	Mean, HalfWidth, P99 float64
	// Utilization is the share of the time until the last answer in which the server
	// works.
	Utilization, MeanBatch float64
	// JoulesPerSample is the energy of all batches, and of the server at rest where
	// its idle watts are known, by the requests; 0 if not known.
	JoulesPerSample float64
}

// groups is the number of groups of requests behind an interval, studentT the 97.5%
// quantile of Student's distribution with one degree of freedom less, and leastGroup
// how many requests a group needs.
const (
	groups     = 20
	studentT   = 2.093
	leastGroup = 20
)

func (p *play) result(policy Policy) Result {
	sum := p.dispatch(policy)
	counted := p.responses[p.uncounted:]
	result := Result{
		Policy: policy, SustainsPerSecond: p.server.Sustains(policy), Mean: mean(counted), HalfWidth: halfWidth(counted),
		Utilization: sum.busy / sum.end, MeanBatch: float64(len(p.times)) / float64(sum.batches), JoulesPerSample: p.joules(sum),
	}
	result.Overloaded = p.run.Arrivals.PerSecond() >= result.SustainsPerSecond
	result.P99 = quantile(counted, 0.99)
	return result
}

// joules are those of a sample, 0 if they are not known.
func (p *play) joules(sum tally) float64 {
	if !p.server.Curve.HasJoules() {
		return 0
	}
	return (sum.joules + p.server.IdleWatts*(sum.end-sum.busy)) / float64(len(p.times))
}

// brief is what the policy comes to in the objective, and the 99th percentile.
func (p *play) brief(policy Policy, objective Objective) (value, tail float64) {
	sum := p.dispatch(policy)
	counted := p.responses[p.uncounted:]
	center := mean(counted)
	tail = quantile(counted, 0.99)
	return map[Objective]float64{MeanResponse: center, P99: tail, Joules: p.joules(sum)}[objective], tail
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / float64(len(values))
}

// quantile is the smallest value that at least the share of all are not above. It sorts them.
func quantile(values []float64, rank float64) float64 {
	at := int(math.Ceil(rank*float64(len(values))-1e-9)) - 1
	slices.Sort(values)
	return values[min(max(at, 0), len(values)-1)]
}

// halfWidth is that of the 95% confidence interval of the mean of response times, in the
// order of the requests.
func halfWidth(responses []float64) float64 {
	if len(responses) < groups*leastGroup {
		return 0
	}
	means := make([]float64, groups)
	for group := range means {
		means[group] = mean(responses[len(responses)*group/groups : len(responses)*(group+1)/groups])
	}
	center, sum := mean(means), 0.0
	for _, value := range means {
		sum += (value - center) * (value - center)
	}
	return studentT * math.Sqrt(sum/(groups-1)/groups)
}
