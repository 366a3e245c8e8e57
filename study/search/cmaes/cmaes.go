// Package cmaes is CMA-ES (Hansen 2016) without generations that wait for each other, with
// a margin for integers, categoricals, and restarts.
package cmaes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
)

const (
	// maxParameters bounds the parameters of a search whose model is a matrix.
	maxParameters = 100
	// drawWider is by how much a draw goes further out than the one before,
	// after a quarter of all draws was in vain: by a factor of 600 in the end.
	drawWider = 1.15
)

// CMAES is the covariance matrix adaptation evolution strategy (Hansen 2016)
// without generations that wait for each other: a proposal is a draw from the
// present distribution, and the distribution moves on when as many outcomes
// have come as a population has members, whatever distribution these were
// drawn from (Hansen 2011 calls them injected).
//
// Numbers and ordinals are axes of the normal distribution, those with few
// values with a margin (Hamano et al. 2022); categoricals have a distribution
// over their values, which moves by the same weights.
type CMAES struct {
	seed     uint64
	restarts Restarts
	cube     *space.Cube
	run      *run
	seen     int // arrivals that were taken in
	window   []int
	members  []int // of the population that is filling up
}

// New returns the proposer of a space; the seed chooses where runs after the first
// begin. The error is [problem.Invalid] if the space has too many parameters.
func New(s space.Space, seed uint64, restarts Restarts) (*CMAES, error) {
	if n := len(s.Parameters); n > maxParameters {
		return nil, problem.WithFields("the covariance matrix would be too large", []problem.Field{{
			Path: "search.method", Value: "cma-es",
			Message: fmt.Sprintf("must be another method: cma-es takes at most %d parameters, and the space has %d", maxParameters, n),
		}})
	}
	cube := s.Cube()
	return &CMAES{seed: seed, restarts: restarts, cube: cube, run: firstRun(cube)}, nil
}

func (c *CMAES) Propose(h *ladder.History, r *rand.Rand) (ladder.Proposal, bool) {
	c.follow(h)
	masked := make([]float64, len(c.cube.Dimensions()))
	for try := range propose.Redraws {
		// Where the distribution is so narrow that its draws are near-duplicates
		// of each other, the draws go further out.
		point := c.run.draw(r, math.Pow(drawWider, float64(max(0, try-propose.Redraws/4))))
		copy(masked, point)
		c.cube.Mask(masked)
		if c.cube.Forbids(masked) {
			continue
		}
		configuration, ok := propose.Fresh(h, masked)
		if !ok {
			continue
		}
		reason := fmt.Sprintf("drawn from the distribution after %d populations of %d, run %d", c.run.updates, c.run.size, c.run.number+1)
		return ladder.Proposal{
			Configuration: configuration, Origin: propose.OriginModel, Reason: reason,
			Draw: &ladder.Draw{Run: c.run.number, Point: point},
		}, true
	}
	return propose.Uniform(h, r, "drawn uniformly: all that the distribution gives was tried before, is too close to a trial that is out, or is forbidden")
}

// windows is how many populations of outcomes a member's place is counted in.
const windows = 4

// follow takes the outcomes that are new since the last proposal into the
// distribution, in the order in which they came.
func (c *CMAES) follow(h *ladder.History) {
	if c.seen > len(h.Arrivals) {
		c.run, c.seen, c.window, c.members = firstRun(c.cube), 0, nil, nil
	}
	for ; c.seen < len(h.Arrivals); c.seen++ {
		number := h.Arrivals[c.seen]
		if d := h.Draw(number); d != nil && d.Run != c.run.number {
			continue // it was drawn before the last restart
		}
		c.window = append(c.window, number)
		c.members = append(c.members, number)
		if len(c.members) < c.run.size {
			continue
		}
		if spare := len(c.window) - windows*c.run.size; spare > 0 {
			c.window = slices.Delete(c.window, 0, spare)
		}
		c.run.learn(c.population(h))
		c.members = c.members[:0]
		if next, ends := c.run.next(c.seed, c.restarts); ends {
			c.run, c.window = next, nil
		}
	}
}

// member is an outcome as an update sees it.
type member struct {
	point []float64
	rung  int     // that its first outcome belongs to
	score float64 // there, larger is better
	// place is the share of the late outcomes of that rung which are better,
	// equal ones by half.
	place float64
}

// population is the members, the best first. They may have started at
// different rungs, whose scores do not compare: what compares is the place
// among the late first outcomes of the same rung.
func (c *CMAES) population(h *ladder.History) []member {
	late := map[int][]float64{} // the scores by the rung they are of, sorted
	for _, number := range c.window {
		rung, score := h.First(number)
		late[rung] = append(late[rung], score)
	}
	for _, scores := range late {
		slices.Sort(scores)
	}
	members := make([]member, len(c.members))
	for i, number := range c.members {
		rung, score := h.First(number)
		scores := late[rung]
		worse, _ := slices.BinarySearch(scores, score)
		above := sort.Search(len(scores), func(at int) bool { return scores[at] > score })
		members[i] = member{
			point: c.point(h, number), rung: rung, score: score,
			place: 1 - float64(worse+above)/2/float64(len(scores)),
		}
	}
	slices.SortStableFunc(members, func(a, b member) int {
		switch {
		case a.place < b.place:
			return -1
		case a.place > b.place:
			return 1
		}
		return 0
	})
	return members
}

// point is where the trial was drawn; of one that came from elsewhere, where
// its configuration is, NaN where that says nothing.
func (c *CMAES) point(h *ladder.History, number int) []float64 {
	if d := h.Draw(number); d != nil {
		return d.Point
	}
	return h.Points[number]
}
