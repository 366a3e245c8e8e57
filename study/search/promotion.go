package search

import "github.com/tandem-tune/tandem/budget"

// promotion is what tells one way up the ladder from another: who goes up, and
// where do new trials start?
//
// Its answers are pure functions of the history.
type promotion interface {
	// earned returns the trial that goes up next.
	earned(h *history, o outlook) (step, bool)
	// earnable is how many trials would go up one after the other, if nothing were
	// measured meanwhile and so many fresh ones started before that the study then has
	// room for so many more.
	earnable(h *history, fresh, room int) int
	// start returns where the next new trial starts.
	start(h *history) slot
	// full reports that no new trial starts by itself: all there will be by
	// then are children of others.
	full(h *history) bool
	// allows reports whether a trial can ever have started at the slot, when
	// the history held the trials before it: snapshots are checked.
	allows(h *history, at slot) bool
}

// outlook is what a promotion knows of trials to come.
type outlook struct {
	// last says that no further trial can be created now: a bracket will get no
	// more than it has.
	last bool
	// room says that the study may have one more trial than it has, and than
	// was enqueued.
	room bool
}

// open is for promotions under which new trials start as long as there are any.
type open struct{}

func (open) full(*history) bool { return false }

// step takes a trial one rung up.
type step struct {
	trial  int
	reason string
	// parents, if not 0, is how many of the best of its rung may be the parent
	// of a child that goes up in its place.
	parents int
}

// slot is a place on the ladder for a new trial.
type slot struct {
	bracket int // counted from 1; 0 where trials of all brackets share the rungs
	rung    int
	child   bool // continues another trial
}

// promotionOf returns the settings' promotion. Hyperband's brackets need a
// ladder, so that the settings must be valid.
func promotionOf(settings Settings) promotion {
	switch settings.Promotion {
	case budget.Synchronous:
		return newSynchronous(len(settings.Rungs), settings.Eta, settings.Brackets)
	case budget.NoPromotion:
		return none{top: len(settings.Rungs) - 1}
	case budget.Population:
		return population{size: settings.Population}
	}
	return asynchronous{eta: settings.Eta, widen: settings.Widen, shares: newShares(len(settings.Rungs), settings.Eta, settings.Brackets)}
}

// none trains every trial at the top rung: there is nothing to go up to.
type none struct {
	open
	top int
}

func (n none) earned(*history, outlook) (step, bool) { return step{}, false }

func (n none) start(*history) slot { return slot{rung: n.top} }

func (n none) allows(_ *history, at slot) bool { return at == slot{rung: n.top} }
