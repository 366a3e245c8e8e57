package importance

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
)

// column is one parameter of all trials, in cells.
type column struct {
	// cell is each trial's cell; -1 where the parameter does not exist.
	cell []int
	// coordinate is the place of each cell's middle in [0, 1]; nil for a
	// parameter whose values have no distance.
	coordinate []float64
	cells      int
	all        []float64
	// share is the part of the trials that have the parameter.
	share float64
}

func newColumn(dimension space.Dimension, points [][]float64, d int) *column {
	c := &column{cell: make([]int, len(points)), cells: dimension.Choices}
	if dimension.Kind == space.Continuous {
		c.cells = cells
		for i := range cells {
			c.coordinate = append(c.coordinate, (float64(i)+0.5)/cells)
		}
	}
	everybody := make([]int, len(points))
	have := 0
	for i, point := range points {
		everybody[i], c.cell[i] = i, -1
		if u := point[d]; !math.IsNaN(u) {
			c.cell[i] = min(int(u*float64(c.cells)), c.cells-1)
			have++
		}
	}
	c.share = float64(have) / float64(len(points))
	c.all = c.density(everybody)
	return c
}

// divergence is the Pearson divergence of the set's density from everybody's.
func (c *column) divergence(set []int) float64 {
	some := c.density(set)
	if some == nil || c.all == nil {
		return 0
	}
	sum := 0.0
	for i, mass := range c.all {
		ratio := some[i]/mass - 1
		sum += ratio * ratio * mass
	}
	return sum * c.share
}

// density is the set's distribution over the cells, with one trial's weight
// spread evenly as a prior. It is nil for a set of fewer than two trials that
// have the parameter: nothing can be said then.
func (c *column) density(set []int) []float64 {
	counts := make([]float64, c.cells)
	have := 0
	for _, i := range set {
		if at := c.cell[i]; at >= 0 {
			counts[at]++
			have++
		}
	}
	if have < 2 {
		return nil
	}
	if c.coordinate != nil {
		counts = c.smooth(counts, have)
	}
	prior := 1 / float64(c.cells)
	for i := range counts {
		counts[i] = (counts[i] + prior) / float64(have+1)
	}
	return counts
}

// smooth spreads each count with a normal kernel of Scott's width, whose mass
// stays within the range.
func (c *column) smooth(counts []float64, have int) []float64 {
	kernel := kernelOf(c.width(counts, have))
	smooth := make([]float64, len(counts))
	for at, count := range counts {
		if count == 0 {
			continue
		}
		mass := 0.0
		for i := range smooth {
			mass += kernel[abs(i-at)]
		}
		for i := range smooth {
			smooth[i] += count * kernel[abs(i-at)] / mass
		}
	}
	return smooth
}

// kernelOf holds the kernel's height at each distance in cells.
func kernelOf(width float64) [cells]float64 {
	var kernel [cells]float64
	for distance := range kernel {
		z := float64(distance) / cells / width
		kernel[distance] = math.Exp(-z * z / 2)
	}
	return kernel
}

func abs(i int) int { return max(i, -i) }

// width is Scott's rule with the smaller of the deviation and the quartiles'
// distance, and never finer than the cells.
func (c *column) width(counts []float64, have int) float64 {
	mean, square := 0.0, 0.0
	for i, count := range counts {
		mean += count * c.coordinate[i]
		square += count * c.coordinate[i] * c.coordinate[i]
	}
	n := float64(have)
	mean /= n
	deviation := math.Sqrt(max(0, (square-n*mean*mean)/(n-1)))
	if quartiles := (c.quantile(counts, 0.75*n) - c.quantile(counts, 0.25*n)) / 1.34; quartiles > 0 {
		deviation = min(deviation, quartiles)
	}
	return max(1.059*deviation*math.Pow(n, -0.2), 1.0/cells)
}

// quantile is the coordinate below which the number of trials lies.
func (c *column) quantile(counts []float64, number float64) float64 {
	sum := 0.0
	at := slices.IndexFunc(counts, func(count float64) bool {
		sum += count
		return sum >= number
	})
	return c.coordinate[max(at, 0)]
}
