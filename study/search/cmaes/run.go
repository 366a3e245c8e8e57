package cmaes

import (
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/space"
)

// What a run of CMA-ES begins and ends with.
const (
	runSigma = 0.3 // of the range of every axis, as the tutorial advises
	// runStream keeps the starts of runs apart from the draws of the ladder.
	runStream = 0x7365617263680003
	// runEnd is the deviation below which an axis has arrived.
	runEnd = 1e-3
)

// run is CMA-ES between two restarts: a distribution on the cube.
type run struct {
	cube    *space.Cube
	number  int // restarts before it
	size    int // λ, the members of a population
	updates int
	axes    []int // the cube's dimensions that the normal distribution has
	normal  *gaussian
	choices []choice // the other dimensions
	strategy
	// best is the highest score at each rung that members had one of, and stale
	// how many updates ago one of them last rose.
	best   map[int]float64
	stale  int
	ledger ledger
}

// firstRun begins in the middle of the cube.
func firstRun(cube *space.Cube) *run {
	d := len(cube.Dimensions())
	size := 4 + int(3*math.Log(float64(d)))
	middle := make([]float64, d)
	for i := range middle {
		middle[i] = 0.5
	}
	return newRun(cube, middle, runSigma, ledger{smallest: size, largest: size})
}

func newRun(cube *space.Cube, mean []float64, sigma float64, l ledger) *run {
	r := &run{cube: cube, size: l.size(), best: map[int]float64{}, ledger: l}
	var start []float64
	for d, dimension := range cube.Dimensions() {
		if dimension.Kind == space.Unordered {
			r.choices = append(r.choices, newChoice(d, dimension.Choices))
			continue
		}
		r.axes = append(r.axes, d)
		start = append(start, mean[d])
	}
	r.normal, r.strategy = newGaussian(start, sigma), newStrategy(r.size, len(r.axes))
	r.widen()
	return r
}

// insideDraws is how often a draw outside the cube is drawn again before its
// coordinates are moved to the border.
const insideDraws = 10

// draw returns a point of the cube, with a coordinate for every parameter
// whether it exists or not. Its distance from the mean is widened.
func (r *run) draw(source *rand.Rand, widen float64) []float64 {
	x := make([]float64, len(r.axes))
	for range insideDraws {
		r.normal.draw(source, widen, x)
		if r.inside(x) {
			break
		}
	}
	point := make([]float64, len(r.cube.Dimensions()))
	for i, d := range r.axes {
		point[d] = min(max(x[i], 0), 1)
	}
	for _, c := range r.choices {
		point[c.dimension] = r.cube.Dimensions()[c.dimension].Coordinate(c.draw(source))
	}
	return point
}

// inside reports whether no axis without steps is beyond its range. Where there
// are steps, the outermost have all that is beyond.
func (r *run) inside(x []float64) bool {
	for i, d := range r.axes {
		if x[i] >= 0 && x[i] <= 1 {
			continue
		}
		if _, _, stepped := r.cube.Share(d, 0.5); !stepped {
			return false
		}
	}
	return true
}

// learn moves the distribution by a population, the best first.
func (r *run) learn(population []member) {
	points := make([][]float64, len(population))
	for i, m := range population {
		points[i] = make([]float64, len(r.axes))
		for k, d := range r.axes {
			points[i][k] = m.point[d]
		}
	}
	r.normal.learn(points, r.strategy)
	for i := range r.choices {
		c := &r.choices[i]
		c.learn(population, r.strategy, r.cube.Dimensions()[c.dimension])
		c.widen(len(r.choices))
	}
	r.widen()
	r.updates++
	r.ledger.spend(len(population))
	r.stale++
	for _, m := range population {
		if best, any := r.best[m.rung]; m.score > math.Inf(-1) && (!any || m.score > best) {
			r.best[m.rung], r.stale = m.score, 0
		}
	}
}

// ended reports whether the run has nothing more to find: it arrived, or no
// rung saw a better member for long.
func (r *run) ended() bool {
	if r.stale > 10+30*len(r.cube.Dimensions())/r.size {
		return true
	}
	for i, d := range r.axes {
		deviation := r.normal.deviation(i)
		low, high, stepped := r.cube.Share(d, r.normal.mean[i])
		if !stepped && deviation > runEnd || stepped && deviation > high-low {
			return false
		}
	}
	for _, c := range r.choices {
		if !c.arrived(len(r.choices)) {
			return false
		}
	}
	return true
}

// next returns the run that follows, if this one ended and another does.
func (r *run) next(seed uint64, restarts Restarts) (*run, bool) {
	if restarts == NoRestarts || !r.ended() {
		return nil, false
	}
	number := r.number + 1
	source := rand.New(rand.NewPCG(seed, runStream+uint64(number)<<32))
	mean := make([]float64, len(r.cube.Dimensions()))
	for d := range mean {
		mean[d] = source.Float64()
	}
	l := r.ledger
	sigma := runSigma * l.restart(restarts, source)
	following := newRun(r.cube, mean, sigma, l)
	following.number = number
	return following, true
}
