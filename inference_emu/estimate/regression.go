package estimate

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/regression"
)

// Prior is what is known of a sum before anything is measured: the logarithms of
// the factors are normal, and so is what the sum leaves over.
type Prior struct {
	// Name is of the engine that the prior is of; empty for all.
	Name string `json:"name,omitempty"`
	// Float32PerCycle is how wide the cores of the devices compute that it was
	// learned from, if it is only for such; 0 for all devices with the engine.
	Float32PerCycle float64 `json:"float32_per_cycle,omitempty"`
	// Mean and Covariance of the factors' logarithms, by term.
	Mean       []float64   `json:"mean"`
	Covariance [][]float64 `json:"covariance"`
	// Amplitude is the standard deviation of what the sum leaves over and a
	// neighbour shares; Lengths over which it is shared, by coordinate.
	Amplitude float64   `json:"amplitude"`
	Lengths   []float64 `json:"lengths"`
	// Noise is the standard deviation of what nobody shares.
	Noise float64 `json:"noise"`
	// Usual is what the sum leaves over on all devices of the engine alike.
	Usual Usual `json:"usual"`
}

// asWide is by what factor the cores of a device may compute wider or narrower than
// those that a prior was learned from.
const asWide = 2

// of says whether the prior is that of the device's engine.
func (p *Prior) of(d Device) bool {
	if d.Engine == "" || p.Name != d.Engine {
		return false
	}
	ratio := d.Float32PerCycle / p.Float32PerCycle
	return p.Float32PerCycle == 0 || d.Accelerator == nil && ratio <= asWide && ratio >= 1.0/asWide
}

// scaled is the prior for a device that is less or more like the others.
func (p *Prior) scaled(by spread) *Prior {
	out := *p
	out.Amplitude, out.Noise = by.amplitude*p.Amplitude, by.noise*p.Noise
	if by.covariance != 1 {
		wider := regression.Square(len(p.Covariance))
		for i, row := range p.Covariance {
			for j, x := range row {
				wider[i][j] = by.covariance * x
			}
		}
		out.Covariance = wider
	}
	return &out
}

// Sample is a measurement as the regression sees it: the logarithm of the sum of
// the first terms, plus that of the sum of the others where there are any.
type Sample struct {
	Terms, Place []float64
	Log          float64 // of the measured value
}

// Posterior is a prior and what measurements made of it. The sums are linearized
// at the most probable factors (Laplace); what is left over is exact.
type Posterior struct {
	prior    *Prior
	Factors  []float64 // logarithms, the most probable
	Samples  []Sample
	Slopes   [][]float64        // of the samples' logarithms by factor
	Factored *regression.Factor // of the covariance of the samples
	off      []float64          // what the samples are off the prior
	weights  []float64          // the inverse times that
	evidence float64            // logarithm, by the same linearization
	penalty  float64            // part of the evidence: for outliers
	cost     float64            // what the most probable factors minimize
}

// Value is the logarithm of the sums, and its slope by every factor.
func Value(factors, all []float64) (float64, []float64) {
	slope, logarithm := make([]float64, len(all)), 0.0
	for _, part := range [][2]int{{0, terms}, {terms, len(all)}} {
		sum := 0.0
		for i := part[0]; i < part[1]; i++ {
			if all[i] > 0 {
				slope[i] = all[i] * math.Exp(factors[i])
				sum += slope[i]
			}
		}
		if sum == 0 {
			continue
		}
		for i := part[0]; i < part[1]; i++ {
			slope[i] /= sum
		}
		logarithm += math.Log(sum)
	}
	return logarithm, slope
}

// shared is the covariance of what the sums leave over.
func (p *Prior) shared(a, b []float64) float64 {
	distance := 0.0
	for i, length := range p.Lengths {
		d := (a[i] - b[i]) / length
		distance += d * d
	}
	return p.Amplitude * p.Amplitude * math.Exp(-distance/2)
}

// iterations of Gauss and Newton; they settle after three to eight.
const iterations = 10

// Fit finds the most probable factors from a start. Steps are shortened while
// they do not improve, so that it ends near the start at worst. Samples may be
// marked as outliers.
func (p *Prior) Fit(samples []Sample, from []float64, out []bool) *Posterior {
	if len(samples) == 0 {
		return &Posterior{prior: p, Factors: p.Mean}
	}
	left := regression.Square(len(samples))
	for i, one := range samples {
		for j := range i {
			left[i][j] = p.shared(one.Place, samples[j].Place)
		}
		left[i][i] = p.Amplitude*p.Amplitude + p.Noise*p.Noise
		if out != nil && out[i] {
			left[i][i] += outlier
		}
	}
	sums := p.sumsOf(samples, left)
	best := sums.solved(sums.at(from))
	for range iterations {
		next, before := p.step(best), best.cost
		for range 4 {
			if tried := sums.at(next); tried.cost < best.cost {
				best = sums.solved(tried)
				break
			}
			for i := range next {
				next[i] = (next[i] + best.Factors[i]) / 2
			}
		}
		if best.cost > before-1e-3 {
			break
		}
	}
	return best
}

