package surrogate

import (
	"math"

	"github.com/tandem-tune/tandem/study/space"
)

// The priors: normal distributions of the logarithms, for values with mean 0
// and variance 1. The lengths grow with the root of the number of dimensions,
// as distances in a cube do (Hvarfner, Hellsten and Nardi 2024).
const (
	lengthPrior, lengthSpread = 0.35, 1.0 // times √d
	scalePrior, scaleSpread   = 1.0, 0.6
	noisePrior, noiseSpread   = 0.01, 1.5
)

// The optimizer: steps for each parameter by itself that grow while the sign
// of its derivative stays and shrink when it turns (Rprop, Riedmiller and Braun
// 1993; Igel and Hüsken 2000). It needs no line search and always takes as many
// evaluations.
const (
	fitSteps             = 30
	firstStep            = 0.3
	leastStep, mostStep  = 0.001, 0.8
	growStep, shrinkStep = 1.2, 0.5
	// bound is how many spreads a parameter may be away from its prior's middle.
	bound = 4
)

// Prior is what is assumed before anything was observed.
func Prior(dimensions int) Parameters {
	p := Parameters{Lengths: make([]float64, dimensions), Scale: scalePrior, Noise: noisePrior}
	for d := range p.Lengths {
		p.Lengths[d] = lengthPrior * math.Sqrt(float64(dimensions))
	}
	return p
}

// Fit returns the parameters with the highest posterior density that a fixed
// number of steps from the prior finds.
func Fit(dimensions []space.Dimension, points [][]float64, values []float64) Parameters {
	f := newFitting(dimensions, points, values)
	return f.parameters(f.climb(0))
}

// fitScale is Fit with the lengths given: only scale and noise are fitted,
// where the scale is about the one expected.
func fitScale(dimensions []space.Dimension, given Parameters, level Level) Parameters {
	f := newFitting(dimensions, level.Points, level.Values)
	for d, length := range given.Lengths {
		f.start[d] = math.Log(length)
	}
	at := len(given.Lengths)
	f.prior[at] = math.Log(given.Scale)
	f.start[at] = f.prior[at]
	return f.parameters(f.climb(at))
}

// fitting is a posterior density over the parameters' logarithms: the lengths,
// then scale and noise.
type fitting struct {
	values        []float64
	squares       [][]float64 // by dimension: squared distances, as in a triangle
	start         []float64
	prior, spread []float64
}

func newFitting(dimensions []space.Dimension, points [][]float64, values []float64) *fitting {
	n := len(points)
	f := &fitting{values: values}
	for d, dimension := range dimensions {
		squares := make([]float64, 0, n*(n+1)/2)
		for i := range points {
			for j := range i + 1 {
				squares = append(squares, distance(dimension.Kind == space.Unordered, points[i][d], points[j][d]))
			}
		}
		f.squares = append(f.squares, squares)
	}
	p := Prior(len(dimensions))
	for _, length := range p.Lengths {
		f.prior, f.spread = append(f.prior, math.Log(length)), append(f.spread, lengthSpread)
	}
	f.prior = append(f.prior, math.Log(p.Scale), math.Log(p.Noise))
	f.spread = append(f.spread, scaleSpread, noiseSpread)
	f.start = append([]float64(nil), f.prior...)
	return f
}

func (f *fitting) parameters(logs []float64) Parameters {
	d := len(f.squares)
	p := Parameters{Lengths: make([]float64, d), Scale: math.Exp(logs[d]), Noise: math.Exp(logs[d+1])}
	for i := range p.Lengths {
		p.Lengths[i] = math.Exp(logs[i])
	}
	return p
}

