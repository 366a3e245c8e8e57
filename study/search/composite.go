package search

import (
	"math/rand/v2"
	"strings"

	"github.com/tandem-tune/tandem/study/space"
)

// composite puts a configuration together from what the methods of several
// groups propose. Each sees the trials as if its own parameters were all there
// are: their values, and what came of the whole trial.
type composite struct {
	parts []*part
}

// shareOf is what a part's method has to find again in a record.
type shareOf struct {
	Origin string `json:"origin"`
	Draw   *draw  `json:"draw,omitempty"`
}

func (c *composite) propose(h *history, r *rand.Rand) (proposal, bool) {
	for range redraws {
		whole := proposal{configuration: space.Configuration{}, parts: map[string]shareOf{}}
		var reasons []string
		for _, one := range c.parts {
			p, ok := one.proposer.propose(one.view(h), r)
			if !ok {
				return c.uniform(h, r)
			}
			for name, value := range p.configuration {
				whole.configuration[name] = value
			}
			whole.parts[one.key] = shareOf{Origin: p.origin, Draw: p.draw}
			whole.origin = joined(whole.origin, p.origin)
			reasons = append(reasons, one.name+": "+p.reason)
		}
		point := h.cube.Encode(whole.configuration)
		if h.cube.Forbids(point) {
			continue
		}
		if _, ok := fresh(h, point); ok {
			whole.reason = strings.Join(reasons, "; ")
			return whole, true
		}
	}
	return c.uniform(h, r)
}

// uniform gives up on the groups for one trial.
func (c *composite) uniform(h *history, r *rand.Rand) (proposal, bool) {
	configuration, ok := drawRandom(h, r)
	return proposal{
		configuration: configuration, origin: originRandom,
		reason: "drawn uniformly: what the groups' methods propose was tried before together, is too close to a trial that is out, or is forbidden",
	}, ok
}

// joined is the origin of a configuration whose parts have these.
func joined(a, b string) string {
	if a == "" || a == b {
		return b
	}
	return originGroups
}

// view is the history as the part's method sees it.
func (p *part) view(h *history) *history {
	if len(p.points) > len(h.points) {
		p.points = nil
	}
	for number := len(p.points); number < len(h.points); number++ {
		point := make([]float64, len(p.at))
		for i, d := range p.at {
			point[i] = h.points[number][d]
		}
		p.points = append(p.points, point)
	}
	view := *h
	view.cube, view.points, view.taken = p.cube, p.points, nil
	view.part, view.partial = p.key, true
	return &view
}

// cycle takes the points of a grid in the order of newGrid, again and again:
// the other groups go on when it is through.
type cycle struct {
	grid  *grid
	valid []int // the places in the grid's order that have a configuration
	known bool
}

func newCycle(settings Settings) (proposer, error) {
	g, err := newGrid(settings)
	if err != nil {
		return nil, err
	}
	return &cycle{grid: g.(*grid)}, nil
}

func (c *cycle) propose(h *history, _ *rand.Rand) (proposal, bool) {
	if !c.known {
		for _, place := range c.grid.order {
			if _, ok := c.grid.points.At(place); ok {
				c.valid = append(c.valid, place)
			}
		}
		c.known = true
	}
	if len(c.valid) == 0 {
		return proposal{}, false
	}
	configuration, ok := c.grid.points.At(c.valid[len(h.trials)%len(c.valid)])
	return proposal{configuration: configuration, origin: originGrid, reason: "the next grid point, in shuffled order"}, ok
}
