// Package kde estimates densities by kernels, on the unit cube of a search space with
// numbers, ordinals and categoricals. The methods bohb and tpe draw from them.
package kde

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
)

const (
	// MaxObservations bounds the kernels of a density, and so the time of a
	// proposal, in studies of many thousand trials.
	MaxObservations = 128
	// Rounds is how often new candidates are drawn when all were forbidden,
	// tried before or close to trials that are out.
	Rounds = 3
)

// Density is a kernel density estimate on the unit cube: a mean of one product
// kernel for each observation, evaluated as a logarithm.
//
// A continuous dimension has a Gaussian kernel, cut off at 0 and 1 and
// normalised there; an unordered one that of Aitchison and Aitken (1976), an
// ordered one that of Wang and van Ryzin (1981), normalised over the values
// there are. Where an observation lacks a parameter, it says nothing about it:
// its kernel is uniform there. Where the point asked for lacks a parameter, the
// dimension is left out.
type Density struct {
	Dimensions []space.Dimension
	Bandwidth  []float64 // of each dimension; the kernel's λ for a discrete one
	N          int
	// centre holds n numbers for each dimension in turn, so that the inner
	// loops run over adjacent memory. A centre is a coordinate times the
	// dimension's sharpness, or a choice's index, or NaN. total is the
	// logarithm of what normalises the kernel over all dimensions.
	centre, total []float64
	sharpness     []float64 // 1/(√2 · bandwidth) of a continuous dimension
	gaps          []bool    // whether a dimension has a NaN centre
	// Buffers: of one column, and of the normalisers' product.
	column, product []float64
}

// Fit sets the bandwidths from the observations and places their kernels.
func (k *Density) Fit(dimensions []space.Dimension, points [][]float64) {
	k.Dimensions = dimensions
	k.Bandwidth = Grow(k.Bandwidth, len(dimensions))
	for d, dimension := range dimensions {
		k.column = k.column[:0]
		for _, point := range points {
			if u := point[d]; !math.IsNaN(u) {
				k.column = append(k.column, place(dimension, u))
			}
		}
		k.Bandwidth[d] = bandwidth(dimension, k.column, len(dimensions))
	}
	k.Place(points)
}

// Like places kernels of the bandwidths of another density.
func (k *Density) Like(other *Density, points [][]float64) {
	k.Dimensions, k.Bandwidth = other.Dimensions, other.Bandwidth
	k.Place(points)
}

// place is a coordinate as the kernels see it.
func place(d space.Dimension, u float64) float64 {
	if d.Kind == space.Continuous {
		return u
	}
	return float64(d.Choice(u))
}

func Grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (k *Density) Place(points [][]float64) {
	k.N = len(points)
	k.centre = Grow(k.centre, k.N*len(k.Dimensions))
	k.total = Grow(k.total, k.N)
	k.product = Grow(k.product, k.N)
	k.sharpness = Grow(k.sharpness, len(k.Dimensions))
	k.gaps = Grow(k.gaps, len(k.Dimensions))
	clear(k.total)
	for i := range k.product {
		k.product[i] = 1
	}
	for d, dimension := range k.Dimensions {
		k.sharpness[d] = 1
		if dimension.Kind == space.Continuous {
			k.sharpness[d] = 1 / (math.Sqrt2 * k.Bandwidth[d])
		}
		centre := k.centres(d)
		normaliser := newNormaliser(dimension, k.Bandwidth[d])
		k.gaps[d] = false
		for i, point := range points {
			u := point[d]
			if math.IsNaN(u) {
				centre[i], k.gaps[d] = u, true
				continue
			}
			at := place(dimension, u)
			centre[i] = at * k.sharpness[d]
			k.product[i] *= normaliser.inverse(at)
			if k.product[i] < 1e-200 || k.product[i] > 1e200 {
				k.total[i] -= math.Log(k.product[i])
				k.product[i] = 1
			}
		}
	}
	// One logarithm for all dimensions of a kernel, as they take their time.
	for i, product := range k.product {
		k.total[i] -= math.Log(product)
	}
}

func (k *Density) centres(d int) []float64 { return k.centre[d*k.N : (d+1)*k.N] }

// Kernels writes the logarithm of each observation's kernel at the masked
// point into sums, which has room for n.
func (k *Density) Kernels(point, sums []float64) {
	copy(sums, k.total)
	var four [4]int // dimensions that are evaluated together
	waiting := 0
	for d, dimension := range k.Dimensions {
		if math.IsNaN(point[d]) {
			k.leaveOut(d, sums)
			continue
		}
		at := place(dimension, point[d])
		switch {
		case dimension.Kind == space.Unordered:
			k.unordered(d, at, sums)
		case dimension.Kind == space.Ordered:
			k.ordered(d, at, sums)
		case k.gaps[d]:
			k.gaussian(d, at*k.sharpness[d], sums)
		default:
			four[waiting] = d
			if waiting++; waiting == len(four) {
				k.gaussians(four, point, sums)
				waiting = 0
			}
		}
	}
	for _, d := range four[:waiting] {
		k.gaussian(d, point[d]*k.sharpness[d], sums)
	}
}

