package estimate

import (
	"math"

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
	left     regression.Matrix  // covariance of what the sums leave over, lower half
	Slopes   [][]float64        // of the samples' logarithms by factor
	Factored *regression.Factor // of the covariance of the samples
	weights  []float64          // its inverse times what the samples are off the prior
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
	best := p.linearize(from, samples, left)
	for range iterations {
		next, before := p.step(best), best.cost
		for range 4 {
			if tried := p.linearize(next, samples, left); tried.cost < best.cost {
				best = tried
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

// linearize computes the samples' covariance with the slopes at these factors.
func (p *Prior) linearize(at []float64, samples []Sample, left regression.Matrix) *Posterior {
	n := len(samples)
	out := &Posterior{prior: p, Factors: append([]float64(nil), at...), Samples: samples, left: left, Slopes: make([][]float64, n)}
	covariance := regression.Square(n)
	residual, off := make([]float64, n), make([]float64, n)
	for i, one := range samples {
		predicted, slope := Value(at, one.Terms)
		out.Slopes[i] = slope
		residual[i] = one.Log - predicted
		off[i] = residual[i]
		for k, s := range slope {
			off[i] += s * (at[k] - p.Mean[k])
		}
		spread := regression.Matrix(p.Covariance).Times(slope)
		for j := range i + 1 {
			covariance[i][j] = regression.Dot(spread, out.Slopes[j]) + left[i][j]
		}
	}
	out.Factored = regression.Factorize(covariance)
	out.weights = out.Factored.Solve(off)
	out.evidence = -(regression.Dot(off, out.weights) + out.Factored.LogDeterminant()) / 2
	out.cost = p.distance(at) + halfSquare(left, residual)
	return out
}

// distance is half of the squared distance of factors from their mean.
func (p *Prior) distance(factors []float64) float64 {
	away := make([]float64, len(factors))
	for i := range away {
		away[i] = factors[i] - p.Mean[i]
	}
	return halfSquare(p.Covariance, away)
}

// halfSquare is half of the squared length of a vector by a covariance, of which
// only the lower half is read.
func halfSquare(covariance regression.Matrix, v []float64) float64 {
	return regression.Dot(v, regression.Factorize(covariance).Solve(v)) / 2
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
