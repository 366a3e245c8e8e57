package utilization

import (
	"math"

	linear "github.com/tandem-tune/tandem/internal/regression"
)

// Model is two regressions.
type Model struct {
	// Samples is how many profiles it was learned from.
	Samples             int
	utilization, memory regression
}

// regression predicts one logarithm: a Gaussian process of the standardized features,
// or the mean of all.
type regression struct {
	mean float64
	// process is nil for the mean of all.
	process *process
	// residual is how far predictions of what was not seen were off, the root of the
	// mean square; of a process in units of its own deviation there, so that a
	// prediction is less sure far from what was seen.
	residual float64
}

// process is a Gaussian process with the kernel exp(-d/reach), d being the sum of the
// distances in all features: it changes as abruptly as what is learned.
type process struct {
	scale linear.Scale
	*linear.Process[[]float64]
}

const (
	// reach is over which distance trainings resemble each other, in standard
	// deviations of all features together.
	reach = 40
	// noise is the variance of what two trainings with the same features do not share,
	// in units of what all differ by.
	noise = 0.03
	// leastSpread is added to the deviation of a process: near what was seen, a
	// prediction is not certain.
	leastSpread = 0.02
)

// like is the covariance of two trainings.
func like(a, b []float64) float64 {
	distance := 0.0
	for i, x := range a {
		distance += math.Abs(x - b[i])
	}
	return math.Exp(-distance / reach)
}

// say is the mean, and what a residual is counted in there.
func (r *regression) say(x []float64) (mean, unit float64) {
	if r.process == nil {
		return r.mean, 1
	}
	off, deviation := r.process.Predict(r.process.scale.Apply(x))
	return r.mean + off, leastSpread + deviation
}

// predict is the mean and the deviation of the logarithm.
func (r *regression) predict(x []float64) (mean, deviation float64) {
	mean, unit := r.say(x)
	return mean, unit * r.residual
}

// fit learns with the method.
func fit(inputs [][]float64, targets []float64, method Method) regression {
	r := regression{}
	for _, value := range targets {
		r.mean += value / float64(len(targets))
	}
	if method == Mean {
		return r
	}
	values := make([]float64, len(targets))
	for i, value := range targets {
		values[i] = value - r.mean
	}
	scale := linear.Standardize(inputs)
	scaled := make([][]float64, len(inputs))
	for i, x := range inputs {
		scaled[i] = scale.Apply(x)
	}
	r.process = &process{scale, linear.NewProcess(scaled, values, noise, like)}
	return r
}
