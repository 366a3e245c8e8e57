package search

import "fmt"

// asynchronous is successive halving without barriers (ASHA; Li et al. 2020,
// algorithm 2): a request never waits for a rung to fill. Whoever has earned
// it by now goes up, or else a new trial starts.
type asynchronous struct {
	eta    int
	shares shares
}

// earned looks from the highest rung down for a trial among the best
// floor(n/eta) of its rung that has not gone up yet.
func (a asynchronous) earned(h *history, _ bool) (step, bool) {
	for from := len(h.rungs) - 2; from >= 0; from-- {
		r := &h.rungs[from]
		if place := r.best(r.top(a.eta)); place >= 0 {
			reason := fmt.Sprintf("rank %d of %d at rung %d, where the best %d go up", place+1, len(r.entries), from, r.top(a.eta))
			return step{r.entries[place].trial, reason}, true
		}
	}
	return step{}, false
}

func (a asynchronous) start(h *history) slot { return slot{rung: a.shares.next(h.started)} }

func (a asynchronous) allows(_ *history, at slot) bool { return at.bracket == 0 }