// step is where the linearized problem has its optimum.
func (p *Prior) step(at *Posterior) []float64 {
	pull := make([]float64, len(p.Mean))
	for i, slope := range at.Slopes {
		for k, s := range slope {
			pull[k] += s * at.weights[i]
		}
	}
	next := regression.Matrix(p.Covariance).Times(pull)
	for i := range next {
		next[i] += p.Mean[i]
	}
	return next
}

// sums are the samples of a fit, with what stays the same at all factors.
type sums struct {
	prior             *Prior
	samples           []Sample
	left              regression.Matrix // covariance of what the sums leave over, lower half
	leftover, factors *regression.Factor
	active            []int             // terms that any sample has
	covariance        regression.Matrix // of the active factors
}

func (p *Prior) sumsOf(samples []Sample, left regression.Matrix) *sums {
	s := &sums{prior: p, samples: samples, left: left, leftover: regression.Factorize(left), factors: regression.Factorize(p.Covariance)}
	for k := range p.Mean {
		if slices.ContainsFunc(samples, func(one Sample) bool { return one.Terms[k] > 0 }) {
			s.active = append(s.active, k)
		}
	}
	for _, k := range s.active {
		s.covariance = append(s.covariance, s.those(p.Covariance[k]))
	}
	return s
}

// those are the values of the active terms.
func (s *sums) those(all []float64) []float64 {
	out := make([]float64, len(s.active))
	for i, k := range s.active {
		out[i] = all[k]
	}
	return out
}

// at is what the factors cost, not yet solved.
func (s *sums) at(factors []float64) *Posterior {
	n := len(s.samples)
	out := &Posterior{prior: s.prior, Factors: slices.Clone(factors), Samples: s.samples, Slopes: make([][]float64, n), off: make([]float64, n)}
	for i, one := range s.samples {
		var predicted float64
		predicted, out.Slopes[i] = Value(factors, one.Terms)
		out.off[i] = one.Log - predicted
	}
	away := make([]float64, len(factors))
	for i := range away {
		away[i] = factors[i] - s.prior.Mean[i]
	}
	out.cost = halfSquare(s.factors, away) + halfSquare(s.leftover, out.off)
	return out
}

// solved has the samples' covariance with the slopes at its factors.
func (s *sums) solved(out *Posterior) *Posterior {
	slopes, covariance := make([][]float64, len(s.samples)), regression.Square(len(s.samples))
	for i := range s.samples {
		for k, slope := range out.Slopes[i] {
			out.off[i] += slope * (out.Factors[k] - s.prior.Mean[k])
		}
		slopes[i] = s.those(out.Slopes[i])
		spread := s.covariance.Times(slopes[i])
		for j := range i + 1 {
			covariance[i][j] = regression.Dot(spread, slopes[j]) + s.left[i][j]
		}
	}
	out.Factored = regression.Factorize(covariance)
	out.weights = out.Factored.Solve(out.off)
	out.evidence = -(regression.Dot(out.off, out.weights) + out.Factored.LogDeterminant()) / 2
	return out
}

// halfSquare is half of the squared length of a vector by a covariance.
func halfSquare(covariance *regression.Factor, v []float64) float64 {
	white := covariance.Whiten(slices.Clone(v))
	return regression.Dot(white, white) / 2
}

// predict is the mean and the standard deviation of a logarithm.
func (q *Posterior) predict(one Sample) (mean, deviation float64) {
	mean, slope := Value(q.Factors, one.Terms)
	spread := regression.Matrix(q.prior.Covariance).Times(slope)
	variance := regression.Dot(spread, slope) + q.prior.Amplitude*q.prior.Amplitude + q.prior.Noise*q.prior.Noise
	cross := make([]float64, len(q.Samples))
	for i, other := range q.Samples {
		left := q.prior.shared(one.Place, other.Place)
		mean += left * q.weights[i]
		cross[i] = left + regression.Dot(spread, q.Slopes[i])
	}
	if len(cross) > 0 {
		q.Factored.Whiten(cross)
	}
	return mean, math.Sqrt(max(variance-regression.Dot(cross, cross), q.prior.Noise*q.prior.Noise))
}
