package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/pareto"
	"github.com/tandem-tune/tandem/trial"
)

// entry is a trial's outcome at a rung.
type entry struct {
	trial int
	// score is the objective, larger is better; -Inf for a diverged trial. Of
	// several objectives it is the place in the ranking, from 0 downwards.
	score float64
	// violation is by how much the constraints are missed; 0 for a feasible
	// trial. Scores compare only where the violations are equal.
	violation float64
	failed    bool
	promoted  bool
}

// diverged reports whether it has no value to compare.
func (e entry) diverged() bool { return math.IsInf(e.score, -1) }

// promotable reports whether the trial may still go up from here: it has a
// value, and it has not gone up before.
func (e entry) promotable() bool { return !e.failed && !e.promoted && !e.diverged() }

// compare orders entries from the best to the worst. Failures come behind
// everything that was measured, diverged trials just before them. Feasible
// trials come before infeasible ones, and of these the least infeasible first
// (Deb 2000). Of equals the older trial is the better one.
func (e entry) compare(other entry) int {
	switch {
	case e.failed != other.failed:
		if e.failed {
			return 1
		}
		return -1
	case e.violation != other.violation && !e.diverged() && !other.diverged():
		return cmp.Compare(e.violation, other.violation)
	case e.score > other.score:
		return -1
	case e.score < other.score:
		return 1
	}
	return e.trial - other.trial
}

// scoreOf turns one objective into a score. NaN, and the infinity on the
// losing side, are a training that diverged: nothing ranks behind them but a
// failure, and they are never promoted. Several objectives diverge if one of
// them does; else their score is found by ranking them, and 0 until then.
func scoreOf(values []trial.Float, maximize []bool) float64 {
	if len(maximize) > 1 {
		if pointOf(values, maximize) == nil {
			return math.Inf(-1)
		}
		return 0
	}
	score := float64(values[0])
	if !maximize[0] {
		score = -score
	}
	if math.IsNaN(score) {
		return math.Inf(-1)
	}
	return score
}

// rung is a ranking of the outcomes at one budget, best first.
type rung struct {
	entries []entry
	// gone is how many entries at the front are known not to be promotable. It
	// spares looking at them again and again; whoever orders the entries anew
	// sets it back to 0.
	gone int
	// fronts ranks the feasible trials of a study with several objectives. They
	// are the first of the entries.
	fronts *fronts
}

// add takes an outcome in. point has the values of a feasible trial of a study
// with several objectives.
func (r *rung) add(e entry, point pareto.Point) {
	if point != nil {
		r.addPoint(e, point)
		return
	}
	first := r.onFronts()
	at, _ := slices.BinarySearchFunc(r.entries[first:], e, entry.compare)
	r.entries = slices.Insert(r.entries, first+at, e)
	r.gone = min(r.gone, first+at)
}

// top is how many of the rung's trials may go up: ASHA's floor(n / eta), where
// failures count. A trial that failed is a trial that was beaten.
func (r *rung) top(eta int) int { return len(r.entries) / eta }

// best returns the place of the best promotable trial among the first limit, or -1.
func (r *rung) best(limit int) int {
	for r.gone < limit && !r.entries[r.gone].promotable() {
		r.gone++
	}
	if r.gone < limit {
		return r.gone
	}
	return -1
}

// usable counts the trials that have a value. They come first.
func (r *rung) usable() int {
	n, _ := slices.BinarySearchFunc(r.entries, struct{}{}, func(e entry, _ struct{}) int {
		if e.failed || e.diverged() {
			return 1
		}
		return -1
	})
	return n
}

// promote marks the entry, which is in the ranking.
func (r *rung) promote(e entry) {
	at, found := slices.BinarySearchFunc(r.entries, e, entry.compare)
	if !found { // ranked by its front, so that its score is its place
		at = slices.IndexFunc(r.entries, func(other entry) bool { return other.trial == e.trial })
	}
	r.entries[at].promoted = true
}
