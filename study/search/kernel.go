package search

import (
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/space"
)

// minBandwidth keeps a kernel from collapsing onto observations that agree in
// a dimension (BOHB's default).
const minBandwidth = 1e-3

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
			return minBandwidth
		}
		return min(max(factor*disagreement(column, dimension.Choices), minBandwidth), 1-1/choices)
	case space.Ordered:
		return spread(factor * deviation(column, choices))
	}
	return max(factor*deviation(column, 1), minBandwidth)
}

// spread is the λ with which an ordered kernel has the standard deviation,
// counted in values. Its two-sided geometric distribution has the variance
// λ(1+λ)/(1-λ)²; this is the inverse.
func spread(deviation float64) float64 {
	square := deviation * deviation
	λ := 2 * square / (1 + 2*square + math.Sqrt(1+8*square))
	return min(max(λ, minBandwidth), 1-minBandwidth)
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

// normaliser computes the logarithm of the factor that makes a kernel with its
// centre near the border integrate (or sum) to one.
type normaliser struct {
	kind      space.DimensionKind
	choices   float64
	bandwidth float64
	scale     float64
}

func newNormaliser(d space.Dimension, bandwidth float64) normaliser {
	n := normaliser{kind: d.Kind, choices: float64(d.Choices), bandwidth: bandwidth}
	if d.Kind == space.Continuous {
		n.scale = math.Log(bandwidth * math.Sqrt(2*math.Pi))
	}
	return n
}

func (n normaliser) at(centre float64) float64 {
	switch n.kind {
	case space.Continuous:
		return -n.scale - math.Log(mass(centre, n.bandwidth))
	case space.Ordered:
		λ := n.bandwidth
		below, above := 1-math.Pow(λ, centre), 1-math.Pow(λ, n.choices-1-centre)
		return -math.Log(1 - λ + λ*(below+above)/2)
	}
	return 0
}

// mass is the share of a Gaussian that lies within [0, 1].
func mass(centre, bandwidth float64) float64 {
	s := bandwidth * math.Sqrt2
	return (math.Erf((1-centre)/s) + math.Erf(centre/s)) / 2
}

// drawGaussian draws from the Gaussian, cut off at 0 and 1, by inversion.
func drawGaussian(r *rand.Rand, centre, bandwidth float64) float64 {
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
	total := math.Exp(-normaliser{kind: space.Ordered, choices: float64(choices), bandwidth: λ}.at(float64(centre)))
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
