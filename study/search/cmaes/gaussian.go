package cmaes

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// The shape of a distribution that stays within what arithmetic bears.
const (
	maxCondition = 1e14 // of the covariance matrix
	maxDeviation = 0.5  // of any axis, as a share of the range
)

// gaussian is the multivariate normal distribution of CMA-ES and its paths,
// with the update of Hansen's tutorial (2016, figure 6), on some axes of the
// cube. A draw is mean + σ · scale ∘ B D z; the scale belongs to the margin.
type gaussian struct {
	mean, scale      []float64
	sigma            float64
	covariance       *mat.SymDense
	basis            *mat.Dense // B: the eigenvectors, one a column
	lengths          []float64  // D: the roots of the eigenvalues
	pathSigma, pathC []float64
	updates          int
}

func newGaussian(mean []float64, sigma float64) *gaussian {
	n := len(mean)
	g := &gaussian{
		mean: mean, sigma: sigma, scale: make([]float64, n), lengths: make([]float64, n),
		pathSigma: make([]float64, n), pathC: make([]float64, n),
	}
	if n == 0 {
		return g
	}
	g.covariance, g.basis = mat.NewSymDense(n, nil), mat.NewDense(n, n, nil)
	for i := range n {
		g.scale[i], g.lengths[i] = 1, 1
		g.covariance.SetSym(i, i, 1)
		g.basis.Set(i, i, 1)
	}
	return g
}

// deviation is the standard deviation along an axis.
func (g *gaussian) deviation(axis int) float64 {
	return g.sigma * g.scale[axis] * math.Sqrt(g.covariance.At(axis, axis))
}

// draw fills x with a draw, with σ widened.
func (g *gaussian) draw(r *rand.Rand, widen float64, x []float64) {
	n := len(g.mean)
	copy(x, g.mean)
	for k := range n {
		z := widen * g.sigma * g.lengths[k] * r.NormFloat64()
		for i := range n {
			x[i] += g.scale[i] * g.basis.At(i, k) * z
		}
	}
}

// whiten returns C^(-1/2) y.
func (g *gaussian) whiten(y []float64) []float64 {
	n := len(y)
	white := make([]float64, n)
	for k := range n {
		along := 0.0
		for i := range n {
			along += g.basis.At(i, k) * y[i]
		}
		along /= g.lengths[k]
		for i := range n {
			white[i] += g.basis.At(i, k) * along
		}
	}
	return white
}

// learn moves the distribution to the points, the best first, one for each
// weight. A coordinate that is not a number says nothing and counts as the mean.
func (g *gaussian) learn(points [][]float64, s strategy) {
	n := len(g.mean)
	if n == 0 {
		g.updates++
		return
	}
	steps, lengths := make([][]float64, len(points)), make([]float64, len(points))
	longest := math.Sqrt(float64(n)) + 2*float64(n)/float64(n+2)
	mean := make([]float64, n)
	for i, point := range points {
		steps[i], lengths[i] = g.step(point, longest)
		for k := range n {
			mean[k] += max(s.weights[i], 0) * steps[i][k]
		}
	}
	moved := g.whiten(mean)
	still := g.walk(mean, moved, s)
	g.adapt(steps, lengths, still, s)
	for k := range n {
		g.mean[k] = min(max(g.mean[k]+g.sigma*g.scale[k]*mean[k], 0), 1)
	}
	g.updates++
	pace := norm(g.pathSigma)/expectedNorm(n) - 1
	g.sigma *= math.Exp(min(1, s.cSigma/s.dampSigma*pace))
	g.decompose()
}

// step is the point's distance from the mean in units of σ and the scale, and
// its length by the covariance. A draw from a distribution of the past may be
// too far for an update, and is then pulled in (Hansen 2011, equation 3).
func (g *gaussian) step(point []float64, longest float64) (step []float64, length float64) {
	step = make([]float64, len(point))
	for k, x := range point {
		if !math.IsNaN(x) {
			step[k] = (x - g.mean[k]) / (g.sigma * g.scale[k])
		}
	}
	length = norm(g.whiten(step))
	if length > longest {
		for k := range step {
			step[k] *= longest / length
		}
		length = longest
	}
	return step, length
}

