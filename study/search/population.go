package search

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/budget"
)

// The constants of population based training: those of truncation selection and
// perturbation in Jaderberg et al. 2017, and Ray Tune's default for drawing anew.
const (
	// exploitShare is one over the share of a rung's trials that are replaced,
	// and of those they are replaced by: the worst and the best fifth.
	exploitShare = 5
	// exploreDraw is the chance that a parameter is drawn anew instead of being
	// moved from the parent's value.
	exploreDraw = 0.25
	// exploreDown and exploreUp are the factors a number is multiplied by.
	exploreDown, exploreUp = 0.8, 1.2
)

// MinPopulation is the smallest population: with fewer, a fifth is nobody.
const MinPopulation = exploitShare

// population is population based training without barriers: everybody goes up
// the ladder, but who is in the worst fifth of a rung's outcomes so far is
// replaced on the next rung by a child of one in the best fifth.
type population struct{ size int }

// earned serves the lowest rung first, so that the population goes up in step
// where workers are few, and there the best trial first, so that the worst ones
// are judged last, against as many as possible.
func (p population) earned(h *history, o outlook) (step, bool) {
	if h.originals < p.size && !o.last {
		return step{}, false
	}
	for from := range len(h.rungs) - 1 {
		r := &h.rungs[from]
		n, fifth := len(r.entries), len(r.entries)/exploitShare
		parents := min(fifth, r.usable())
		for place, e := range r.entries {
			switch {
			case e.promoted:
			case (place >= n-fifth || !e.promotable()) && parents > 0 && o.room:
				reason := fmt.Sprintf("rank %d of %d at rung %d, where the last %d are replaced", place+1, n, from, fifth)
				return step{trial: e.trial, reason: reason, parents: parents}, true
			case e.promotable():
				reason := fmt.Sprintf("rank %d of %d at rung %d: it goes on", place+1, n, from)
				return step{trial: e.trial, reason: reason}, true
			}
		}
	}
	return step{}, false
}

func (p population) start(*history) slot { return slot{} }

func (p population) full(h *history) bool { return h.originals >= p.size }

func (p population) allows(_ *history, at slot) bool {
	return at.bracket == 0 && at.child == (at.rung > 0)
}

// replace creates a child that takes a loser's place, one rung up.
func (m *machine) replace(s step) Action {
	h := m.history
	at := h.trials[s.trial].Rung
	random := m.random()
	place := random.IntN(s.parents)
	parent := h.rungs[at].entries[place].trial
	h.replace(s.trial)
	p := proposal{configuration: explore(h, m.settings.Space, parent, random), origin: originPopulation}
	number := h.create(p, slot{rung: at + 1, child: true})
	h.adopt(number, parent)
	m.dry = false
	loser := s.trial
	return Action{
		Kind: Create, Trial: number, Rung: at + 1, Configuration: p.configuration, Origin: p.origin, Parent: &parent, Replaces: &loser,
		Reason: fmt.Sprintf("takes the place of trial %d (%s) with the parameters of trial %d (rank %d), changed a little", loser, s.reason, parent, place+1),
	}
}

// replace marks a trial that a child takes the place of: it goes nowhere any more.
func (h *history) replace(number int) {
	t := &h.trials[number]
	e := entry{trial: number, failed: true}
	if t.Status == measured {
		e = h.entryOf(number)
	}
	t.Replaced = true
	h.rungs[t.Rung].promote(e)
}

// adopt notes whose child a new trial is.
func (h *history) adopt(number, parent int) {
	h.trials[number].Parent = &parent
	h.originals--
}

// validatePopulation says what is wrong with a population and how it goes with
// the rest of the settings.
func (s Settings) validatePopulation(require func(ok bool, path string, value any, format string, args ...any)) {
	if s.Promotion != budget.Population {
		require(s.Population == 0, "search.population", s.Population, "belongs to promotion: population; leave it out")
		return
	}
	require(s.Population >= MinPopulation, "search.population", s.Population, "must be at least %d, so that a fifth of it is somebody", MinPopulation)
	require(s.Brackets == 0, "search.brackets", s.Brackets, "must be left out with promotion: population, as every trial starts at the first rung")
	require(len(s.Rungs) >= 2, "search.promotion", string(s.Promotion), "needs a ladder of two rungs or more, at which trials are replaced: give budget.epochs a min below its max, and growth: linear")
	require(len(s.Rungs) == 0 || !s.Rungs[0].Budget.Measured(), "search.promotion", string(s.Promotion),
		"needs a budget in epochs, as a child has spent none of its parent's seconds and joules: write budget.policy: epochs")
	for _, rung := range s.Rungs {
		if rung.FromScratch {
			require(false, "search.promotion", string(s.Promotion), "needs a ladder whose epochs grow at every rung, as a child goes on from its parent's checkpoint: write budget.policy: epochs")
			break
		}
	}
	require(slices.Contains(explorable(s.Space), true), "search.promotion", string(s.Promotion),
		"needs a parameter of kind training or system that may change while a trial trains, and on which no parameter of another kind depends")
}
