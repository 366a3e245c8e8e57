package dopeml

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/regression"
)

// ridge is Bayesian linear regression: effects that all backends share, and
// for each backend those that are its own, which a prior keeps small until its
// runs say otherwise.
type ridge struct {
	shape Shape
	scale scale
	fits  []*posterior // by target; several may share one factor
}

// checked is the number of runs, drawn evenly, that the noise is found from:
// that takes longer than finding the weights.
const checked = 400

// penalty is the precision of the prior of a weight, in units of the noise.
const penalty = 0.3

// posterior is of the weights of one target.
type posterior struct {
	ridge   *regression.Ridge
	weights []float64
	noise   float64 // variance
}

// Predict gives for each target the expected value and its standard deviation for a
// new run; NaN for targets that no run has had.
func (r *ridge) Predict(features []float64) (mean, deviation []float64) {
	mean, deviation = nothing(len(r.shape.Logarithmic))
	if len(r.fits) == 0 {
		return mean, deviation
	}
	x := r.expand(features)
	for o, fit := range r.fits {
		if fit == nil {
			continue
		}
		mean[o] = regression.Dot(fit.weights, x)
		deviation[o] = math.Sqrt(fit.noise * (1 + leverage(fit.ridge, x)))
	}
	return r.scale.output(mean, deviation)
}

// expand gives the shared columns, then those of each backend.
func (r *ridge) expand(features []float64) []float64 {
	shared := append([]float64{1}, r.scale.input(features)...)
	own := append([]float64{1}, shared[1+r.scale.condition:]...)
	x := append(make([]float64, 0, len(shared)+r.shape.Backends*len(own)), shared...)
	for b := range r.shape.Backends {
		for _, value := range own {
			x = append(x, value*features[b])
		}
	}
	return x
}

// Fit forgets everything and learns these runs, the oldest first.
func (r *ridge) Fit(rows []Row) {
	rows = newest(rows)
	r.fits = nil
	if len(rows) == 0 {
		return
	}
	r.scale = newScale(rows, r.shape)
	inputs := make([][]float64, len(rows))
	targets := make([][]float64, len(rows))
	for i, row := range rows {
		inputs[i], targets[i] = r.expand(row.Features), r.scale.target(row.Targets)
	}
	outputs := len(r.shape.Logarithmic)
	r.fits = make([]*posterior, outputs)
	for o := range outputs {
		var x [][]float64
		var y []float64
		same := o > 0 && r.fits[o-1] != nil
		for i := range inputs {
			measured := !math.IsNaN(targets[i][o])
			if measured {
				x, y = append(x, inputs[i]), append(y, targets[i][o])
			}
			same = same && measured == !math.IsNaN(targets[i][o-1])
		}
		if len(x) == 0 {
			continue
		}
		var solver *regression.Ridge
		if same { // the same runs have this target as the one before
			solver = r.fits[o-1].ridge
		} else {
			solver = regression.NewRidge(x, penalty)
		}
		r.fits[o] = infer(solver, x, y)
	}
}

// infer finds the weights, and the noise by the errors for runs left out.
func infer(solver *regression.Ridge, x [][]float64, y []float64) *posterior {
	p := &posterior{ridge: solver, weights: solver.Weights(y)}
	// One run more, that is as far off as all targets are, keeps the noise of few
	// runs from being nothing.
	p.noise = 1
	count := min(len(x), checked)
	for at := range count {
		i := at * len(x) / count
		left := (y[i] - regression.Dot(p.weights, x[i])) / max(1-leverage(solver, x[i]), 0.05)
		p.noise += left * left
	}
	p.noise /= float64(count + 1)
	return p
}

// leverage is xᵀ(XᵀX + penalty·I)⁻¹x: the variance of a prediction at x that comes from the
// weights, in units of the noise's.
func leverage(ridge *regression.Ridge, x []float64) float64 {
	white := ridge.Factor.Whiten(slices.Clone(x))
	return regression.Dot(white, white)
}
