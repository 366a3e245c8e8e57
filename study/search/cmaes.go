package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
)

const (
	// cmaesDimensions bounds the parameters of a search whose model is a matrix.
	cmaesDimensions = 100
	// drawWider is by how much a draw goes further out than the one before,
	// after a quarter of all draws was in vain: by a factor of 600 in the end.
	drawWider = 1.15
)

// cmaes is the covariance matrix adaptation evolution strategy (Hansen 2016)
// without generations that wait for each other: a proposal is a draw from the
// present distribution, and the distribution moves on when as many outcomes
// have come as a population has members, whatever distribution these were
// drawn from (Hansen 2011 calls them injected).
//
// Numbers and ordinals are axes of the normal distribution, those with few
// values with a margin (Hamano et al. 2022); categoricals have a distribution
// over their values, which moves by the same weights.
type cmaes struct {
	settings Settings
	cube     *space.Cube
	run      *run
	seen     int // arrivals that were taken in
	window   []int
	members  []int // of the population that is filling up
}

func newCMAES(settings Settings) (proposer, error) {
	if n := len(settings.Space.Parameters); n > cmaesDimensions {
		return nil, problem.WithFields("the covariance matrix would be too large", []problem.Field{{
			Path: "search.method", Value: settings.Method,
			Message: fmt.Sprintf("must be another method: cma-es takes at most %d parameters, and the space has %d", cmaesDimensions, n),
		}})
	}
	cube := settings.Space.Cube()
	return &cmaes{settings: settings, cube: cube, run: firstRun(cube)}, nil
}

func (c *cmaes) propose(h *history, r *rand.Rand) (proposal, bool) {
	c.follow(h)
	masked := make([]float64, len(c.cube.Dimensions()))
	for try := range redraws {
		// Where the distribution is so narrow that its draws are near-duplicates
		// of each other, the draws go further out.
		point := c.run.draw(r, math.Pow(drawWider, float64(max(0, try-redraws/4))))
		copy(masked, point)
		c.cube.Mask(masked)
		if c.cube.Forbids(masked) {
			continue
		}
		configuration, ok := fresh(h, masked)
		if !ok {
			continue
		}
		reason := fmt.Sprintf("drawn from the distribution after %d populations of %d, run %d", c.run.updates, c.run.size, c.run.number+1)
		return proposal{
			configuration: configuration, origin: originModel, reason: reason,
			draw: &draw{Run: c.run.number, Point: point},
		}, true
	}
	configuration, ok := drawRandom(h, r)
	return proposal{
		configuration: configuration, origin: originRandom,
		reason: "drawn uniformly: all that the distribution gives was tried before, is too close to a trial that is out, or is forbidden",
	}, ok
}

// windows is how many populations of outcomes a member's place is counted in.
const windows = 4

// follow takes the outcomes that are new since the last proposal into the
// distribution, in the order in which they came.
func (c *cmaes) follow(h *history) {
	if c.seen > len(h.arrivals) {
		c.run, c.seen, c.window, c.members = firstRun(c.cube), 0, nil, nil
	}
	for ; c.seen < len(h.arrivals); c.seen++ {
		number := h.arrivals[c.seen]
		if d := h.draw(number); d != nil && d.Run != c.run.number {
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
		if next, ends := c.run.next(c.settings); ends {
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
func (c *cmaes) population(h *history) []member {
	late := map[int][]float64{} // the scores by the rung they are of, sorted
	for _, number := range c.window {
		rung, score := h.first(number)
		late[rung] = append(late[rung], score)
	}
	for _, scores := range late {
		slices.Sort(scores)
	}
	members := make([]member, len(c.members))
	for i, number := range c.members {
		rung, score := h.first(number)
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
func (c *cmaes) point(h *history, number int) []float64 {
	if d := h.draw(number); d != nil {
		return d.Point
	}
	return h.points[number]
}
