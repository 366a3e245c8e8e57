package search

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/regression"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// Repeats lets a search train its best configurations again before it ends,
// each as a new trial with another seed: what one training came to is partly
// luck, and the best of many is partly the luckiest.
type Repeats struct {
	// Trials is how many configurations are trained again, at least 1: the best
	// feasible ones at the top rung.
	Trials int `json:"trials"`
	// Times is how many results at the top rung each of them gets in all, with
	// those it has; 1 for none more.
	Times int `json:"times"`
	// Present repeats the study's first trial too, which has the present settings, and
	// ends the repeats once the others can be told from it.
	Present bool `json:"present,omitempty"`
}

// Looks is how often the repeats can be compared with the present settings.
func (r Repeats) Looks() int { return max(1, r.Times-2) }

// The most a search repeats.
const (
	MaxRepeatedTrials = 100
	MaxRepeatedTimes  = 100
)

// repeat is a training of another trial's configuration. It is no record of the
// history: nothing is ranked, promoted or learnt by it.
type repeat struct {
	Of     int           `json:"of"`
	Status ladder.Status `json:"status"` // out, measured or failed
	// Value is the first objective's, where it is compared with the present settings.
	Value *trial.Float `json:"value,omitempty"`
}

// repeats are the trainings again of the best, which begin when the search has
// nothing else left to do: their numbers follow those of its trials, and the
// rankings do not change any more.
type repeats struct {
	settings *Repeats
	list     []repeat
	out      int
	// chosen follows from the rankings; it is kept once the first has begun.
	chosen []favourite
}

// favourite is a configuration that is trained again.
type favourite struct {
	trial int
	place int // in the ranking of the top rung, from 0; -1 for one that is not among the best
	// has is how many results at the top rung the search's own trials gave it:
	// more than one where it was drawn more than once.
	has int
}

func (r *repeats) begun() bool { return len(r.list) > 0 }

// choose returns the best configurations at the top rung that keep to the
// constraints, the best first.
func (r *repeats) choose(h *ladder.History) []favourite {
	if r.begun() && r.chosen != nil {
		return r.chosen
	}
	var chosen []favourite
	places := make(map[string]int) // in chosen, by configuration
	ranking := h.Rungs[len(h.Rungs)-1].Entries
	for place, e := range ranking {
		key := string(h.Trials[e.Trial].Params)
		if at, again := places[key]; again {
			if !e.Failed {
				chosen[at].has++
			}
			continue
		}
		if len(chosen) < r.settings.Trials && !e.Failed && !e.Diverged() && e.Violation == 0 {
			places[key] = len(chosen)
			chosen = append(chosen, favourite{trial: e.Trial, place: place, has: 1})
		}
	}
	if r.settings.Present && measured(h, 0) {
		if _, among := places[string(h.Trials[0].Params)]; !among {
			present := favourite{trial: 0, place: -1}
			for _, e := range ranking {
				if !e.Failed && string(h.Trials[e.Trial].Params) == string(h.Trials[0].Params) {
					present.has++
				}
			}
			chosen = append(chosen, present)
		}
	}
	r.chosen = chosen
	return chosen
}

// measured reports whether the trial has a result that is a number.
func measured(h *ladder.History, number int) bool {
	return slices.ContainsFunc(h.Rungs, func(rung ladder.Rung) bool {
		return slices.ContainsFunc(rung.Entries, func(e ladder.Entry) bool { return e.Trial == number && !e.Failed && !e.Diverged() })
	})
}

// separated reports whether one of the others is better than the present settings beyond
// chance, or all are worse.
func (r *repeats) separated(h *ladder.History) bool {
	if !r.settings.Present {
		return false
	}
	values, others, worse := map[int][]float64{}, 0, 0
	for _, one := range r.list {
		if one.Value != nil {
			values[one.Of] = append(values[one.Of], float64(*one.Value))
		}
	}
	for _, c := range r.choose(h) {
		if c.trial == 0 {
			continue
		}
		others++
		found := regression.Compare(values[c.trial], values[0], r.settings.Trials, r.settings.Looks())
		switch {
		case !found.Separated():
		case found.Difference > 0 == h.Maximize[0]:
			return true
		default:
			worse++
		}
	}
	return others > 0 && worse == others
}

// tally is how often the trial was repeated so far, and how many of those
// trainings are owed: as many as it wants, and one more for each of them that
// failed. One that failed in place of another is not trained again.
func (r *repeats) tally(c favourite) (begun, owed int) {
	wanted := max(0, r.settings.Times-c.has)
	owed = wanted
	for _, one := range r.list {
		if one.Of != c.trial {
			continue
		}
		if begun < wanted && one.Status == ladder.Failed {
			owed++
		}
		begun++
	}
	return begun, owed
}

// next is the favourite that is trained next: the one with the fewest trainings,
// of equals the best one, so that the same was spent on all whenever it ends.
func (r *repeats) next(h *ladder.History) (next favourite, nth int, ok bool) {
	if r.settings == nil || r.separated(h) {
		return favourite{}, 0, false
	}
	for _, c := range r.choose(h) {
		begun, owed := r.tally(c)
		if begun < owed && (!ok || c.has+begun < nth) {
			next, nth, ok = c, c.has+begun, true
		}
	}
	return next, nth + 1, ok
}

