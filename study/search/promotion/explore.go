package promotion

import (
	"encoding/json"
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
)

// Explore returns the parent's configuration with what a running training can
// change moved a little: each number by a factor of 0.8 or 1.2, each ordinal by
// one value, or, with a chance of one in four, drawn anew like a categorical
// that changes. What belongs to the model stays, because the parent's
// checkpoint has that shape.
func Explore(h *ladder.History, s space.Space, parent int, r *rand.Rand) space.Configuration {
	free := Explorable(s)
	from := h.Points[parent]
	point := make([]float64, len(from))
	var theirs space.Configuration
	if json.Unmarshal(h.Trials[parent].Params, &theirs) != nil { // it was written here, or checked
		theirs = h.Cube.Decode(from)
	}
	allowed := theirs // where nothing near is
	for range propose.Redraws {
		for i, d := range h.Cube.Dimensions() {
			switch u := from[i]; {
			case math.IsNaN(u): // the parent lacks it; so does the child, unless what it depends on changes
				point[i] = r.Float64()
			case !free[i]:
				point[i] = u
			default:
				point[i] = moved(h.Cube, i, d, u, r)
			}
		}
		h.Cube.Mask(point)
		if h.Cube.Forbids(point) {
			continue
		}
		allowed = h.Cube.Decode(point)
		for i, d := range h.Cube.Dimensions() {
			if value, has := theirs[d.Name]; has && !free[i] {
				allowed[d.Name] = value // to the last bit
			}
		}
		if !h.Taken[allowed.Key()] {
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

// Explorable says of each parameter whether a training that goes on from a
// checkpoint may change it: the training's and the system's, unless it decides
// which of the others exist.
func Explorable(s space.Space) []bool {
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
