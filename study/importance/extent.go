package importance

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/study/correlation"
	"github.com/tandem-tune/tandem/study/space"
)

const (
	// shuffles is how many random orders the association of a parameter with the
	// score is compared with.
	shuffles = 400
	// levels is into how many groups of equal size a number is divided for that.
	levels = 5
)

// Extent is how far the score varies with one parameter alone: the lowest and
// the highest mean of the forest's prediction at its values, over configurations
// of all others drawn evenly from the space.
type Extent struct {
	Parameter       string
	Lowest, Highest float64
	// LowestAt and HighestAt are values at which that is so; of a number, one in
	// the middle of the part of its range that is predicted alike.
	LowestAt, HighestAt space.Value
}

// Variation is the distance between the ends, in parts of the one that is
// further from 0: 0.2 if the lowest of some seconds is a fifth below the highest.
func (e Extent) Variation() float64 {
	size := max(math.Abs(e.Lowest), math.Abs(e.Highest))
	if size == 0 {
		return 0
	}
	return (e.Highest - e.Lowest) / size
}

// Extents are those of all parameters, in the order of the space. They come from
// the same leaves as [Forest.Variance]. A conditional parameter counts where it
// exists; elsewhere it does nothing.
func (f *Forest) Extents() []Extent {
	sums := make([][]float64, len(f.axes))
	for d := range f.axes {
		sums[d] = make([]float64, len(f.axes[d].weights))
	}
	for _, one := range f.trees {
		parts := f.boxes(one)
		for d := range f.axes {
			for bin, mean := range parts.marginal(d) {
				sums[d][bin] += (parts.mean + mean) / float64(len(f.trees))
			}
		}
	}
	list := make([]Extent, len(f.axes))
	for d := range f.axes {
		low, high := place(sums[d], false), place(sums[d], true)
		list[d] = Extent{
			Parameter: f.axes[d].dimension.Name, Lowest: sums[d][low], Highest: sums[d][high],
			LowestAt: f.valueIn(d, low), HighestAt: f.valueIn(d, high),
		}
	}
	return list
}

// place is where the smallest or the largest of the means is; of equal ones in a
// row, the middle of the first row.
func place(means []float64, largest bool) int {
	first := 0
	for i, mean := range means {
		if largest && mean > means[first] || !largest && mean < means[first] {
			first = i
		}
	}
	last := first
	for last+1 < len(means) && means[last+1] == means[first] {
		last++
	}
	return (first + last) / 2
}

// valueIn is the value in the middle of a parameter's bin.
func (f *Forest) valueIn(parameter, bin int) space.Value {
	a := f.axes[parameter]
	u := 0.0
	if a.of != nil {
		u = a.dimension.Coordinate(max(0, slices.Index(a.of, uint8(bin))))
	} else {
		low, high := 0.0, 1.0
		if bin > 0 {
			low = a.edges[bin-1]
		}
		if bin < len(a.edges) {
			high = a.edges[bin]
		}
		u = (low + high) / 2
	}
	point := make([]float64, len(f.axes))
	for d := range point {
		point[d] = math.NaN()
	}
	point[parameter] = u
	return f.cube.Decode(point)[a.dimension.Name]
}

// Chances are, in the order of the space's parameters, the probabilities that
// the scores differ as much between a parameter's values if it had nothing to do
// with them: the statistic of Kruskal and Wallis (1952) over its categories, or
// over fifths of a number, compared with random orders of the scores. It is 1
// for a parameter that did not vary.
func Chances(s space.Space, observations []Observation) []float64 {
	observations = drawn(observations, maxUsed)
	cube := s.Cube()
	points := make([][]float64, len(observations))
	for i, observation := range observations {
		points[i] = cube.Encode(observation.Configuration)
	}
	chances := make([]float64, len(s.Parameters))
	for d, dimension := range cube.Dimensions() {
		var coordinates, scores []float64
		for i, point := range points {
			if !math.IsNaN(point[d]) {
				coordinates, scores = append(coordinates, point[d]), append(scores, observations[i].Score)
			}
		}
		chances[d] = chanceOf(grouped(dimension, coordinates), correlation.Ranks(scores))
	}
	return chances
}

// grouped is the group of each coordinate.
func grouped(dimension space.Dimension, coordinates []float64) []int {
	groups := make([]int, len(coordinates))
	if dimension.Kind == space.Unordered {
		for i, u := range coordinates {
			groups[i] = dimension.Choice(u)
		}
		return groups
	}
	sorted := slices.Clone(coordinates)
	slices.Sort(sorted)
	for i, u := range coordinates {
		at, _ := slices.BinarySearch(sorted, u) // equal values stay together
		groups[i] = at * levels / max(1, len(sorted))
	}
	return groups
}

// chanceOf is the share of random orders in which the groups differ at least as
// much, always the same orders.
func chanceOf(groups []int, places []float64) float64 {
	if len(groups) == 0 || slices.Min(groups) == slices.Max(groups) {
		return 1
	}
	found, as := apart(groups, places), 1
	random := rand.New(rand.NewPCG(seed, uint64(len(places))))
	mixed := slices.Clone(places)
	for range shuffles {
		random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if apart(groups, mixed) >= found*(1-rounding) {
			as++
		}
	}
	return float64(as) / (shuffles + 1)
}

// apart is how far the groups' mean places are apart: the statistic, up to what
// does not depend on the order.
func apart(groups []int, places []float64) float64 {
	last := slices.Max(groups)
	sums, counts := make([]float64, last+1), make([]float64, last+1)
	middle := float64(len(places)+1) / 2
	for i, group := range groups {
		sums[group] += places[i] - middle
		counts[group]++
	}
	total := 0.0
	for group, sum := range sums {
		if counts[group] > 0 {
			total += sum * sum / counts[group]
		}
	}
	return total
}
