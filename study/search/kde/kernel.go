package kde

import (
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/space"
)

// minBandwidth keeps a kernel from collapsing onto observations that agree in
// a dimension: that of a number, as a share of its range. BOHB's reference
// implementation has 0.001 for all; narrower kernels than ours draw nothing but
// what was tried already.
const (
	minBandwidth       = 0.03
	MinChoiceBandwidth = 1e-3
)

// bandwidth is the normal-reference rule, 1.06 · σ · n^(-1/(4+d)), for the
// observations of one dimension of d. A discrete dimension's result is the λ of
// its kernel: the share an unordered value gives away, and the λ with which an
// ordered kernel has that standard deviation, counted in values.
func bandwidth(dimension space.Dimension, column []float64, dimensions int) float64 {
	factor := 1.06 * math.Pow(float64(max(len(column), 1)), -1/float64(4+dimensions))
	choices := float64(dimension.Choices)
	switch dimension.Kind {
	case space.Unordered:
		if dimension.Choices < 2 {
			return MinChoiceBandwidth
		}
		return min(max(factor*disagreement(column, dimension.Choices), MinChoiceBandwidth), 1-1/choices)
	case space.Ordered:
		return Spread(factor * deviation(column, choices))
	}
	return max(factor*deviation(column, 1), minBandwidth)
}

// Spread is the λ with which an ordered kernel has the standard deviation,
// counted in values. Its two-sided geometric distribution has the variance
// λ(1+λ)/(1-λ)²; this is the inverse.
func Spread(deviation float64) float64 {
	square := deviation * deviation
	λ := 2 * square / (1 + 2*square + math.Sqrt(1+8*square))
	return min(max(λ, MinChoiceBandwidth), 1-MinChoiceBandwidth)
}

// deviation is the standard deviation; of fewer than two observations that of
// a uniform distribution over the width.
func deviation(column []float64, width float64) float64 {
	if len(column) < 2 {
		return width / math.Sqrt(12)
	}
	n, mean, square := float64(len(column)), 0.0, 0.0
	for _, x := range column {
		mean += x / n
	}
	for _, x := range column {
		square += (x - mean) * (x - mean) / n
	}
	return math.Sqrt(square)
}

// disagreement is the standard deviation's counterpart for values without an
// order: the root of half the chance that two observations differ. For two
// values it is their standard deviation as 0 and 1, and it does not depend on
// how more of them are numbered.
func disagreement(column []float64, choices int) float64 {
	if len(column) < 2 {
		return math.Sqrt((1 - 1/float64(choices)) / 2)
	}
	counts := make([]float64, choices)
	for _, c := range column {
		counts[int(c)]++
	}
	agree := 0.0
	for _, count := range counts {
		share := count / float64(len(column))
		agree += share * share
	}
	return math.Sqrt(max(1-agree, 0) / 2)
}

// normaliser computes by what a kernel with its centre near the border must be
// divided to integrate (or sum) to one.
type normaliser struct {
	kind      space.DimensionKind
	choices   float64
	bandwidth float64
	scale     float64
}

func newNormaliser(d space.Dimension, bandwidth float64) normaliser {
	return normaliser{kind: d.Kind, choices: float64(d.Choices), bandwidth: bandwidth, scale: bandwidth * math.Sqrt(2*math.Pi)}
}

func (n normaliser) inverse(centre float64) float64 {
	switch n.kind {
	case space.Continuous:
		return n.scale * mass(centre, n.bandwidth)
	case space.Ordered:
		λ := n.bandwidth
		below, above := 1-math.Pow(λ, centre), 1-math.Pow(λ, n.choices-1-centre)
		return 1 - λ + λ*(below+above)/2
	}
	return 1
}

// mass is the share of a Gaussian that lies within [0, 1].
func mass(centre, bandwidth float64) float64 {
	s := 1 / (bandwidth * math.Sqrt2)
	return 1 - (beyond((1-centre)*s)+beyond(centre*s))/2
}

// beyond is the complementary error function of x ≥ 0 to five digits, after
// the fifth-degree approximation of Abramowitz and Stegun (1964, 7.1.26).
func beyond(x float64) float64 {
	if x > 4 {
		return 0
	}
	t := 1 / (1 + 0.3275911*x)
	polynomial := t * (0.254829592 + t*(-0.284496736+t*(1.421413741+t*(-1.453152027+t*1.061405429))))
	return polynomial * exponential(-x*x)
}

// drawGaussian draws from the Gaussian, cut off at 0 and 1: by drawing again
// what falls outside and, where most does, by inversion.
func drawGaussian(r *rand.Rand, centre, bandwidth float64) float64 {
	for range 8 {
		if u := centre + bandwidth*r.NormFloat64(); u >= 0 && u <= 1 {
			return u
		}
	}
	s := bandwidth * math.Sqrt2
	low, high := math.Erf(-centre/s), math.Erf((1-centre)/s)
	return min(max(centre+s*math.Erfinv(low+(high-low)*r.Float64()), 0), 1)
}

// drawUnordered keeps the centre with 1-λ, and else takes any other value.
func drawUnordered(r *rand.Rand, centre, choices int, λ float64) int {
	if choices < 2 || r.Float64() >= λ {
		return centre
	}
	other := r.IntN(choices - 1)
	if other >= centre {
		other++
	}
	return other
}

// drawOrdered walks outward from the centre until the draw is used up.
func drawOrdered(r *rand.Rand, centre, choices int, λ float64) int {
	total := normaliser{kind: space.Ordered, choices: float64(choices), bandwidth: λ}.inverse(float64(centre))
	left := r.Float64()*total - (1 - λ)
	weight := (1 - λ) / 2
	for step := 1; left >= 0 && step < choices; step++ {
		weight *= λ
		for _, choice := range [2]int{centre - step, centre + step} {
			if choice < 0 || choice >= choices {
				continue
			}
			if left -= weight; left < 0 {
				return choice
			}
		}
	}
	return centre
}
