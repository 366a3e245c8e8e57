package importance

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
)

// maxBins is into how many parts a parameter is divided for a forest: a set of
// them fits in a word.
const maxBins = 64

// missing is the bin of a parameter that does not exist.
const missing = math.MaxUint8

// binSet is a set of bins.
type binSet = uint64

// axis divides one parameter's values into bins.
type axis struct {
	dimension space.Dimension
	// edges are the upper ends of the bins of a parameter with an order, but the last.
	edges []float64
	// of is the bin of each choice of a parameter without one. The last bin
	// holds what was seldom or never tried, once there are too many choices.
	of []uint8
	// weights is each bin's part of the range: what a value drawn evenly falls into.
	weights []float64
	// needs are the conditions under which the parameter exists.
	needs []need
}

// need is a condition in bins.
type need struct {
	parameter int
	in        binSet
}

// newAxes divides all parameters by where the points are.
func newAxes(s space.Space, cube *space.Cube, points [][]float64) []axis {
	axes := make([]axis, len(s.Parameters))
	index := make(map[string]int, len(s.Parameters))
	for d, dimension := range cube.Dimensions() {
		index[dimension.Name] = d
		present := make([]float64, 0, len(points))
		for _, point := range points {
			if !math.IsNaN(point[d]) {
				present = append(present, point[d])
			}
		}
		axes[d] = axis{dimension: dimension}
		if dimension.Kind == space.Unordered {
			axes[d].choices(present)
		} else {
			axes[d].divide(present)
		}
		for _, condition := range s.Parameters[d].When {
			parent := index[condition.Parameter]
			var in binSet
			for _, value := range condition.In {
				point := cube.Encode(space.Configuration{condition.Parameter: value})
				in |= 1 << axes[parent].bin(point[parent])
			}
			axes[d].needs = append(axes[d].needs, need{parameter: parent, in: in})
		}
	}
	return axes
}

// divide sets edges half-way between neighbouring values, all of them if they
// are few, else so that the bins hold equally many.
func (a *axis) divide(values []float64) {
	slices.Sort(values)
	distinct := slices.Compact(slices.Clone(values))
	for i := 1; i < len(distinct) && len(distinct) <= maxBins; i++ {
		a.edges = append(a.edges, (distinct[i-1]+distinct[i])/2)
	}
	for i := 1; i < maxBins && len(distinct) > maxBins; i++ {
		at := i * len(values) / maxBins
		for at < len(values) && values[at-1] == values[at] { // equal values stay together
			at++
		}
		if at < len(values) {
			a.edges = append(a.edges, (values[at-1]+values[at])/2)
		}
	}
	a.edges = slices.Compact(a.edges)
	before := 0.0
	for _, edge := range append(slices.Clone(a.edges), 1) {
		a.weights = append(a.weights, edge-before)
		before = edge
	}
}

// choices gives a bin to each choice, the most frequent first if there are more
// choices than bins.
func (a *axis) choices(values []float64) {
	counts := make([]int, a.dimension.Choices)
	order := make([]int, a.dimension.Choices)
	for _, u := range values {
		counts[a.dimension.Choice(u)]++
	}
	for i := range order {
		order[i] = i
	}
	if len(order) > maxBins {
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(counts[j], counts[i]) })
	}
	a.of, a.weights = make([]uint8, len(order)), make([]float64, min(len(order), maxBins))
	for place, choice := range order {
		bin := min(place, maxBins-1)
		a.of[choice] = uint8(bin)
		a.weights[bin] += 1 / float64(len(order))
	}
}

// bin is where a coordinate falls.
func (a *axis) bin(u float64) uint8 {
	switch {
	case math.IsNaN(u):
		return missing
	case a.of != nil:
		return a.of[a.dimension.Choice(u)]
	}
	at, _ := slices.BinarySearch(a.edges, u)
	return uint8(at)
}

// all is the set of all bins.
func (a *axis) all() binSet {
	return ^binSet(0) >> (maxBins - len(a.weights))
}

// weight is the part of the range that the bins take.
func (a *axis) weight(set binSet) float64 {
	if set == a.all() {
		return 1
	}
	sum := 0.0
	for rest := set; rest != 0; rest &= rest - 1 {
		bin := bits.TrailingZeros64(rest)
		sum += a.weights[bin]
	}
	return sum
}
