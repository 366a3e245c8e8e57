package batching

import (
	"math"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Expectation is what queueing theory says of a policy in the long run.
type Expectation struct {
	MeanResponse float64 `json:"mean_seconds"` // by Little's law from MeanInSystem
	MeanInSystem float64 `json:"mean_in_system"`
	MeanBatch    float64 `json:"mean_batch"`
	Utilization  float64 `json:"utilization"`
}

const (
	mostStates = 2000
	// mostExact is the largest batch whose chain is small enough.
	mostExact = mostStates / 4
	// tailMass is the probability that may be missing behind the last state.
	tailMass = 1e-10
)

// Expect returns the exact means, but for rounding, of one instance under
// Poisson arrivals, for policies that are greedy or wait until they are full
// (bulk service queues M/G^[1,B]/1 and M/G^[B,B]/1; Bailey 1954, Neuts 1967).
//
// The queue that a finished batch leaves behind is a Markov chain: its next
// value is what the next batch left waiting and what arrived while it was
// served, a Poisson number mixed over the service time. From its stationary
// distribution follow the mean time and the mean integral of the number of
// requests present between two batches, and from these the rest.
//
// It is an error to ask for other policies or servers, for a rate that the
// policy does not sustain, for batches above 500, or for a rate so close to what
// is sustained that the chain has more than 2,000 states that matter.
func Expect(server Server, policy Policy, rate float64) (Expectation, error) {
	if !policy.UntilFull && policy.WaitSeconds > 0 {
		return Expectation{}, problem.New(problem.Invalid, "there is an exact answer only for policies that are greedy or wait until full, not for %s; simulate it", policy)
	}
	if sustains := server.Sustains(policy); rate >= sustains {
		return Expectation{}, problem.New(problem.Invalid, "the queue grows for ever at %g requests/s: %s sustains less than %g", rate, policy, sustains)
	}
	if policy.MaxBatch > mostExact {
		return Expectation{}, problem.New(problem.Exhausted, "the queue of batches of up to %d has too many states, the most is %d; simulate it", policy.MaxBatch, mostExact)
	}
	chain := bulkQueue{curve: server.Curve, policy: policy, rate: rate}
	for states := min(4*policy.MaxBatch+64, mostStates); ; states = min(2*states, mostStates) {
		left := chain.stationary(states)
		tail := 0.0
		for _, share := range left[states*9/10:] {
			tail += share
		}
		if tail < tailMass {
			return chain.means(left), nil
		}
		if states >= mostStates {
			return Expectation{}, problem.New(problem.Exhausted, "%g requests/s is so close to what %s sustains that the queue has too many states; simulate it", rate, policy)
		}
	}
}

// bulkQueue is the chain of the requests that finished batches leave behind.
type bulkQueue struct {
	curve  Curve
	policy Policy
	rate   float64
}

// batch is the size of the batch that follows when so many were left, and how
// many are present when it starts.
func (q bulkQueue) batch(left int) (size, present int) {
	present = max(left, 1)
	if q.policy.UntilFull {
		present = max(left, q.policy.MaxBatch)
	}
	return min(present, q.policy.MaxBatch), present
}

// stationary is the distribution of the chain cut at so many states; what lies
// beyond is counted to the last. The elimination subtracts nothing (Grassmann,
// Taksar and Heyman 1985), so that small probabilities are as accurate as large
// ones.
func (q bulkQueue) stationary(states int) []float64 {
	rows := make([][]float64, states)
	arrived := map[int][]float64{}
	for left := range rows {
		size, present := q.batch(left)
		if arrived[size] == nil {
			arrived[size] = arrivalsDuring(q.curve.At(size), q.rate, states)
		}
		row := make([]float64, states)
		beyond := 1.0
		for to := present - size; to < states-1; to++ {
			row[to] = arrived[size][to-(present-size)]
			beyond -= row[to]
		}
		row[states-1] = max(beyond, 0)
		rows[left] = row
	}
	out := make([]float64, states)
	for n := states - 1; n > 0; n-- {
		// A batch takes no more than MaxBatch away, so no row reaches further
		// down than that.
		bottom := max(0, n-q.policy.MaxBatch)
		for _, share := range rows[n][bottom:n] {
			out[n] += share
		}
		for i := range n {
			if factor := rows[i][n] / out[n]; factor > 0 {
				for to := bottom; to < n; to++ {
					rows[i][to] += factor * rows[n][to]
				}
			}
		}
	}
	share := make([]float64, states)
	share[0] = 1
	total := 1.0
	for n := 1; n < states; n++ {
		for i := range n {
			share[n] += share[i] * rows[i][n]
		}
		share[n] /= out[n]
		total += share[n]
	}
	for n := range share {
		share[n] /= total
	}
	return share
}

// means follow from what lies between the ends of two batches: first the wait
// until the next one starts, in which requests come one by one, then its time.
func (q bulkQueue) means(shares []float64) Expectation {
	var seconds, area, busy, requests float64
	for left, share := range shares {
		size, present := q.batch(left)
		for n := left; n < present; n++ {
			seconds += share / q.rate
			area += share * float64(n) / q.rate
		}
		point := q.curve.At(size)
		square := point.Seconds*point.Seconds + point.Deviation*point.Deviation
		seconds += share * point.Seconds
		area += share * (float64(present)*point.Seconds + q.rate*square/2)
		busy += share * point.Seconds
		requests += share * float64(size)
	}
	inSystem := area / seconds
	return Expectation{MeanInSystem: inSystem, MeanResponse: inSystem / q.rate, MeanBatch: requests, Utilization: busy / seconds}
}

// arrivalsDuring is the distribution of the Poisson arrivals during one
// inference, whose time is gamma distributed: a negative binomial number, or a
// Poisson one if the time does not vary.
func arrivalsDuring(point Point, rate float64, most int) []float64 {
	shares := make([]float64, most)
	arrivals := rate * point.Seconds
	logGamma := func(x float64) float64 { value, _ := math.Lgamma(x); return value }
	shape := 0.0
	if point.Deviation > 0 {
		shape = (point.Seconds / point.Deviation) * (point.Seconds / point.Deviation)
	}
	for n := range shares {
		count := float64(n)
		logShare := count*math.Log(arrivals) - arrivals - logGamma(count+1)
		if shape > 0 {
			logShare = logGamma(count+shape) - logGamma(count+1) - logGamma(shape) + shape*math.Log(shape/(shape+arrivals)) + count*math.Log(arrivals/(shape+arrivals))
		}
		shares[n] = math.Exp(logShare)
	}
	return shares
}