// finish answers a request when the search has nothing else left to do.
func (m *Method) finish() Action {
	h, r := m.history, &m.repeats
	c, nth, ok := r.next(h)
	switch {
	case ok:
		return m.again(c, nth)
	case r.out > 0:
		return Action{Kind: Wait, Reason: "the best are trained again, and a repeat that is out may fail"}
	case r.begun():
		return Action{Kind: Finish, Reason: "all trials are created, none is left to promote, and the best were repeated"}
	}
	return Action{Kind: Finish, Reason: "all trials are created and none is left to promote"}
}

// again creates a trial that trains a configuration for the nth time.
func (m *Method) again(c favourite, nth int) Action {
	h, r := m.history, &m.repeats
	reason := fmt.Sprintf("trains trial %d again, number %d of %d at the top rung: training %d of %d", c.trial, c.place+1,
		len(h.Rungs[len(h.Rungs)-1].Entries), nth, r.settings.Times)
	if c.place < 0 {
		reason = fmt.Sprintf("trains trial %d again, the present settings: training %d of %d", c.trial, nth, r.settings.Times)
	}
	if nth > r.settings.Times {
		reason += ", in place of one that failed"
	}
	r.list = append(r.list, repeat{Of: c.trial, Status: ladder.Out})
	r.out++
	of := c.trial
	return Action{
		Kind: Create, Trial: len(h.Trials) + len(r.list) - 1, Rung: len(h.Rungs) - 1, RepeatOf: &of,
		Configuration: h.Configuration(c.trial), Origin: propose.OriginRepeat, Reason: reason,
	}
}

// at is the repeat with the number of a trial; nil if there is none.
func (m *Method) at(number int) *repeat {
	if place := number - len(m.history.Trials); place >= 0 && place < len(m.repeats.list) {
		return &m.repeats.list[place]
	}
	return nil
}

// possible returns why the event of a trial cannot be, if it cannot.
func (m *Method) possible(e Event) error {
	h := m.history
	if again := m.at(e.Trial); again != nil {
		return checkOutcome(h, e, again.Status, len(h.Rungs)-1)
	}
	if e.Trial < 0 || e.Trial >= len(h.Trials) {
		return problem.New(problem.NotFound, "the search knows no trial %d: it has created %d", e.Trial, len(h.Trials)+len(m.repeats.list))
	}
	return checkOutcome(h, e, h.Trials[e.Trial].Status, h.Trials[e.Trial].Rung)
}

// checkOutcome returns why the event of a trial with the status at the rung cannot be,
// if it cannot.
func checkOutcome(h *ladder.History, e Event, now ladder.Status, rung int) error {
	switch {
	case now != ladder.Out:
		return problem.New(problem.Conflict, "trial %d is %s at rung %d already: it is not out with a worker", e.Trial, now, rung)
	case rung != e.Rung:
		return problem.New(problem.Conflict, "trial %d is at rung %d, not at rung %d", e.Trial, rung, e.Rung)
	case e.Kind == Reported && (e.Epoch < 1 || e.Epoch >= h.Ladder[rung].Budget.Epochs):
		return problem.New(problem.Conflict, "trial %d has no epoch %d before the end of rung %d, which is epoch %d",
			e.Trial, e.Epoch, rung, h.Ladder[rung].Budget.Epochs)
	case e.Kind != Failed && len(e.Values) != len(h.Maximize):
		return problem.New(problem.Invalid, "trial %d has %d values for %d objectives", e.Trial, len(e.Values), len(h.Maximize))
	case !(e.Violation >= 0):
		return problem.New(problem.Invalid, "trial %d has the violation %v: it must be 0 or more", e.Trial, float64(e.Violation))
	}
	return nil
}

// over notes the outcome of a repeat. What it came to is the search's concern only where
// it is compared with the present settings.
func (r *repeats) over(again *repeat, e Event) {
	again.Status = ladder.Measured
	if e.Kind == Failed {
		again.Status = ladder.Failed
	} else if r.settings.Present {
		value := e.Values[0]
		again.Value = &value
	}
	r.out--
}

// restore puts recorded repeats behind a history, with which they must agree.
func (r *repeats) restore(h *ladder.History, queue []space.Configuration, list []repeat) error {
	if len(list) == 0 {
		return nil
	}
	if r.settings == nil || h.Out > 0 || len(queue) > 0 {
		return problem.New(problem.Invalid, "the snapshot has %d repeats, which begin only in a search with search.repeats that has nothing else left to do", len(list))
	}
	chosen := r.choose(h)
	r.list = list
	known := 0
	for _, c := range chosen {
		begun, owed := r.tally(c)
		if begun > owed {
			return problem.New(problem.Invalid, "the snapshot's trial %d was repeated %d times, at most %d are wanted", c.trial, begun, owed)
		}
		known += begun
	}
	if known != len(list) {
		return problem.New(problem.Invalid, "the snapshot repeats a trial that is not among the best")
	}
	for i, one := range list {
		switch one.Status {
		case ladder.Out:
			r.out++
		case ladder.Measured, ladder.Failed:
		default:
			return problem.New(problem.Invalid, "the snapshot's repeat %d is %q, which it cannot be", i, one.Status)
		}
	}
	return nil
}
