// Package surrogate is Gaussian-process regression over the unit cube of a
// search space: what do the values seen so far say of a configuration that was
// never tried, and how sure is that?
//
// [Process] is one process, conditioned on observations of one kind; [Ladder]
// joins the processes of a ladder's rungs, so that cheap results speak for
// expensive ones. Values are on any scale; [Fit] expects them to be about
// standardized.
//
// Everything is a pure function of its arguments, bit for bit on one machine:
// sums have a fixed order, and nothing is random.
package surrogate

import "github.com/tandem-tune/tandem/study/space"

// Parameters are a kernel's and the noise's.
type Parameters struct {
	// Lengths has one entry for each dimension, as a share of its range: at
	// this distance the function has changed a good deal.
	Lengths []float64
	// Scale is the variance of the function, Noise that of a measurement.
	Scale, Noise float64
}

// Process is a Gaussian process with mean 0, conditioned on observations.
type Process struct {
	kernel kernel
	noise  float64
	points [][]float64
	factor triangle // of the observations' covariance
	// white is L⁻¹ times the values; a mean is its product with L⁻¹ times the
	// covariances with the observations.
	white  []float64
	buffer []float64
}

// New conditions a process on values at masked points. It keeps the points.
func New(dimensions []space.Dimension, p Parameters, points [][]float64, values []float64) *Process {
	made := &Process{kernel: newKernel(dimensions, p), noise: p.Noise}
	for i, point := range points {
		made.Add(point, values[i])
	}
	return made
}

// Len is the number of observations.
func (p *Process) Len() int { return len(p.points) }

// Add conditions on one more observation.
func (p *Process) Add(point []float64, value float64) {
	n := len(p.points)
	row := p.covariances(point)
	row = append(row, p.kernel.scale+p.noise)
	p.factor.extend(row)
	p.white = append(p.white, (value-dot(row[:n], p.white))/row[n])
	p.points = append(p.points, point)
	p.buffer = row
}

// Believe conditions on the mean at the point as if it had been measured: no
// mean changes, but the variance around the point falls (the kriging believer).
func (p *Process) Believe(point []float64) {
	mean, _ := p.Predict(point)
	p.Add(point, mean)
}

// Forget takes back all observations but the first n.
func (p *Process) Forget(n int) {
	p.points, p.white = p.points[:n], p.white[:n]
	p.factor.cut(n)
}

// Predict returns mean and variance of the function (without the noise of a
// measurement) at a masked point.
func (p *Process) Predict(point []float64) (mean, variance float64) {
	row := p.covariances(point)
	p.factor.solve(row)
	p.buffer = row
	return dot(row, p.white), max(p.kernel.scale-dot(row, row), 0)
}

// covariances with the observations, in the buffer.
func (p *Process) covariances(point []float64) []float64 {
	row := p.buffer[:0]
	for _, other := range p.points {
		row = append(row, p.kernel.between(point, other))
	}
	return row
}
