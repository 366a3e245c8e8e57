package surrogate

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
)

// Near returns a point that differs from the masked one in some coordinates, at
// least in one: numbers by a normal distribution of the width, ordinals by that
// or a neighbour, categoricals by any value. What the point lacks is drawn
// anew. The result is not masked.
func Near(dimensions []space.Dimension, from []float64, width float64, r *rand.Rand) []float64 {
	point := slices.Clone(from)
	chance := max(0.3, 2/float64(len(point)))
	must := r.IntN(len(point))
	for d, dimension := range dimensions {
		if math.IsNaN(point[d]) {
			point[d] = r.Float64()
			continue
		}
		if d != must && r.Float64() >= chance {
			continue
		}
		if dimension.Kind == space.Unordered {
			point[d] = r.Float64()
			continue
		}
		least := 0.0
		if dimension.Kind == space.Ordered {
			least = 0.7 / float64(dimension.Choices)
		}
		moved := point[d] + max(width, least)*r.NormFloat64()
		// Reflected at the ends, so that they draw no crowd.
		if moved < 0 {
			moved = -moved
		}
		if moved > 1 {
			moved = 2 - moved
		}
		point[d] = min(max(moved, 0), 1)
	}
	return point
}

// Settle masks the point and moves choices to the middle of their shares, so
// that equal ones have equal coordinates. It reports whether the point is
// allowed.
func Settle(cube *space.Cube, point []float64) bool {
	for d, dimension := range cube.Dimensions() {
		if dimension.Kind != space.Continuous {
			point[d] = dimension.Coordinate(dimension.Choice(point[d]))
		}
	}
	cube.Mask(point)
	return !cube.Forbids(point)
}
