package search

import (
	"math"

	"github.com/tandem-tune/tandem/study/search/grid"
	"github.com/tandem-tune/tandem/study/search/ladder"
)

// Startable is how many requests in a row would be answered with a trial, if nothing
// were measured meanwhile. Where nobody knows how many configurations are left, that is
// a guess, and not 0 while there is one. Where no trial is out and none is left, the
// request that ends the search counts as one.
func (m *Method) Startable() int {
	h := m.history
	if m.repeats.begun() {
		return max(m.repeats.owed(h), ending(h.Out+m.repeats.out))
	}
	fresh := m.fresh()
	count := fresh + m.promotion.Earnable(h, fresh)
	if count > 0 || h.Out > 0 {
		return count
	}
	return max(m.repeats.owed(h), ending(0))
}

// ending is the request that a search needs to end, or to send up its last, once
// nothing is out.
func ending(out int) int {
	if out > 0 {
		return 0
	}
	return 1
}

// fresh is how many new trials may start, at most.
func (m *Method) fresh() int {
	left := math.MaxInt32
	if g, limited := m.proposer.(*grid.Grid); limited {
		left = g.Left()
	}
	if m.dry {
		left = 0
	}
	return min(left+len(m.queue), m.room())
}

// room is how many more trials the study may have.
func (m *Method) room() int {
	if m.settings.MaxTrials == 0 {
		return math.MaxInt
	}
	return max(0, m.settings.MaxTrials-len(m.history.Trials))
}

// owed is how many trainings again of the best may start now.
func (r *repeats) owed(h *ladder.History) int {
	if r.settings == nil {
		return 0
	}
	count := 0
	for _, c := range r.choose(h) {
		begun, owed := r.tally(c)
		count += max(0, owed-begun)
	}
	return count
}
