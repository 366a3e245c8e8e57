package surrogate

import (
	"math"

	"github.com/tandem-tune/tandem/study/space"
)

// absence is the squared distance between having a parameter and not having it,
// beside that of the value from the middle of the range.
const absence = 0.25

// kernel is Matérn's with smoothness 5/2 over a weighted distance in the unit
// cube. Numbers and ordinals differ by the distance of their coordinates,
// categoricals by 0 or 1 (Hamming). A parameter that does not exist stands in
// the middle of its range, with an indicator beside it; of a categorical it is
// one more value. All of these are distances between points of a Euclidean
// space, so that the kernel is positive definite.
type kernel struct {
	unordered []bool    // by dimension
	weights   []float64 // by dimension: 1/length²
	scale     float64   // variance
}

func newKernel(dimensions []space.Dimension, p Parameters) kernel {
	k := kernel{unordered: make([]bool, len(dimensions)), weights: make([]float64, len(dimensions)), scale: p.Scale}
	for d, dimension := range dimensions {
		k.unordered[d] = dimension.Kind == space.Unordered
		k.weights[d] = 1 / (p.Lengths[d] * p.Lengths[d])
	}
	return k
}

// between is the covariance of the function's values at two masked points.
func (k *kernel) between(a, b []float64) float64 {
	square := 0.0
	for d, weight := range k.weights {
		difference := a[d] - b[d]
		if k.unordered[d] || difference != difference {
			square += weight * distance(k.unordered[d], a[d], b[d])
			continue
		}
		square += weight * difference * difference
	}
	return k.scale * matern(square)
}

// distance is the squared distance of two coordinates, either of which may be
// missing. Equal choices have equal coordinates.
func distance(unordered bool, a, b float64) float64 {
	missing := 0
	if math.IsNaN(a) {
		a, missing = 0.5, missing+1
	}
	if math.IsNaN(b) {
		b, missing = 0.5, missing+1
	}
	switch {
	case missing == 2:
		return 0
	case unordered && missing == 0 && a == b:
		return 0
	case unordered:
		return 1
	case missing == 1:
		return (a-b)*(a-b) + absence
	}
	return (a - b) * (a - b)
}

// matern is the correlation at a squared distance.
func matern(square float64) float64 {
	s := math.Sqrt(5 * square)
	return (1 + s + s*s/3) * math.Exp(-s)
}
