package regression

import "math"

// Process is a Gaussian process of values with the mean 0 (Rasmussen and Williams 2006,
// section 2.2).
type Process[T any] struct {
	alike   func(a, b T) float64
	seen    []T
	factor  *Factor
	weights []float64
}

// NewProcess learns a value for each of what was seen. Alike is the covariance of two,
// noise the variance of what a value does not share with any other.
func NewProcess[T any](seen []T, values []float64, noise float64, alike func(a, b T) float64) *Process[T] {
	covariance := Square(len(seen))
	for i, one := range seen {
		for j, other := range seen[:i+1] {
			covariance[i][j] = alike(one, other)
		}
		covariance[i][i] += noise
	}
	p := &Process[T]{alike: alike, seen: seen, factor: Factorize(covariance)}
	p.weights = p.factor.Solve(values)
	return p
}

// Mean is that of the value.
func (p *Process[T]) Mean(of T) float64 { return Dot(p.near(of), p.weights) }

// Predict is the mean of the value, and its deviation without the noise.
func (p *Process[T]) Predict(of T) (mean, deviation float64) {
	near := p.near(of)
	mean = Dot(near, p.weights)
	p.factor.Whiten(near)
	return mean, math.Sqrt(max(0, p.alike(of, of)-Dot(near, near)))
}

// near are the covariances with what was seen.
func (p *Process[T]) near(of T) []float64 {
	near := make([]float64, len(p.seen))
	for i, one := range p.seen {
		near[i] = p.alike(of, one)
	}
	return near
}