// walk moves both paths, and tells whether the one of the covariance stood
// still, because the other shows that σ is far too small.
func (g *gaussian) walk(mean, moved []float64, s strategy) (still float64) {
	n := float64(len(mean))
	length := 0.0
	for k := range mean {
		g.pathSigma[k] = (1-s.cSigma)*g.pathSigma[k] + math.Sqrt(s.cSigma*(2-s.cSigma)*s.mass)*moved[k]
		length += g.pathSigma[k] * g.pathSigma[k]
	}
	grown := 1 - math.Pow(1-s.cSigma, 2*float64(g.updates+1))
	going := math.Sqrt(length/grown) < (1.4+2/(n+1))*expectedNorm(len(mean))
	for k := range mean {
		g.pathC[k] *= 1 - s.cPath
		if going {
			g.pathC[k] += math.Sqrt(s.cPath*(2-s.cPath)*s.mass) * mean[k]
		}
	}
	if going {
		return 0
	}
	return 1
}

// adapt is the update of the covariance by the path (rank one) and by the
// steps (rank μ), those of bad points with negative weights.
func (g *gaussian) adapt(steps [][]float64, lengths []float64, still float64, s strategy) {
	n := len(g.mean)
	total := 0.0
	weights := make([]float64, len(steps))
	for i, w := range s.weights {
		total += w
		weights[i] = s.cMu * w
		if w < 0 {
			weights[i] *= float64(n) / max(lengths[i]*lengths[i], 1e-12)
		}
	}
	keep := 1 + s.cOne*still*s.cPath*(2-s.cPath) - s.cOne - s.cMu*total
	for a := range n {
		for b := a; b < n; b++ {
			c := keep*g.covariance.At(a, b) + s.cOne*g.pathC[a]*g.pathC[b]
			for i, step := range steps {
				c += weights[i] * step[a] * step[b]
			}
			g.covariance.SetSym(a, b, c)
		}
	}
}

// decompose finds the covariance's eigenvectors, and keeps the distribution
// within its bounds. One that cannot be decomposed begins anew as a sphere.
func (g *gaussian) decompose() {
	var eigen mat.EigenSym
	n := len(g.mean)
	sound := eigen.Factorize(g.covariance, true)
	var values []float64
	if sound {
		values = eigen.Values(nil)
		largest := values[n-1]
		sound = largest > 1e-280 && largest < 1e280 && values[0] > largest/maxCondition
	}
	if sound {
		eigen.VectorsTo(g.basis)
		for k, v := range values {
			g.lengths[k] = math.Sqrt(v)
		}
	} else {
		fresh := newGaussian(g.mean, g.sigma)
		g.covariance, g.basis, g.lengths = fresh.covariance, fresh.basis, fresh.lengths
	}
	for k := range n {
		if d := g.deviation(k); d > maxDeviation {
			g.sigma *= maxDeviation / d
		}
	}
	g.sigma = max(g.sigma, 1e-12)
}

func norm(v []float64) float64 {
	square := 0.0
	for _, x := range v {
		square += x * x
	}
	return math.Sqrt(square)
}

// expectedNorm is the expected length of a standard normal vector.
func expectedNorm(n int) float64 {
	d := float64(n)
	return math.Sqrt(d) * (1 - 1/(4*d) + 1/(21*d*d))
}

// strategy is the numbers of the tutorial's table 1 for a population of the
// size on n axes.
type strategy struct {
	weights           []float64 // the positive ones sum to 1
	mass              float64   // μ_eff, the variance effective number of parents
	cSigma, dampSigma float64
	cPath, cOne, cMu  float64
}

func newStrategy(size, axes int) strategy {
	n := float64(max(axes, 1))
	s := strategy{weights: make([]float64, size)}
	var good, bad, goodSquares, badSquares float64
	for i := range size {
		w := math.Log(float64(size+1)/2) - math.Log(float64(i+1))
		s.weights[i] = w
		if w > 0 {
			good, goodSquares = good+w, goodSquares+w*w
		} else {
			bad, badSquares = bad-w, badSquares+w*w
		}
	}
	s.mass = good * good / goodSquares
	s.cSigma = (s.mass + 2) / (n + s.mass + 5)
	s.dampSigma = 1 + 2*max(0, math.Sqrt((s.mass-1)/(n+1))-1) + s.cSigma
	s.cPath = (4 + s.mass/n) / (n + 4 + 2*s.mass/n)
	s.cOne = 2 / ((n+1.3)*(n+1.3) + s.mass)
	s.cMu = min(1-s.cOne, 2*(0.25+s.mass+1/s.mass-2)/((n+2)*(n+2)+s.mass))
	negative := min(1+s.cOne/s.cMu, 1+2*(bad*bad/badSquares)/(s.mass+2), (1-s.cOne-s.cMu)/(n*s.cMu))
	for i, w := range s.weights {
		if w > 0 {
			s.weights[i] = w / good
		} else {
			s.weights[i] = negative * w / bad
		}
	}
	return s
}
