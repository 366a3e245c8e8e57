package search

import "fmt"

// asynchronous is successive halving without barriers (ASHA; Li et al. 2020,
// algorithm 2): a request never waits for a rung to fill. Whoever has earned
// it by now goes up, or else a new trial starts.
type asynchronous struct {
	open
	eta    int
	shares shares
	// widen lets more go up from a rung that ranks unlike the next one.
	widen bool
}

// earned looks from the highest rung down for a trial among the best
// floor(n/eta) of its rung that has not gone up yet; and then, where a rung is
// widened, among those behind them.
func (a asynchronous) earned(h *history, _ outlook) (step, bool) {
	for from := len(h.rungs) - 2; from >= 0; from-- {
		r := &h.rungs[from]
		limit, why := r.top(a.eta), ""
		place := r.best(limit)
		if place < 0 && a.widen {
			limit, why = h.widened(from, limit, a.eta)
			place = r.best(limit)
		}
		if place >= 0 {
			reason := fmt.Sprintf("rank %d of %d at rung %d, where the best %d go up", place+1, len(r.entries), from, limit)
			if why != "" {
				reason += " " + why
			}
			return step{trial: r.entries[place].trial, reason: reason}, true
		}
	}
	return step{}, false
}

func (a asynchronous) start(h *history) slot { return slot{rung: a.shares.next(h.started)} }

func (a asynchronous) allows(_ *history, at slot) bool { return at.bracket == 0 && !at.child }
