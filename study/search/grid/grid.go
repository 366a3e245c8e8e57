// Package grid takes the points of a grid in shuffled order, once or again and again.
package grid

import (
	"fmt"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
)

// stream is the second word of the generator's seed, the same as that of the search.
const stream = 0x7365617263680001

// Grid takes the space's grid in an order shuffled by the seed, so that a
// study which ends early has seen all of the space and not one corner.
type Grid struct {
	points space.Grid
	order  []int
	next   int // no configuration before this place in order is left
	passed int // how many there are before it
}

// New returns the proposer of a grid with so many points of each continuous
// range. The error is [problem.Invalid] if it is too large.
func New(s space.Space, seed uint64, points int) (*Grid, error) {
	all, err := s.Grid(points)
	if err != nil {
		return nil, problem.WithFields("the grid is too large", []problem.Field{
			{Path: "search.grid_points", Message: err.Error(), Value: points},
		})
	}
	order := rand.New(rand.NewPCG(seed, stream)).Perm(all.Len())
	return &Grid{points: all, order: order}, nil
}

// Left is how many points may still be proposed, at most.
func (g *Grid) Left() int { return len(g.order) - g.next }

// Propose gives the next point that no trial has. A point that was enqueued and
// tried is not given again.
func (g *Grid) Propose(h *ladder.History, _ *rand.Rand) (ladder.Proposal, bool) {
	for ; g.next < len(g.order); g.next++ {
		configuration, ok := g.points.At(g.order[g.next])
		if !ok {
			continue
		}
		if !h.Taken[configuration.Key()] {
			reason := fmt.Sprintf("grid point %d, in shuffled order", g.passed+1)
			return ladder.Proposal{Configuration: configuration, Origin: propose.OriginGrid, Reason: reason}, true
		}
		g.passed++
	}
	return ladder.Proposal{}, false
}
