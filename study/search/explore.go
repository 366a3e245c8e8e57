package search

import (
	"encoding/json"
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/space"
)

// explore returns the parent's configuration with what a running training can
// change moved a little: each number by a factor of 0.8 or 1.2, each ordinal by
// one value, or, with a chance of one in four, drawn anew like a categorical
// that changes. What belongs to the model stays, because the parent's
// checkpoint has that shape.
func explore(h *history, s space.Space, parent int, r *rand.Rand) space.Configuration {
	free := explorable(s)
	from := h.points[parent]
	point := make([]float64, len(from))
	var theirs space.Configuration
	if json.Unmarshal(h.trials[parent].Params, &theirs) != nil { // it was written here, or checked
		theirs = h.cube.Decode(from)
	}
	allowed := theirs // where nothing near is
	for range redraws {
		for i, d := range h.cube.Dimensions() {
			switch u := from[i]; {
			case math.IsNaN(u): // the parent lacks it; so does the child, unless what it depends on changes
				point[i] = r.Float64()
			case !free[i]:
				point[i] = u
			default:
				point[i] = moved(h.cube, i, d, u, r)
			}
		}
		h.cube.Mask(point)
		if h.cube.Forbids(point) {
			continue
		}
		allowed = h.cube.Decode(point)
		for i, d := range h.cube.Dimensions() {
			if value, has := theirs[d.Name]; has && !free[i] {
				allowed[d.Name] = value // to the last bit
			}
		}
		if !h.taken[allowed.Key()] {
			break
		}
	}
	return allowed
}

// moved is a coordinate near u, or anywhere.
func moved(c *space.Cube, i int, d space.Dimension, u float64, r *rand.Rand) float64 {
	again, up := r.Float64() < exploreDraw, r.Float64() < 0.5
	switch {
	case again:
		return r.Float64()
	case d.Kind == space.Unordered:
		return u
	case d.Kind == space.Ordered && up:
		return d.Coordinate(min(d.Choice(u)+1, d.Choices-1))
	case d.Kind == space.Ordered:
		return d.Coordinate(max(d.Choice(u)-1, 0))
	case up:
		return c.Scaled(i, u, exploreUp)
	}
	return c.Scaled(i, u, exploreDown)
}

// explorable says of each parameter whether a training that goes on from a
// checkpoint may change it: the training's and the system's, unless it decides
// which of the others exist.
func explorable(s space.Space) []bool {
	free := make([]bool, len(s.Parameters))
	holds := map[string]bool{} // parameters that decide on one that must stay
	for i := len(s.Parameters) - 1; i >= 0; i-- {
		p := s.Parameters[i]
		free[i] = (p.Kind == space.Training || p.Kind == space.System) && !holds[p.Name]
		if free[i] {
			continue
		}
		for _, condition := range p.When {
			holds[condition.Parameter] = true
		}
	}
	return free
}