// climb ascends from the start and returns the best place it saw. The first
// fixed parameters stay what they are.
func (f *fitting) climb(fixed int) []float64 {
	logs := append([]float64(nil), f.start...)
	best, most := append([]float64(nil), logs...), math.Inf(-1)
	step, before := make([]float64, len(logs)), make([]float64, len(logs))
	for i := range step {
		step[i] = firstStep
	}
	for range fitSteps {
		density, slope := f.at(logs)
		if density > most {
			most = density
			copy(best, logs)
		}
		for i := fixed; i < len(logs); i++ {
			switch turn := slope[i] * before[i]; {
			case turn > 0:
				step[i] = min(step[i]*growStep, mostStep)
			case turn < 0:
				step[i] = max(step[i]*shrinkStep, leastStep)
				slope[i] = 0
			}
			switch {
			case slope[i] > 0:
				logs[i] += step[i]
			case slope[i] < 0:
				logs[i] -= step[i]
			}
			logs[i] = min(max(logs[i], f.prior[i]-bound*f.spread[i]), f.prior[i]+bound*f.spread[i])
			before[i] = slope[i]
		}
	}
	return best
}

// at returns the logarithm of the posterior density, up to a constant, and its
// gradient (Rasmussen and Williams 2006, equations 2.30 and 5.9).
func (f *fitting) at(logs []float64) (density float64, slope []float64) {
	n, dimensions := len(f.values), len(f.squares)
	p := f.parameters(logs)
	correlation, fall := f.correlations(p)
	factor := triangle{entries: make([]float64, 0, len(correlation))}
	row := make([]float64, n)
	for i := range n {
		from := correlation[i*(i+1)/2 : (i+1)*(i+2)/2]
		for j, c := range from {
			row[j] = p.Scale * c
		}
		row[i] += p.Noise
		factor.extend(row[:i+1])
	}
	weights := append([]float64(nil), f.values...)
	factor.solve(weights)
	density = -dot(weights, weights) / 2
	factor.solveTransposed(weights)
	for i := range n {
		density -= math.Log(factor.row(i)[i])
	}
	slope = make([]float64, len(logs))
	difference := f.difference(&factor, weights)
	at := 0
	for i := range n {
		for j := range i + 1 {
			twice := difference[at]
			if i == j {
				twice /= 2
				slope[dimensions+1] += twice * p.Noise
			}
			slope[dimensions] += twice * p.Scale * correlation[at]
			difference[at] = twice * p.Scale * fall[at]
			at++
		}
	}
	for d, squares := range f.squares {
		slope[d] = dot(difference, squares) / (p.Lengths[d] * p.Lengths[d])
	}
	for i, log := range logs {
		off := (log - f.prior[i]) / f.spread[i]
		density -= off * off / 2
		slope[i] -= off / f.spread[i]
	}
	return density, slope
}

// correlations of the observations, and the factor by which each changes with
// the logarithm of a length (times the weighted square of the distance).
func (f *fitting) correlations(p Parameters) (correlation, fall []float64) {
	correlation, fall = make([]float64, len(f.squares[0])), make([]float64, len(f.squares[0]))
	for d, squares := range f.squares {
		weight := 1 / (p.Lengths[d] * p.Lengths[d])
		for i, square := range squares {
			correlation[i] += weight * square
		}
	}
	for i, square := range correlation {
		s := math.Sqrt(5 * square)
		e := math.Exp(-s)
		correlation[i] = (1 + s + s*s/3) * e
		fall[i] = 5. / 3 * (1 + s) * e
	}
	return correlation, fall
}

// difference is ααᵀ - K⁻¹, with α the weights: twice the derivative of the
// likelihood by the covariance. Its entries are those of a triangle; the ones
// off the diagonal stand for two.
func (f *fitting) difference(factor *triangle, weights []float64) []float64 {
	inverse := factor.inverse()
	result := make([]float64, len(inverse.entries))
	for k := range factor.n {
		row := inverse.row(k)
		at := 0
		for i, x := range row {
			into := result[at : at+i+1]
			for j, y := range row[:i+1] {
				into[j] -= x * y
			}
			at += i + 1
		}
	}
	at := 0
	for i, x := range weights {
		for j := range i + 1 {
			result[at] += x * weights[j]
			at++
		}
	}
	return result
}
