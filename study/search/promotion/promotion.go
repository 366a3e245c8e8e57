// Package promotion decides which trial goes up the ladder, and where new ones start:
// asynchronous successive halving, Hyperband's brackets, or no promotion at all.
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
	// Earned returns the trial that goes up next. last says that no further trial can
	// be created now: a bracket will get no more than it has.
	Earned(h *ladder.History, last bool) (Step, bool)
	// Earnable is how many trials would go up one after the other, if nothing were
	// measured meanwhile and so many fresh ones started before.
	Earnable(h *ladder.History, fresh int) int
	// Start returns where the next new trial starts.
	Start(h *ladder.History) ladder.Slot
	// Allows reports whether a trial can ever have started at the slot, when
	// the history held the trials before it: snapshots are checked.
	Allows(h *ladder.History, at ladder.Slot) bool
}

// Step takes a trial one rung up.
type Step struct {
	Trial  int
	Reason string
}

// Rules are the settings of a promotion; the search's settings say what they mean.
type Rules struct {
	Promotion budget.Promotion
	Rungs     int // of the ladder, at least one
	Eta       int
	Brackets  int
}

// New returns the promotion that the rules name.
func New(r Rules) Promotion {
	switch r.Promotion {
	case budget.Synchronous:
		return newSynchronous(r.Rungs, r.Eta, r.Brackets)
	case budget.NoPromotion:
		return none{top: r.Rungs - 1}
	}
	return asynchronous{eta: r.Eta, shares: newShares(r.Rungs, r.Eta, r.Brackets)}
}

// none trains every trial at the top rung: there is nothing to go up to.
type none struct{ top int }

func (n none) Earned(*ladder.History, bool) (Step, bool) { return Step{}, false }

func (n none) Start(*ladder.History) ladder.Slot { return ladder.Slot{Rung: n.top} }

func (n none) Allows(_ *ladder.History, at ladder.Slot) bool { return at == ladder.Slot{Rung: n.top} }

func (none) Earnable(*ladder.History, int) int { return 0 }
