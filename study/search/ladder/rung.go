package ladder

import (
	"cmp"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/pareto"
	"github.com/tandem-tune/tandem/trial"
)

// Entry is a trial's outcome at a rung.
type Entry struct {
	Trial int
	// Score is the objective, larger is better; -Inf for a diverged trial. Of
	// several objectives it is the place in the ranking, from 0 downwards.
	Score float64
	// Violation is by how much the constraints are missed; 0 for a feasible
	// trial. Scores compare only where the violations are equal.
	Violation float64
	Failed    bool
	Promoted  bool
}

// Diverged reports whether it has no value to compare.
func (e Entry) Diverged() bool { return math.IsInf(e.Score, -1) }

// Promotable reports whether the trial may still go up from here: it has a
// value, and it has not gone up before.
func (e Entry) Promotable() bool { return !e.Failed && !e.Promoted && !e.Diverged() }

// Compare orders entries from the best to the worst. Failures come behind
// everything that was measured, diverged trials just before them. Feasible
// trials come before infeasible ones, and of these the least infeasible first
// (Deb 2000). Of equals the older trial is the better one.
func (e Entry) Compare(other Entry) int {
	switch {
	case e.Failed != other.Failed:
		if e.Failed {
			return 1
		}
		return -1
	case e.Violation != other.Violation && !e.Diverged() && !other.Diverged():
		return cmp.Compare(e.Violation, other.Violation)
	case e.Score > other.Score:
		return -1
	case e.Score < other.Score:
		return 1
	}
	return e.Trial - other.Trial
}

// ScoreOf turns one objective into a score. NaN, and the infinity on the
// losing side, are a training that diverged: nothing ranks behind them but a
// failure, and they are never promoted. Several objectives diverge if one of
// them does; else their score is found by ranking them, and 0 until then.
func ScoreOf(values []trial.Float, maximize []bool) float64 {
	if len(maximize) > 1 {
		if PointOf(values, maximize) == nil {
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

// Rung is a ranking of the outcomes at one budget, best first.
type Rung struct {
	Entries []Entry
	// gone is how many entries at the front are known not to be promotable. It
	// spares looking at them again and again; whoever orders the entries anew
	// sets it back to 0.
	gone int
	// fronts ranks the feasible trials of a study with several objectives. They
	// are the first of the entries.
	fronts *fronts
}

// Add takes an outcome in. point has the values of a feasible trial of a study
// with several objectives.
func (r *Rung) Add(e Entry, point pareto.Point) {
	if point != nil {
		r.addPoint(e, point)
		return
	}
	first := r.onFronts()
	at, _ := slices.BinarySearchFunc(r.Entries[first:], e, Entry.Compare)
	r.Entries = slices.Insert(r.Entries, first+at, e)
	r.gone = min(r.gone, first+at)
}

// Top is how many of the rung's trials may go up: ASHA's floor(n / eta), where
// failures count. A trial that failed is a trial that was beaten.
func (r *Rung) Top(eta int) int { return len(r.Entries) / eta }

// Best returns the place of the best promotable trial among the first limit, or -1.
func (r *Rung) Best(limit int) int {
	for r.gone < limit && !r.Entries[r.gone].Promotable() {
		r.gone++
	}
	if r.gone < limit {
		return r.gone
	}
	return -1
}

// Usable counts the trials that have a value. They come first.
func (r *Rung) Usable() int {
	n, _ := slices.BinarySearchFunc(r.Entries, struct{}{}, func(e Entry, _ struct{}) int {
		if e.Failed || e.Diverged() {
			return 1
		}
		return -1
	})
	return n
}

// Promote marks the entry, which is in the ranking.
func (r *Rung) Promote(e Entry) {
	at, found := slices.BinarySearchFunc(r.Entries, e, Entry.Compare)
	if !found { // ranked by its front, so that its score is its place
		at = slices.IndexFunc(r.Entries, func(other Entry) bool { return other.Trial == e.Trial })
	}
	r.Entries[at].Promoted = true
}

// Promotable counts the entries among the first limit that may go up.
func (r *Rung) Promotable(limit int) int {
	count := 0
	for at := r.gone; at < min(limit, len(r.Entries)); at++ {
		if r.Entries[at].Promotable() {
			count++
		}
	}
	return count
}

// SpreadOut returns at most as many entries, evenly spread over the ranking.
func SpreadOut(entries []Entry, most int) []Entry {
	n := min(len(entries), most)
	few := make([]Entry, n)
	for i := range few {
		few[i] = entries[i*len(entries)/n]
	}
	return few
}

// Worth is the score, and -Inf for a failure and for what misses the constraints.
func (e Entry) Worth() float64 {
	if e.Failed || e.Violation > 0 {
		return math.Inf(-1)
	}
	return e.Score
}

// Bad are outcomes at the rungs below one that its own ranking lacks: of each rung
// all that has no value, with worse also the worse half of the others, as they were
// hardly ever promoted; and of too many the given number, evenly spread.
func (h *History) Bad(below int, worse bool, most int) []Entry {
	var bad []Entry
	for i := range h.Rungs[:below] {
		r := &h.Rungs[i]
		from := r.Usable()
		if worse {
			from = (from + 1) / 2
		}
		bad = append(bad, SpreadOut(r.Entries[from:], most)...)
	}
	return bad
}
