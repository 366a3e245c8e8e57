package estimate

import (
	"math"

	"github.com/tandem-tune/tandem/internal/regression"
)

// mixture is several posteriors, each as probable as its evidence makes it: the
// engine on a device is like one of the known ones or like all, and leaves more
// or less over than they do.
type mixture struct {
	posteriors []*Posterior
	priors     []*Prior // that each of them is of
	shares     []float64
}

// spread is how many times as much as on the known devices a sum may leave over,
// a measurement may vary, and factors may be off (their covariance).
type spread struct{ amplitude, noise, covariance float64 }

func spreads() []spread {
	return []spread{{0.5, 0.5, 1}, {1, 1, 1}, {1, 2.5, 1}, {2, 1, 1}, {2, 4, 1}, {1, 12, 1}, {2, 1, 6}, {4, 2, 4}}
}

// outlying is the logarithm of how much less probable a measurement is to be an
// outlier than not, and outlier the variance of the logarithm of one.
const (
	outlying = -3
	outlier  = 1.0
)

// robust fits, and lets samples be outliers that the others contradict, one after
// the other, as long as that makes the samples more probable. Devices throttle,
// and something else may run.
func (p *Prior) robust(samples []Sample, from []float64) *Posterior {
	best := p.Fit(samples, from, nil)
	out := make([]bool, len(samples))
	for range len(samples) / 5 {
		worst := best.worst(out)
		if worst < 0 {
			break
		}
		out[worst] = true
		next := p.Fit(samples, best.Factors, out)
		next.evidence += best.penalty + outlying
		next.penalty = best.penalty + outlying
		if next.evidence <= best.evidence {
			break
		}
		best = next
	}
	return best
}

// worst is the sample that the others foresee least, -1 if they foresee all
// within three standard deviations.
func (q *Posterior) worst(out []bool) int {
	worst, most := -1, 3.0
	for i := range q.Samples {
		unit := make([]float64, len(q.Samples))
		unit[i] = 1
		half := q.Factored.Whiten(unit)
		// What is left out of the inverse is that one's own variance.
		if off := math.Abs(q.weights[i]) / math.Sqrt(regression.Dot(half, half)); off > most && !out[i] {
			worst, most = i, off
		}
	}
	return worst
}

// own is the logarithm of how much more probable a device is to be like the
// others of the engine that it is said to have.
const own = 3

// negligible is the share of a mixture below which a posterior is left out.
const negligible = 1e-3

// counts reports whether a posterior matters, or is not known.
func (m mixture) counts(i int) bool { return i >= len(m.shares) || m.shares[i] >= negligible }

func mix(priors []Prior, device Device, samples []Sample, like mixture) mixture {
	var m mixture
	for i := range priors {
		p := &priors[i]
		if len(samples) == 0 {
			if p.of(device) || i == 0 {
				m.posteriors, m.priors = []*Posterior{p.Fit(nil, nil, nil)}, []*Prior{p}
			}
			continue
		}
		from, rest := p.Mean, p.Without(samples)
		for j, spread := range spreads() {
			if !like.counts(i*len(spreads()) + j) {
				continue
			}
			fit := p.scaled(spread).robust(rest, from)
			if p.of(device) {
				fit.evidence += own
			}
			m.posteriors, m.priors, from = append(m.posteriors, fit), append(m.priors, p), fit.Factors
		}
	}
	best := math.Inf(-1)
	for _, one := range m.posteriors {
		best = max(best, one.evidence)
	}
	sum := 0.0
	for _, one := range m.posteriors {
		m.shares = append(m.shares, math.Exp(one.evidence-best))
		sum += m.shares[len(m.shares)-1]
	}
	for i := range m.shares {
		m.shares[i] /= sum
	}
	return m
}

// predict is the mean and the standard deviation of the mixture.
func (m mixture) predict(one Sample) (mean, deviation float64) {
	square, usual := 0.0, 0.0
	for i, share := range m.shares {
		if i == 0 || m.priors[i] != m.priors[i-1] {
			usual = m.priors[i].usual(one.Place)
		}
		if !m.counts(i) {
			continue
		}
		at, wide := m.posteriors[i].predict(one)
		at += usual
		mean += share * at
		square += share * (at*at + wide*wide)
		deviation += share
	}
	mean /= deviation
	return mean, math.Sqrt(max(square/deviation-mean*mean, 0))
}
