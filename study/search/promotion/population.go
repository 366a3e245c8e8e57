package promotion

import (
	"fmt"

	"github.com/tandem-tune/tandem/study/search/ladder"
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

// Earned serves the lowest rung first, so that the population goes up in step
// where workers are few, and there the best trial first, so that the worst ones
// are judged last, against as many as possible.
func (p population) Earned(h *ladder.History, o Outlook) (Step, bool) {
	if h.Originals < p.size && !o.Last {
		return Step{}, false
	}
	for from := range len(h.Rungs) - 1 {
		r := &h.Rungs[from]
		n, fifth := len(r.Entries), len(r.Entries)/exploitShare
		parents := min(fifth, r.Usable())
		for place, e := range r.Entries {
			switch {
			case e.Promoted:
			case (place >= n-fifth || !e.Promotable()) && parents > 0 && o.Room:
				reason := fmt.Sprintf("rank %d of %d at rung %d, where the last %d are replaced", place+1, n, from, fifth)
				return Step{Trial: e.Trial, Reason: reason, Parents: parents}, true
			case e.Promotable():
				reason := fmt.Sprintf("rank %d of %d at rung %d: it goes on", place+1, n, from)
				return Step{Trial: e.Trial, Reason: reason}, true
			}
		}
	}
	return Step{}, false
}

func (p population) Start(*ladder.History) ladder.Slot { return ladder.Slot{} }

func (p population) Full(h *ladder.History) bool { return h.Originals >= p.size }

func (p population) Allows(_ *ladder.History, at ladder.Slot) bool {
	return at.Bracket == 0 && at.Child == (at.Rung > 0)
}

func (population) Earnable(h *ladder.History, _, room int) int {
	count := 0
	for from := range len(h.Rungs) - 1 {
		r := &h.Rungs[from]
		n, fifth := len(r.Entries), len(r.Entries)/exploitShare
		parents := min(fifth, r.Usable()) > 0
		for place, e := range r.Entries {
			switch {
			case e.Promoted:
			case (place >= n-fifth || !e.Promotable()) && parents && room > 0:
				room--
				count++
			case e.Promotable():
				count++
			}
		}
	}
	return count
}
