package search

import (
	"fmt"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
)

// grid takes the space's grid in an order shuffled by the seed, so that a
// study which ends early has seen all of the space and not one corner.
type grid struct {
	points space.Grid
	order  []int
	next   int // no configuration before this place in order is left
	passed int // how many there are before it
}

func newGrid(settings Settings) (proposer, error) {
	points, err := settings.Space.Grid(settings.GridPoints)
	if err != nil {
		return nil, problem.WithFields("the grid is too large", []problem.Field{
			{Path: "search.grid_points", Message: err.Error(), Value: settings.GridPoints},
		})
	}
	order := rand.New(rand.NewPCG(settings.Seed, stream)).Perm(points.Len())
	return &grid{points: points, order: order}, nil
}

// propose gives the next point that no trial has. A point that was enqueued and
// tried is not given again.
func (g *grid) propose(h *history, _ *rand.Rand) (proposal, bool) {
	for ; g.next < len(g.order); g.next++ {
		configuration, ok := g.points.At(g.order[g.next])
		if !ok {
			continue
		}
		if !h.taken[configuration.Key()] {
			reason := fmt.Sprintf("grid point %d, in shuffled order", g.passed+1)
			return proposal{configuration: configuration, origin: originGrid, reason: reason}, true
		}
		g.passed++
	}
	return proposal{}, false
}
