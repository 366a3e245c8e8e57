// Package ladder is what a search knows of its trials: what came of each at every rung
// of the budget, how they rank there, and how that is written down and read again.
//
// Everything but the records follows from them. Promotions, stopping rules and methods
// read a [History]; the search alone changes it.
package ladder

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// Status is where a trial is, as far as a search can know.
type Status string

// Where a trial can be.
const (
	Out      Status = "out"      // with a worker, or waiting for one
	Measured Status = "measured" // at its rung, it may be promoted
	Failed   Status = "failed"   // at its rung, for good
	stopped  Status = "stopped"  // at its rung before its end, for good: it was beaten
)

// Record is everything a search knows of a trial.
type Record struct {
	// Params is the configuration's key, which is its JSON: it never changes,
	// so that snapshots need not write it anew.
	Params json.RawMessage `json:"params"`
	Origin string          `json:"origin"`
	// Bracket counts from 1, in the order in which they began; 0 where trials
	// of all brackets share the rungs.
	Bracket int    `json:"bracket,omitempty"`
	Start   int    `json:"start"`
	Rung    int    `json:"rung"`
	Status  Status `json:"status"`
	// Results has the objectives' values of each completed rung, from Start.
	Results [][]trial.Float `json:"results,omitempty"`
	// Reports has what it reported on the way, where trials may be stopped.
	Reports []Observation `json:"reports,omitempty"`
	// Arrived is the place of the first outcome among those of all trials, from
	// 1; 0 while there is none. Snapshots of older programs lack it.
	Arrived int `json:"arrived,omitempty"`
	// RetryOf is the failed trial whose configuration it tries again; nil: none.
	RetryOf *int `json:"retry_of,omitempty"`
	// Draw is what the proposer has to know of its draw besides.
	Draw *Draw `json:"draw,omitempty"`
	// Violations has the violation of each completed rung up to the last that
	// is not 0.
	Violations []trial.Float `json:"violations,omitempty"`
}

// violation is by how much the constraints were missed at a completed rung,
// counted from Start.
func (t *Record) violation(completed int) trial.Float {
	if completed < len(t.Violations) {
		return t.Violations[completed]
	}
	return 0
}

// Draw is a point before it was decoded, which loses where in its share of the
// interval a coordinate was, and what parameters had that do not exist.
type Draw struct {
	// Run counts the proposer's restarts before the draw.
	Run int `json:"run,omitempty"`
	// Point has a coordinate for each parameter, in the unit cube.
	Point []float64 `json:"point"`
}

// History is what happened so far. Everything but the records is derived from
// them, and the same whatever the order in which it was derived.
type History struct {
	Cube     *space.Cube
	Maximize []bool
	Ladder   []budget.Rung
	Eta      int
	Trials   []Record
	Points   [][]float64 // the trials' configurations in the unit cube
	Taken    map[string]bool
	Arrivals []int  // trials in the order of their first outcomes
	Rungs    []Rung // by budget, whatever the bracket
	Started  []int  // trials by their starting rung
	Out      int
	waiting  []int // trials without any outcome yet, the newest first
	// Brackets has the brackets that rank their trials by themselves, in the
	// order in which they began; those before firstOpen are over.
	Brackets  []Bracket
	FirstOpen int
	// Scores has the intermediate values where trials compare, best first.
	Scores map[Moment][]float64
	// halving says that trials pass all rungs in one go and are stopped on the
	// way (the stopping rule halving).
	halving bool
}

// New returns that of a search without trials. halving says that trials pass
// all rungs in one go and are stopped on the way.
func New(s space.Space, rungs []budget.Rung, eta int, maximize []bool, halving bool) *History {
	return &History{
		Cube:     s.Cube(),
		Maximize: maximize,
		Ladder:   rungs,
		Eta:      eta,
		Scores:   make(map[Moment][]float64),
		halving:  halving,
		Taken:    make(map[string]bool),
		Rungs:    make([]Rung, len(rungs)),
		Started:  make([]int, len(rungs)),
	}
}

// Create adds a trial that starts at the slot and returns its number.
func (h *History) Create(p Proposal, at Slot) int {
	key := p.Configuration.Key()
	h.Trials = append(h.Trials, Record{
		Params: json.RawMessage(key), Origin: p.Origin, Bracket: at.Bracket, Start: at.Rung, Rung: at.Rung, Status: Out,
		Draw: p.Draw, RetryOf: p.RetryOf,
	})
	h.Points = append(h.Points, h.Cube.Encode(p.Configuration))
	h.Taken[key] = true
	h.Started[at.Rung]++
	h.waiting = slices.Insert(h.waiting, 0, len(h.Trials)-1)
	h.Out++
	if at.Bracket > len(h.Brackets) {
		h.Brackets = append(h.Brackets, Bracket{Start: at.Rung, Rungs: make([]Rung, len(h.Rungs)-at.Rung)})
	}
	if at.Bracket > 0 {
		h.Brackets[at.Bracket-1].Created++
	}
	return len(h.Trials) - 1
}

