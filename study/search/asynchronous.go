package search

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/problem"
)

// stream is the second word of the generator's seed: it keeps a search's draws
// apart from others that are seeded with the same number.
const stream = 0x7365617263680001

// asynchronous is every method's core: asynchronous successive halving (ASHA;
// Li et al. 2020, algorithm 2) on the ladder of budgets. A request never waits
// for a rung to fill: it promotes whoever has earned it by now, or else starts
// a new trial with a configuration from the proposer.
//
// docs/search.md tells the rules, docs/decisions/0001 why they are so.
type asynchronous struct {
	settings Settings
	proposer proposer
	brackets brackets
	source   *rand.PCG
	history  *history
	// dry remembers that the proposer has nothing for the present state. It is
	// no part of it: a request that cannot be served leaves everything as it was.
	dry bool
}

func newAsynchronous(settings Settings, p proposer) *asynchronous {
	return &asynchronous{
		settings: settings,
		proposer: p,
		brackets: newBrackets(len(settings.Rungs), settings.Eta, settings.Brackets),
		source:   rand.NewPCG(settings.Seed, stream),
		history:  newHistory(settings),
	}
}

// Handle implements [Method].
func (a *asynchronous) Handle(e Event) ([]Action, error) {
	switch e.Kind {
	case Request:
		return []Action{a.answer()}, nil
	case Measured, Failed:
		return nil, a.observe(e)
	}
	return nil, problem.New(problem.Invalid, "a search has no event of kind %q", e.Kind)
}

// observe takes the outcome of a trial in.
func (a *asynchronous) observe(e Event) error {
	if err := a.history.possible(e); err != nil {
		return err
	}
	if e.Kind == Measured {
		a.history.measure(e.Trial, slices.Clone(e.Values))
	} else {
		a.history.fail(e.Trial)
	}
	a.dry = false
	return nil
}

// answer decides what a free worker does.
func (a *asynchronous) answer() Action {
	if action, ok := a.promotion(); ok {
		return action
	}
	if action, ok := a.creation(); ok {
		return action
	}
	if a.history.out > 0 {
		return Action{Kind: Wait, Reason: "all trials are created; the next decision needs the outcome of one that is out"}
	}
	if action, ok := a.finalPromotion(); ok {
		return action
	}
	return Action{Kind: Finish, Reason: "all trials are created and none is left to promote"}
}

// promotion looks from the highest rung down for a trial among the best
// floor(n/eta) of its rung that has not gone up yet.
func (a *asynchronous) promotion() (Action, bool) {
	eta := a.settings.Eta
	for from := len(a.history.rungs) - 2; from >= 0; from-- {
		r := &a.history.rungs[from]
		if place := r.best(r.top(eta)); place >= 0 {
			reason := fmt.Sprintf("rank %d of %d at rung %d, where the best %d go up", place+1, len(r.entries), from, r.top(eta))
			return a.promote(from, place, reason), true
		}
	}
	return Action{}, false
}

// finalPromotion ends a search that has nothing else to do with a winner that
// was trained on the full budget: as long as no trial has a value at the top
// rung, the best one of the highest rung that has a candidate goes up.
func (a *asynchronous) finalPromotion() (Action, bool) {
	top := len(a.history.rungs) - 1
	if a.history.rungs[top].usable() > 0 {
		return Action{}, false
	}
	for from := top - 1; from >= 0; from-- {
		r := &a.history.rungs[from]
		if place := r.best(len(r.entries)); place >= 0 {
			reason := fmt.Sprintf("final promotion: the best left at rung %d, as no trial has a result at the top rung", from)
			return a.promote(from, place, reason), true
		}
	}
	return Action{}, false
}

func (a *asynchronous) promote(from, place int, reason string) Action {
	number := a.history.promote(from, place)
	a.dry = false
	return Action{Kind: Promote, Trial: number, Rung: from + 1, Reason: reason}
}

// creation starts a new trial, if the study allows one and the proposer has one.
func (a *asynchronous) creation() (Action, bool) {
	if a.dry || a.settings.MaxTrials > 0 && len(a.history.trials) >= a.settings.MaxTrials {
		return Action{}, false
	}
	before := *a.source
	p, ok := a.proposer.propose(a.history, rand.New(a.source))
	if !ok {
		*a.source, a.dry = before, true
		return Action{}, false
	}
	start := a.brackets.next(a.history.started)
	number := a.history.create(p, start)
	return Action{
		Kind: Create, Trial: number, Rung: start,
		Configuration: p.configuration, Origin: p.origin, Reason: p.reason,
	}, true
}
