package ladder

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

// PointOf turns values into a point to be compared; nil if one of them
// diverged.
func PointOf(values []trial.Float, maximize []bool) pareto.Point {
	point := make(pareto.Point, len(values))
	for i, value := range values {
		score := ScoreOf([]trial.Float{value}, maximize[i:i+1])
		if math.IsInf(score, -1) {
			return nil
		}
		point[i] = score
	}
	return point
}

// pointOf is the point of a trial's newest measurement, if the trial is ranked
// by its front.
func (h *History) pointOf(t *Record, e Entry) pareto.Point {
	if len(h.Maximize) < 2 || e.Failed || e.Violation > 0 || e.Diverged() {
		return nil
	}
	return PointOf(t.Results[len(t.Results)-1], h.Maximize)
}

// onFronts is how many entries, from the first on, are ranked by their fronts.
func (r *Rung) onFronts() int {
	if r.fronts == nil {
		return 0
	}
	return r.fronts.layers.Len()
}

// addPoint takes a feasible outcome with several objectives in.
func (r *Rung) addPoint(e Entry, point pareto.Point) {
	if r.fronts == nil {
		r.fronts = &fronts{promoted: make(map[int]bool)}
	}
	f := r.fronts
	first := f.layers.Len()
	unchanged := f.layers.Add(e.Trial, point)
	f.order = f.layers.Order(f.order[:0])
	for _, old := range r.Entries[unchanged:first] {
		if old.Promoted {
			f.promoted[old.Trial] = true
		}
	}
	r.Entries = append(r.Entries, Entry{})
	copy(r.Entries[first+1:], r.Entries[first:])
	for place, number := range f.order[unchanged:] {
		r.Entries[unchanged+place] = Entry{Trial: number, Score: -float64(unchanged + place), Promoted: f.promoted[number]}
	}
	r.gone = min(r.gone, unchanged)
}
