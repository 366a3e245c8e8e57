// Package promotion decides which trial goes up the ladder, and where new ones start:
// asynchronous successive halving, Hyperband's brackets, population based training, or
// no promotion at all.
package promotion

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search/ladder"
)

// Promotion is what tells one way up the ladder from another: who goes up, and
// where do new trials start?
//
// Its answers are pure functions of the history.
type Promotion interface {
	// Earned returns the trial that goes up next.
	Earned(h *ladder.History, o Outlook) (Step, bool)
	// Earnable is how many trials would go up one after the other, if nothing were
	// measured meanwhile and so many fresh ones started before that the study then has
	// room for so many more.
	Earnable(h *ladder.History, fresh, room int) int
	// Start returns where the next new trial starts.
	Start(h *ladder.History) ladder.Slot
	// Full reports that no new trial starts by itself: all there will be by
	// then are children of others.
	Full(h *ladder.History) bool
	// Allows reports whether a trial can ever have started at the slot, when
	// the history held the trials before it: snapshots are checked.
	Allows(h *ladder.History, at ladder.Slot) bool
}

// Outlook is what a promotion knows of trials to come.
type Outlook struct {
	// Last says that no further trial can be created now: a bracket will get no
	// more than it has.
	Last bool
	// Room says that the study may have one more trial than it has, and than
	// was enqueued.
	Room bool
}

// open is for promotions under which new trials start as long as there are any.
type open struct{}

func (open) Full(*ladder.History) bool { return false }

// Step takes a trial one rung up.
type Step struct {
	Trial  int
	Reason string
	// parents, if not 0, is how many of the best of its rung may be the parent
	// of a child that goes up in its place.
	Parents int
}

// Rules are the settings of a promotion; the search's settings say what they mean.
type Rules struct {
	Promotion  budget.Promotion
	Rungs      int // of the ladder, at least one
	Eta        int
	Brackets   int
	Population int
}

// New returns the promotion that the rules name.
func New(r Rules) Promotion {
	switch r.Promotion {
	case budget.Synchronous:
		return newSynchronous(r.Rungs, r.Eta, r.Brackets)
	case budget.NoPromotion:
		return none{top: r.Rungs - 1}
	case budget.Population:
		return population{size: r.Population}
	}
	return asynchronous{eta: r.Eta, shares: newShares(r.Rungs, r.Eta, r.Brackets)}
}

// none trains every trial at the top rung: there is nothing to go up to.
type none struct {
	open
	top int
}

func (n none) Earned(*ladder.History, Outlook) (Step, bool) { return Step{}, false }

func (n none) Start(*ladder.History) ladder.Slot { return ladder.Slot{Rung: n.top} }

func (n none) Allows(_ *ladder.History, at ladder.Slot) bool { return at == ladder.Slot{Rung: n.top} }

func (none) Earnable(*ladder.History, int, int) int { return 0 }
