package search

import (
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/space"
)

// density is a kernel density estimate on the unit cube: a mean of one product
// kernel for each observation, evaluated as a logarithm.
//
// A continuous dimension has a Gaussian kernel, cut off at 0 and 1 and
// normalised there; an unordered one that of Aitchison and Aitken (1976), an
// ordered one that of Wang and van Ryzin (1981), normalised over the values
// there are. Where an observation lacks a parameter, it says nothing about it:
// its kernel is uniform there. Where the point asked for lacks a parameter, the
// dimension is left out.
type density struct {
	dimensions []space.Dimension
	bandwidth  []float64 // of each dimension; the kernel's λ for a discrete one
	n          int
	// centre and offset hold n numbers for each dimension in turn, so that the
	// inner loops run over adjacent memory. A centre is a coordinate times the
	// dimension's sharpness, or a choice's index, or NaN; an offset is the
	// logarithm of what normalises, and total the sum over the dimensions.
	centre, offset, total []float64
	sharpness             []float64 // 1/(√2 · bandwidth) of a continuous dimension
	gaps                  []bool    // whether a dimension has a NaN centre
}

// fit sets the bandwidths from the observations and places their kernels.
func (k *density) fit(dimensions []space.Dimension, points [][]float64) {
	k.dimensions = dimensions
	k.bandwidth = grow(k.bandwidth, len(dimensions))
	column := make([]float64, 0, len(points))
	for d, dimension := range dimensions {
		column = column[:0]
		for _, point := range points {
			if u := point[d]; !math.IsNaN(u) {
				column = append(column, place(dimension, u))
			}
		}
		k.bandwidth[d] = bandwidth(dimension, column, len(dimensions))
	}
	k.place(points)
}

// like places kernels of the bandwidths of another density.
func (k *density) like(other *density, points [][]float64) {
	k.dimensions, k.bandwidth = other.dimensions, other.bandwidth
	k.place(points)
}

// place is a coordinate as the kernels see it.
func place(d space.Dimension, u float64) float64 {
	if d.Kind == space.Continuous {
		return u
	}
	return float64(d.Choice(u))
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (k *density) place(points [][]float64) {
	k.n = len(points)
	k.centre = grow(k.centre, k.n*len(k.dimensions))
	k.offset = grow(k.offset, k.n*len(k.dimensions))
	k.total = grow(k.total, k.n)
	k.sharpness = grow(k.sharpness, len(k.dimensions))
	k.gaps = grow(k.gaps, len(k.dimensions))
	clear(k.total)
	for d, dimension := range k.dimensions {
		k.sharpness[d] = 1
		if dimension.Kind == space.Continuous {
			k.sharpness[d] = 1 / (math.Sqrt2 * k.bandwidth[d])
		}
		centre, offset := k.column(d)
		normaliser := newNormaliser(dimension, k.bandwidth[d])
		k.gaps[d] = false
		for i, point := range points {
			u := point[d]
			if math.IsNaN(u) {
				centre[i], offset[i], k.gaps[d] = u, 0, true
				continue
			}
			at := place(dimension, u)
			centre[i], offset[i] = at*k.sharpness[d], normaliser.at(at)
			k.total[i] += offset[i]
		}
	}
}

func (k *density) column(d int) (centre, offset []float64) {
	return k.centre[d*k.n : (d+1)*k.n], k.offset[d*k.n : (d+1)*k.n]
}

// kernels writes the logarithm of each observation's kernel at the masked
// point into sums, which has room for n.
func (k *density) kernels(point, sums []float64) {
	copy(sums, k.total)
	for d, dimension := range k.dimensions {
		if math.IsNaN(point[d]) {
			_, offset := k.column(d)
			for i := range sums {
				sums[i] -= offset[i]
			}
			continue
		}
		at := place(dimension, point[d])
		switch dimension.Kind {
		case space.Continuous:
			k.gaussian(d, at*k.sharpness[d], sums)
		case space.Unordered:
			k.unordered(d, at, sums)
		case space.Ordered:
			k.ordered(d, at, sums)
		}
	}
}

func (k *density) gaussian(d int, at float64, sums []float64) {
	centre, _ := k.column(d)
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

func (k *density) unordered(d int, at float64, sums []float64) {
	centre, _ := k.column(d)
	choices := float64(k.dimensions[d].Choices)
	same, different := math.Log1p(-k.bandwidth[d]), math.Log(k.bandwidth[d]/(choices-1))
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

func (k *density) ordered(d int, at float64, sums []float64) {
	centre, _ := k.column(d)
	λ := k.bandwidth[d]
	same, different, ratio := math.Log1p(-λ), math.Log((1-λ)/2), math.Log(λ)
	for i, c := range centre {
		switch {
		case c == at:
			sums[i] += same
		case math.IsNaN(c):
			sums[i] -= math.Log(float64(k.dimensions[d].Choices))
		default:
			sums[i] += different + math.Abs(at-c)*ratio
		}
	}
}

// logMean is the logarithm of the mean of e to the given powers.
func logMean(powers []float64) float64 {
	largest := math.Inf(-1)
	for _, p := range powers {
		largest = max(largest, p)
	}
	if math.IsInf(largest, -1) {
		return largest
	}
	sum := 0.0
	for _, p := range powers {
		// Even a million of e^-45 do not change the sum's last bit.
		if p > largest-45 {
			sum += math.Exp(p - largest)
		}
	}
	return largest + math.Log(sum/float64(len(powers)))
}

// draw fills the point with a draw from the kernel of a random observation,
// continuous bandwidths being widened by the factor; the point is not masked.
func (k *density) draw(r *rand.Rand, widen float64, point []float64) {
	k.drawFrom(r, r.IntN(k.n), widen, point)
}

// drawFrom is draw from the kernel of the given observation.
func (k *density) drawFrom(r *rand.Rand, i int, widen float64, point []float64) {
	for d, dimension := range k.dimensions {
		centre, _ := k.column(d)
		switch c := centre[i]; {
		case math.IsNaN(c):
			point[d] = r.Float64()
		case dimension.Kind == space.Continuous:
			point[d] = drawGaussian(r, c/k.sharpness[d], widen*k.bandwidth[d])
		case dimension.Kind == space.Unordered:
			point[d] = dimension.Coordinate(drawUnordered(r, int(c), dimension.Choices, k.bandwidth[d]))
		default:
			point[d] = dimension.Coordinate(drawOrdered(r, int(c), dimension.Choices, k.bandwidth[d]))
		}
	}
}
