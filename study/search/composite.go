package search

import (
	"maps"
	"math/rand/v2"
	"strings"

	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
)

// composite puts a configuration together from what the methods of several
// groups propose. Each sees the trials as if its own parameters were all there
// are: their values, and what came of the whole trial.
type composite struct {
	parts []*part
}

func (c *composite) Propose(h *ladder.History, r *rand.Rand) (ladder.Proposal, bool) {
	for range propose.Redraws {
		whole := ladder.Proposal{Configuration: space.Configuration{}, Parts: map[string]ladder.Share{}}
		var reasons []string
		for _, one := range c.parts {
			p, ok := one.proposer.Propose(one.view(h), r)
			if !ok {
				return c.uniform(h, r)
			}
			maps.Copy(whole.Configuration, p.Configuration)
			whole.Parts[one.key] = ladder.Share{Origin: p.Origin, Draw: p.Draw}
			whole.Origin = joined(whole.Origin, p.Origin)
			reasons = append(reasons, one.name+": "+p.Reason)
		}
		point := h.Cube.Encode(whole.Configuration)
		if h.Cube.Forbids(point) {
			continue
		}
		if _, ok := propose.Fresh(h, point); ok {
			whole.Reason = strings.Join(reasons, "; ")
			return whole, true
		}
	}
	return c.uniform(h, r)
}

// uniform gives up on the groups for one trial.
func (c *composite) uniform(h *ladder.History, r *rand.Rand) (ladder.Proposal, bool) {
	return propose.Uniform(h, r, "drawn uniformly: what the groups' methods propose was tried before together, is too close to a trial that is out, or is forbidden")
}

// joined is the origin of a configuration whose parts have these.
func joined(a, b string) string {
	if a == "" || a == b {
		return b
	}
	return propose.OriginGroups
}

// view is the history as the part's method sees it.
func (p *part) view(h *ladder.History) *ladder.History {
	if len(p.points) > len(h.Points) {
		p.points = nil
	}
	for number := len(p.points); number < len(h.Points); number++ {
		point := make([]float64, len(p.at))
		for i, d := range p.at {
			point[i] = h.Points[number][d]
		}
		p.points = append(p.points, point)
	}
	return h.View(p.key, p.cube, p.points)
}
