package search

import (
	"fmt"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/study/space"
)

// grid takes the space's grid in an order shuffled by the seed, so that a
// study which ends early has seen all of the space and not one corner.
type grid struct {
	points space.Grid
	order  []int
	next   int // the place in order behind the last configuration given
	given  int // how many were given to get there
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

func (g *grid) propose(h *history, _ *rand.Rand) (proposal, bool) {
	// Every trial came from here: the next one's place follows from their number.
	if g.given > len(h.trials) {
		g.next, g.given = 0, 0
	}
	for g.next < len(g.order) {
		configuration, ok := g.points.At(g.order[g.next])
		g.next++
		if !ok {
			continue
		}
		g.given++
		if g.given > len(h.trials) {
			reason := fmt.Sprintf("grid point %d, in shuffled order", g.given)
			return proposal{configuration: configuration, origin: originGrid, reason: reason}, true
		}
	}
	return proposal{}, false
}
