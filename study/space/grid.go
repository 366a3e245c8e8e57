package space

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
)

// MaxGrid bounds how many combinations a grid may have.
const MaxGrid = 100_000

// Grid is a finite, regular selection of a space's configurations, addressed
// by an index in [0, Len).
type Grid struct {
	cube *Cube
	axes [][]float64 // the coordinates of each parameter
	len  int
}

// Grid returns the space's grid: every value of a categorical or an ordinal,
// and up to points values of a number, evenly spaced on its scale with both
// ends included (an int or a float with a step never has a value twice). The
// error, [problem.Invalid], says that the grid has more than [MaxGrid]
// combinations. The space must be valid and points at least 1.
func (s Space) Grid(points int) (Grid, error) {
	cube := s.Cube()
	g := Grid{cube: cube, axes: make([][]float64, len(cube.dimensions)), len: 1}
	combinations := 1.0
	for i, d := range cube.dimensions {
		if d.Kind == Continuous {
			g.axes[i] = cube.scales[i].spread(min(points, MaxGrid+1))
		} else {
			for choice := range d.Choices {
				g.axes[i] = append(g.axes[i], d.Coordinate(choice))
			}
		}
		combinations *= float64(len(g.axes[i]))
	}
	if combinations > MaxGrid {
		return Grid{}, problem.New(problem.Invalid,
			"the grid has %.4g combinations, more than %d: use fewer grid points or values, or another search method", combinations, MaxGrid)
	}
	g.len = int(combinations)
	return g, nil
}

// Len is the number of combinations, among them those that At leaves out.
func (g Grid) Len() int { return g.len }

// Count is how many configurations it has.
func (g Grid) Count() int {
	if len(g.cube.forbidden) == 0 && !slices.ContainsFunc(g.cube.when, func(links []link) bool { return len(links) > 0 }) {
		return g.len
	}
	count := 0
	for i := range g.len {
		if g.point(i) != nil {
			count++
		}
	}
	return count
}

// At returns the configuration with the index, the last parameter changing
// fastest. It answers false for a forbidden combination, and for one that
// differs from another only in parameters that do not exist in it.
func (g Grid) At(index int) (Configuration, bool) {
	point := g.point(index)
	if point == nil {
		return nil, false
	}
	return g.cube.Decode(point), true
}

// point is the masked point of the configuration with the index; nil where At has none.
func (g Grid) point(index int) []float64 {
	if index < 0 || index >= g.len {
		return nil
	}
	point := make([]float64, len(g.axes))
	first := make([]bool, len(g.axes))
	for i := len(g.axes) - 1; i >= 0; i-- {
		n := len(g.axes[i])
		point[i], first[i] = g.axes[i][index%n], index%n == 0
		index /= n
	}
	g.cube.Mask(point)
	for i, u := range point {
		// Of all that agree where a parameter is absent, one stands for them.
		if math.IsNaN(u) && !first[i] {
			return nil
		}
	}
	if g.cube.Forbids(point) {
		return nil
	}
	return point
}
