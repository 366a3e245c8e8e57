package promotion

import (
	"fmt"

	"github.com/tandem-tune/tandem/study/search/ladder"
)

// asynchronous is successive halving without barriers (ASHA; Li et al. 2020,
// algorithm 2): a request never waits for a rung to fill. Whoever has earned
// it by now goes up, or else a new trial starts.
type asynchronous struct {
	eta    int
	shares shares
}

// Earned looks from the highest rung down for a trial among the best
// floor(n/eta) of its rung that has not gone up yet.
func (a asynchronous) Earned(h *ladder.History, _ bool) (Step, bool) {
	for from := len(h.Rungs) - 2; from >= 0; from-- {
		r := &h.Rungs[from]
		limit := r.Top(a.eta)
		if place := r.Best(limit); place >= 0 {
			reason := fmt.Sprintf("rank %d of %d at rung %d, where the best %d go up", place+1, len(r.Entries), from, limit)
			return Step{Trial: r.Entries[place].Trial, Reason: reason}, true
		}
	}
	return Step{}, false
}

func (a asynchronous) Start(h *ladder.History) ladder.Slot {
	return ladder.Slot{Rung: a.shares.next(h.Started)}
}

func (a asynchronous) Allows(_ *ladder.History, at ladder.Slot) bool {
	return at.Bracket == 0
}

func (a asynchronous) Earnable(h *ladder.History, _ int) int {
	count := 0
	for from := range len(h.Rungs) - 1 {
		count += h.Rungs[from].Promotable(h.Rungs[from].Top(a.eta))
	}
	return count
}
