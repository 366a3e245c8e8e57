package search

import "github.com/tandem-tune/tandem/budget"

// promotion is what tells one way up the ladder from another: who goes up, and
// where do new trials start?
//
// Its answers are pure functions of the history.
type promotion interface {
	// earned returns the trial that goes up next. last says that no further
	// trial can be created now: a bracket will get no more than it has.
	earned(h *history, last bool) (step, bool)
	// start returns where the next new trial starts.
	start(h *history) slot
	// allows reports whether a trial can ever have started at the slot, when
	// the history held the trials before it: snapshots are checked.
	allows(h *history, at slot) bool
}

// step takes a trial one rung up.
type step struct {
	trial  int
	reason string
}

// slot is a place on the ladder for a new trial.
type slot struct {
	bracket int // counted from 1; 0 where trials of all brackets share the rungs
	rung    int
}

// promotionOf returns the settings' promotion. Hyperband's brackets need a
// ladder, so that the settings must be valid.
func promotionOf(settings Settings) promotion {
	switch settings.Promotion {
	case budget.Synchronous:
		return newSynchronous(len(settings.Rungs), settings.Eta, settings.Brackets)
	case budget.NoPromotion:
		return none{top: len(settings.Rungs) - 1}
	}
	return asynchronous{eta: settings.Eta, widen: settings.Widen, shares: newShares(len(settings.Rungs), settings.Eta, settings.Brackets)}
}

// none trains every trial at the top rung: there is nothing to go up to.
type none struct{ top int }

func (n none) earned(*history, bool) (step, bool) { return step{}, false }

func (n none) start(*history) slot { return slot{rung: n.top} }

func (n none) allows(_ *history, at slot) bool { return at == slot{rung: n.top} }
