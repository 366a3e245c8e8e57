package propose

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/space"
)

// crowdDistance is how close in every number two trials are near-duplicates,
// as a share of the numbers' ranges.
const crowdDistance = 0.01

// Fresh returns the configuration at the masked, allowed point, unless it was
// tried before or is a near-duplicate of a pending trial.
func Fresh(h *ladder.History, point []float64) (space.Configuration, bool) {
	configuration := h.Cube.Decode(point)
	if h.Taken[configuration.Key()] {
		return configuration, false
	}
	// The point of the configuration that comes of it: of all points that mean
	// the same whole number, only one is compared.
	return configuration, !crowded(h, h.Pending(), h.Cube.Encode(configuration))
}

// crowded reports whether a pending trial is a near-duplicate of the masked
// point: the same choices, and no number further away than crowdDistance. Where
// the pending trials would then take up more than a quarter of the space, the
// distance is as much smaller.
func crowded(h *ladder.History, pending []int, point []float64) bool {
	numbers := 0
	for d, dimension := range h.Cube.Dimensions() {
		if dimension.Kind == space.Continuous && !math.IsNaN(point[d]) {
			numbers++
		}
	}
	if numbers == 0 {
		return false
	}
	share := 0.25 / float64(len(pending)+1)
	distance := min(crowdDistance, math.Pow(share, 1/float64(numbers))/2)
	return slices.ContainsFunc(pending, func(number int) bool { return near(h.Cube.Dimensions(), h.Points[number], point, distance) })
}

func near(dimensions []space.Dimension, a, b []float64, distance float64) bool {
	for d, dimension := range dimensions {
		switch {
		case math.IsNaN(a[d]) != math.IsNaN(b[d]):
			return false
		case math.IsNaN(a[d]):
		case dimension.Kind != space.Continuous && dimension.Choice(a[d]) != dimension.Choice(b[d]):
			return false
		case dimension.Kind == space.Continuous && math.Abs(a[d]-b[d]) > distance:
			return false
		}
	}
	return true
}