func (h *History) Measure(number int, values []trial.Float, violation trial.Float) {
	t := &h.Trials[number]
	t.Status = Measured
	t.Results = append(t.Results, values)
	if violation > 0 {
		violations := make([]trial.Float, len(t.Results))
		copy(violations, t.Violations)
		violations[len(violations)-1] = violation
		t.Violations = violations
	}
	h.rank(t, h.entryOf(number))
	h.arrived(number)
	h.Out--
}

// entryOf is the newest measurement of a trial, as rankings take it in.
func (h *History) entryOf(number int) Entry {
	t := &h.Trials[number]
	last := len(t.Results) - 1
	e := Entry{Trial: number, Score: ScoreOf(t.Results[last], h.Maximize), Violation: float64(t.violation(last))}
	if math.IsInf(e.Violation, 1) {
		e.Score, e.Violation = math.Inf(-1), 0 // no more is known of it than of one that diverged
	}
	return e
}

func (h *History) Fail(number int) {
	t := &h.Trials[number]
	t.Status = Failed
	h.rank(t, Entry{Trial: number, Failed: true})
	h.arrived(number)
	h.Out--
}

// First is the trial's first outcome and the rung it belongs to, once there is
// one: what comes later does not change it. The score of one that failed, was
// stopped before it had a value, or misses the constraints, is -Inf.
func (h *History) First(number int) (rung int, score float64) {
	t := &h.Trials[number]
	if h.halving {
		for _, o := range t.Reports {
			if i := h.RungAt(o.Epoch); i >= 0 {
				return i, ScoreOf(o.Values, h.Maximize)
			}
		}
	}
	switch {
	case len(t.Results) > 0:
		if t.violation(0) > 0 {
			return t.Start, math.Inf(-1)
		}
		return t.Start, ScoreOf(t.Results[0], h.Maximize)
	case h.halving:
		return 0, math.Inf(-1)
	}
	return t.Start, math.Inf(-1)
}

// Draw is what the proposer noted of the trial's draw, nil if nothing.
func (h *History) Draw(number int) *Draw {
	d := h.Trials[number].Draw
	if d != nil && len(d.Point) != len(h.Cube.Dimensions()) {
		return nil // a damaged snapshot's
	}
	return d
}

// Origin is where the trial's configuration came from.
func (h *History) Origin(number int) string { return h.Trials[number].Origin }

// rank takes the outcome into the rankings that the trial is in now.
func (h *History) rank(t *Record, e Entry) {
	point := h.pointOf(t, e)
	h.Rungs[t.Rung].Add(e, point)
	if t.Bracket > 0 {
		b := &h.Brackets[t.Bracket-1]
		b.Rungs[t.Rung-b.Start].Add(e, point)
		// Who went up by a final promotion may be the bracket's best now.
		b.Over, h.FirstOpen = false, min(h.FirstOpen, t.Bracket-1)
	}
}

// Promote sends a measured trial one rung up.
func (h *History) Promote(number int) {
	t := &h.Trials[number]
	e := h.entryOf(number)
	h.Rungs[t.Rung].Promote(e)
	if t.Bracket > 0 {
		b := &h.Brackets[t.Bracket-1]
		b.Rungs[t.Rung-b.Start].Promote(e)
		b.Halved = true // the first promotion of a bracket is one from its start
		// A final promotion comes when the bracket had nobody to send up.
		b.Over, h.FirstOpen = false, min(h.FirstOpen, t.Bracket-1)
	}
	t.Status, t.Rung = Out, t.Rung+1
	h.Out++
}

// Pending returns the trials that were created and never measured, from the
// newest to the oldest. The list is the history's own.
func (h *History) Pending() []int { return h.waiting }

// arrived notes that the trial has an outcome: with its first one it goes from
// the list of those without to that of those with one.
func (h *History) arrived(number int) {
	if t := &h.Trials[number]; t.Arrived == 0 {
		h.Arrivals = append(h.Arrivals, number)
		t.Arrived = len(h.Arrivals)
	}
	// The newest come first, so the numbers fall.
	if at, found := slices.BinarySearchFunc(h.waiting, number, func(a, b int) int { return b - a }); found {
		h.waiting = slices.Delete(h.waiting, at, at+1)
	}
}

// Configuration is that of the trial.
func (h *History) Configuration(number int) space.Configuration {
	var configuration space.Configuration
	// It is the configuration's own JSON, or a snapshot's that was checked.
	_ = json.Unmarshal(h.Trials[number].Params, &configuration)
	return configuration
}
