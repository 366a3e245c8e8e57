package batching

import (
	"cmp"
	"fmt"
	"slices"
)

// HighestRate is the rate, in requests a second, up to which the policy's 99th
// percentile of response times stays within the bound (seconds), when the
// run's arrivals are sped up or slowed down; 0 if it does at no rate tried, down to 1% of
// what the policy sustains. A policy that waits may break the bound at low
// rates and meet it at high ones: this is the upper end. Without a bound it is
// what the policy sustains.
//
// It is found by simulation, so it is an estimate: near the rate where the
// queue has no bound, the length of the simulation matters.
func HighestRate(server Server, policy Policy, bound float64, run Run) (float64, error) {
	if err := server.check(); err != nil {
		return 0, err
	}
	if err := policy.check(server.Curve); err != nil {
		return 0, err
	}
	if err := run.check(); err != nil {
		return 0, err
	}
	run.Observe = nil
	return newPlay(server, run).highestRate(policy, bound), nil
}

// highestRate scans down from what the policy sustains to the first rate that
// meets the bound, then halves the gap above it.
func (p *play) highestRate(policy Policy, bound float64) float64 {
	sustains := p.server.Sustains(policy)
	if bound == 0 {
		return sustains
	}
	original, originalRate := p.times, p.run.Arrivals.PerSecond()
	defer func() { p.times = original }()
	p.times = make([]float64, len(original))
	meets := func(rate float64) bool {
		for i, at := range original {
			p.times[i] = at * originalRate / rate
		}
		p.dispatch(policy)
		return p.value(quantileOf(0.99)) <= bound
	}
	above := sustains
	for _, share := range []float64{0.98, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01} {
		rate := share * sustains
		if !meets(rate) {
			above = rate
			continue
		}
		for range 7 {
			if middle := (rate + above) / 2; meets(middle) {
				rate = middle
			} else {
				above = middle
			}
		}
		return rate
	}
	return 0
}

// fastest is the policy with the highest rate within the bound.
func fastest(server Server, goal Goal, run Run) (Choice, error) {
	most := Greedy(server.Curve.Cheapest())
	if goal.LatencyBound == 0 {
		choice := Choice{Tried: 1, MeetsBound: true, Why: fmt.Sprintf("batches of %d take the least time a sample; without a bound on latency there are always as many waiting", most.MaxBatch)}
		return finish(server, most, run.At(0.98*server.Capacity()), choice)
	}
	policies := []Policy{Single(), most}
	for _, size := range sizes(server.Curve) {
		for _, share := range []float64{0, 0.25, 0.5} {
			policies = append(policies, Policy{MaxBatch: size, WaitSeconds: share * goal.LatencyBound})
		}
	}
	slices.SortStableFunc(policies, func(a, b Policy) int {
		return cmp.Compare(server.Sustains(b), server.Sustains(a))
	})
	short := run
	short.Requests = min(run.requests(), 20_000)
	stage := newPlay(server, short)
	best, rate := Single(), 0.0
	for _, policy := range policies {
		if server.Sustains(policy) <= rate {
			break // nor can those after it be better
		}
		if found := stage.highestRate(policy, goal.LatencyBound); found > rate*1.002 {
			best, rate = policy, found
		}
	}
	choice := Choice{Tried: len(policies)}
	if rate == 0 {
		choice.Why = fmt.Sprintf("no policy tried keeps the 99th percentile within %.4g ms at any rate: a single sample takes %.4g ms", goal.LatencyBound*1000, server.Curve.At(1).Seconds*1000)
		return finish(server, best, run.At(0.01*server.Sustains(best)), choice)
	}
	if longer := newPlay(server, run).highestRate(best, goal.LatencyBound); longer > 0 {
		rate = longer
	}
	choice.MeetsBound = true
	choice.Why = fmt.Sprintf("it keeps the 99th percentile within %.4g ms up to %.6g requests/s, the most of the policies tried", goal.LatencyBound*1000, rate)
	return finish(server, best, run.At(rate), choice)
}

// At is the run with its arrivals sped up or slowed down to the rate.
func (r Run) At(rate float64) Run {
	factor := rate / r.Arrivals.PerSecond()
	switch arrivals := r.Arrivals.(type) {
	case Poisson:
		r.Arrivals = Poisson{Rate: rate}
	case Periodic:
		arrivals.PeriodSeconds /= factor
		r.Arrivals = arrivals
	case Bursty:
		r.Arrivals = Bursty{CalmRate: arrivals.CalmRate * factor, BurstRate: arrivals.BurstRate * factor, CalmSeconds: arrivals.CalmSeconds / factor, BurstSeconds: arrivals.BurstSeconds / factor}
	case Recorded:
		faster := make([]float64, len(arrivals.Seconds))
		for i, at := range arrivals.Seconds {
			faster[i] = at / factor
		}
		r.Arrivals = Recorded{Seconds: faster}
	}
	return r
}