// leaveOut takes a dimension's normalisers off the sums again.
func (k *Density) leaveOut(d int, sums []float64) {
	normaliser := newNormaliser(k.Dimensions[d], k.Bandwidth[d])
	for i, c := range k.centres(d) {
		if !math.IsNaN(c) {
			sums[i] += math.Log(normaliser.inverse(c / k.sharpness[d]))
		}
	}
}

// gaussians adds the exponents of four dimensions without gaps in one pass.
func (k *Density) gaussians(of [4]int, point, sums []float64) {
	a, b, c, d := k.centres(of[0]), k.centres(of[1]), k.centres(of[2]), k.centres(of[3])
	atA, atB := point[of[0]]*k.sharpness[of[0]], point[of[1]]*k.sharpness[of[1]]
	atC, atD := point[of[2]]*k.sharpness[of[2]], point[of[3]]*k.sharpness[of[3]]
	n := len(sums)
	if len(a) < n || len(b) < n || len(c) < n || len(d) < n {
		return // never; it spares the loop its checks of bounds
	}
	for i := range n {
		x, y, z, w := atA-a[i], atB-b[i], atC-c[i], atD-d[i]
		sums[i] -= (x*x + y*y) + (z*z + w*w)
	}
}

func (k *Density) gaussian(d int, at float64, sums []float64) {
	centre := k.centres(d)
	sums = sums[:len(centre)]
	if k.gaps[d] {
		for i, c := range centre {
			if !math.IsNaN(c) {
				sums[i] -= (at - c) * (at - c)
			}
		}
		return
	}
	for i, c := range centre {
		sums[i] -= (at - c) * (at - c)
	}
}

func (k *Density) unordered(d int, at float64, sums []float64) {
	centre := k.centres(d)
	choices := float64(k.Dimensions[d].Choices)
	same, different := math.Log1p(-k.Bandwidth[d]), math.Log(k.Bandwidth[d]/(choices-1))
	for i, c := range centre {
		switch {
		case c == at:
			sums[i] += same
		case math.IsNaN(c):
			sums[i] -= math.Log(choices)
		default:
			sums[i] += different
		}
	}
}

func (k *Density) ordered(d int, at float64, sums []float64) {
	centre := k.centres(d)
	λ := k.Bandwidth[d]
	same, different, ratio := math.Log1p(-λ), math.Log((1-λ)/2), math.Log(λ)
	for i, c := range centre {
		switch {
		case c == at:
			sums[i] += same
		case math.IsNaN(c):
			sums[i] -= math.Log(float64(k.Dimensions[d].Choices))
		default:
			sums[i] += different + math.Abs(at-c)*ratio
		}
	}
}

// negligible is the power of e below the largest one from which on a kernel is
// not worth adding: of as many as a density has, they change its sum by less
// than a millionth.
const negligible = -20

// LogMean is the logarithm of the mean of e to the given powers.
func LogMean(powers []float64) float64 {
	largest := math.Inf(-1)
	for _, p := range powers {
		if p > largest {
			largest = p
		}
	}
	if math.IsInf(largest, -1) {
		return largest
	}
	sum := 0.0
	for _, p := range powers {
		if p -= largest; p > negligible {
			sum += exponential(p)
		}
	}
	return largest + math.Log(sum/float64(len(powers)))
}

// exponential is e to the power of x between [negligible] and 0, to five
// digits: e^x = 2^k · e^r with a whole k and a small r, e^r as a polynomial. It
// is several times faster than the exact one, and a ratio of densities that
// were estimated from a few trials deserves no more digits.
func exponential(x float64) float64 {
	const whole = 3 << 51 // a float so large that adding it rounds to integers
	k := x*math.Log2E + whole
	r := x - (k-whole)*math.Ln2
	square := r * r
	p := (1 + r) + square*((1./2+r*(1./6))+square*(1./24+r*(1./120)))
	return p * math.Float64frombits((math.Float64bits(k)+1023)<<52)
}

// Draw fills the point with a draw from the kernel of a random observation,
// continuous bandwidths being widened by the factor; the point is not masked.
func (k *Density) Draw(r *rand.Rand, widen float64, point []float64) {
	k.DrawFrom(r, r.IntN(k.N), widen, point)
}

// DrawFrom is draw from the kernel of the given observation.
func (k *Density) DrawFrom(r *rand.Rand, i int, widen float64, point []float64) {
	for d, dimension := range k.Dimensions {
		centre := k.centres(d)
		switch c := centre[i]; {
		case math.IsNaN(c):
			point[d] = r.Float64()
		case dimension.Kind == space.Continuous:
			point[d] = drawGaussian(r, c/k.sharpness[d], widen*k.Bandwidth[d])
		case dimension.Kind == space.Unordered:
			point[d] = dimension.Coordinate(drawUnordered(r, int(c), dimension.Choices, k.Bandwidth[d]))
		default:
			point[d] = dimension.Coordinate(drawOrdered(r, int(c), dimension.Choices, k.Bandwidth[d]))
		}
	}
}

// Candidate is a draw from the good density.
type Candidate struct {
	Point []float64
	Ratio float64
}

// SortCandidates sorts candidates by their ratios; of equals the earlier drawn is first.
func SortCandidates(list []Candidate) {
	slices.SortStableFunc(list, func(x, y Candidate) int { return cmp.Compare(y.Ratio, x.Ratio) })
}
