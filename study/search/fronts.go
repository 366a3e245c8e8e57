package search

import (
	"math"

	"github.com/tandem-tune/tandem/study/pareto"
	"github.com/tandem-tune/tandem/trial"
)

// fronts ranks feasible trials by several objectives: front by front, and
// within a front the one furthest from its neighbours first (NSGA-II; Deb et
// al. 2002). The ranking does not depend on the order of arrival.
type fronts struct {
	layers   pareto.Layers
	promoted map[int]bool
	order    []int // a buffer
}

// pointOf turns values into a point to be compared; nil if one of them
// diverged.
func pointOf(values []trial.Float, maximize []bool) pareto.Point {
	point := make(pareto.Point, len(values))
	for i, value := range values {
		score := scoreOf([]trial.Float{value}, maximize[i:i+1])
		if math.IsInf(score, -1) {
			return nil
		}
		point[i] = score
	}
	return point
}

// pointOf is the point of a trial's newest measurement, if the trial is ranked
// by its front.
func (h *history) pointOf(t *record, e entry) pareto.Point {
	if len(h.maximize) < 2 || e.failed || e.violation > 0 || e.diverged() {
		return nil
	}
	return pointOf(t.Results[len(t.Results)-1], h.maximize)
}

// onFronts is how many entries, from the first on, are ranked by their fronts.
func (r *rung) onFronts() int {
	if r.fronts == nil {
		return 0
	}
	return r.fronts.layers.Len()
}

// addPoint takes a feasible outcome with several objectives in.
func (r *rung) addPoint(e entry, point pareto.Point) {
	if r.fronts == nil {
		r.fronts = &fronts{promoted: make(map[int]bool)}
	}
	f := r.fronts
	first := f.layers.Len()
	unchanged := f.layers.Add(e.trial, point)
	f.order = f.layers.Order(f.order[:0])
	for _, old := range r.entries[unchanged:first] {
		if old.promoted {
			f.promoted[old.trial] = true
		}
	}
	r.entries = append(r.entries, entry{})
	copy(r.entries[first+1:], r.entries[first:])
	for place, number := range f.order[unchanged:] {
		r.entries[unchanged+place] = entry{trial: number, score: -float64(unchanged + place), promoted: f.promoted[number]}
	}
	r.gone = min(r.gone, unchanged)
}
