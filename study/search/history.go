package search

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// status is where a trial is, as far as a search can know.
type status string

const (
	out      status = "out"      // with a worker, or waiting for one
	measured status = "measured" // at its rung, it may be promoted
	failed   status = "failed"   // at its rung, for good
	stopped  status = "stopped"  // at its rung before its end, for good: it was beaten
)

// record is everything a search knows of a trial.
type record struct {
	// Params is the configuration's key, which is its JSON: it never changes,
	// so that snapshots need not write it anew.
	Params json.RawMessage `json:"params"`
	Origin string          `json:"origin"`
	// Bracket counts from 1, in the order in which they began; 0 where trials
	// of all brackets share the rungs.
	Bracket int    `json:"bracket,omitempty"`
	Start   int    `json:"start"`
	Rung    int    `json:"rung"`
	Status  status `json:"status"`
	// Results has the objectives' values of each completed rung, from Start.
	Results [][]trial.Float `json:"results,omitempty"`
	// Parent is the trial it continues, for a child of a population. Replaced
	// says that a child took its place, so that it goes nowhere any more.
	Parent   *int `json:"parent,omitempty"`
	Replaced bool `json:"replaced,omitempty"`
	// Reports has what it reported on the way, where trials may be stopped.
	Reports []observation `json:"reports,omitempty"`
	// Arrived is the place of the first outcome among those of all trials, from
	// 1; 0 while there is none. Snapshots of older programs lack it.
	Arrived int `json:"arrived,omitempty"`
	// Draw is what the proposer has to know of its draw besides.
	Draw *draw `json:"draw,omitempty"`
	// Parts has origin and draw of each part of the space, where there are
	// several with methods of their own.
	Parts map[string]shareOf `json:"parts,omitempty"`
	// Violations has the violation of each completed rung up to the last that
	// is not 0.
	Violations []trial.Float `json:"violations,omitempty"`
}

// violation is by how much the constraints were missed at a completed rung,
// counted from Start.
func (t *record) violation(completed int) trial.Float {
	if completed < len(t.Violations) {
		return t.Violations[completed]
	}
	return 0
}

// draw is a point before it was decoded, which loses where in its share of the
// interval a coordinate was, and what parameters had that do not exist.
type draw struct {
	// Run counts the proposer's restarts before the draw.
	Run int `json:"run,omitempty"`
	// Point has a coordinate for each parameter, in the unit cube.
	Point []float64 `json:"point"`
}

// history is what happened so far. Everything but the records is derived from
// them, and the same whatever the order in which it was derived.
type history struct {
	cube     *space.Cube
	maximize []bool
	ladder   []budget.Rung
	eta      int
	trials   []record
	points   [][]float64 // the trials' configurations in the unit cube
	taken    map[string]bool
	arrivals []int  // trials in the order of their first outcomes
	rungs    []rung // by budget, whatever the bracket
	started  []int  // trials by their starting rung
	// originals are the trials without a parent.
	originals int
	out       int
	waiting   []int // trials without any outcome yet, the newest first
	// brackets has the brackets that rank their trials by themselves, in the
	// order in which they began; those before firstOpen are over.
	brackets  []bracket
	firstOpen int
	// scores has the intermediate values where trials compare, best first.
	scores map[moment][]float64
	// halving says that trials pass all rungs in one go and are stopped on the
	// way (see [HalvingRule]).
	halving bool
	// agreements keeps, for each rung but the top one, what was computed last.
	agreements []agreement
	// partial says that the history is the view of one part of the space: what
	// is tried twice there, or close together, may differ elsewhere.
	partial bool
	part    string
}

func newHistory(settings Settings) *history {
	return &history{
		cube:       settings.Space.Cube(),
		maximize:   settings.Maximize,
		ladder:     settings.Rungs,
		eta:        settings.Eta,
		scores:     make(map[moment][]float64),
		halving:    settings.EarlyStopping != nil && settings.EarlyStopping.Rule == HalvingRule,
		taken:      make(map[string]bool),
		rungs:      make([]rung, len(settings.Rungs)),
		started:    make([]int, len(settings.Rungs)),
		agreements: make([]agreement, len(settings.Rungs)),
	}
}

// create adds a trial that starts at the slot and returns its number.
func (h *history) create(p proposal, at slot) int {
	key := p.configuration.Key()
	h.trials = append(h.trials, record{
		Params: json.RawMessage(key), Origin: p.origin, Bracket: at.bracket, Start: at.rung, Rung: at.rung, Status: out,
		Draw: p.draw, Parts: p.parts,
	})
	h.points = append(h.points, h.cube.Encode(p.configuration))
	h.taken[key] = true
	h.started[at.rung]++
	h.waiting = slices.Insert(h.waiting, 0, len(h.trials)-1)
	h.originals++
	h.out++
	if at.bracket > len(h.brackets) {
		h.brackets = append(h.brackets, bracket{start: at.rung, rungs: make([]rung, len(h.rungs)-at.rung)})
	}
	if at.bracket > 0 {
		h.brackets[at.bracket-1].created++
	}
	return len(h.trials) - 1
}

func (h *history) measure(number int, values []trial.Float, violation trial.Float) {
	t := &h.trials[number]
	t.Status = measured
	t.Results = append(t.Results, values)
	if violation > 0 {
		violations := make([]trial.Float, len(t.Results))
		copy(violations, t.Violations)
		violations[len(violations)-1] = violation
		t.Violations = violations
	}
	h.rank(t, h.entryOf(number))
	h.arrived(number)
	h.out--
}

// entryOf is the newest measurement of a trial, as rankings take it in.
func (h *history) entryOf(number int) entry {
	t := &h.trials[number]
	last := len(t.Results) - 1
	e := entry{trial: number, score: scoreOf(t.Results[last], h.maximize), violation: float64(t.violation(last))}
	if math.IsInf(e.violation, 1) {
		e.score, e.violation = math.Inf(-1), 0 // no more is known of it than of one that diverged
	}
	return e
}

func (h *history) fail(number int) {
	t := &h.trials[number]
	t.Status = failed
	h.rank(t, entry{trial: number, failed: true})
	h.arrived(number)
	h.out--
}

// first is the trial's first outcome and the rung it belongs to, once there is
// one: what comes later does not change it. The score of one that failed, was
// stopped before it had a value, or misses the constraints, is -Inf.
func (h *history) first(number int) (rung int, score float64) {
	t := &h.trials[number]
	if h.halving {
		for _, o := range t.Reports {
			if i := h.rungAt(o.Epoch); i >= 0 {
				return i, scoreOf(o.Values, h.maximize)
			}
		}
	}
	switch {
	case len(t.Results) > 0:
		if t.violation(0) > 0 {
			return t.Start, math.Inf(-1)
		}
		return t.Start, scoreOf(t.Results[0], h.maximize)
	case h.halving:
		return 0, math.Inf(-1)
	}
	return t.Start, math.Inf(-1)
}

// draw is what the proposer noted of the trial's draw, nil if nothing.
func (h *history) draw(number int) *draw {
	d := h.trials[number].Draw
	if h.partial {
		d = h.trials[number].Parts[h.part].Draw
	}
	if d != nil && len(d.Point) != len(h.cube.Dimensions()) {
		return nil // a damaged snapshot's
	}
	return d
}

// origin is where the trial's configuration came from.
func (h *history) origin(number int) string {
	if h.partial {
		return h.trials[number].Parts[h.part].Origin
	}
	return h.trials[number].Origin
}

// rank takes the outcome into the rankings that the trial is in now.
func (h *history) rank(t *record, e entry) {
	point := h.pointOf(t, e)
	h.rungs[t.Rung].add(e, point)
	if t.Bracket > 0 {
		b := &h.brackets[t.Bracket-1]
		b.rungs[t.Rung-b.start].add(e, point)
		// Who went up by a final promotion may be the bracket's best now.
		b.over, h.firstOpen = false, min(h.firstOpen, t.Bracket-1)
	}
}

// promote sends a measured trial one rung up.
func (h *history) promote(number int) {
	t := &h.trials[number]
	e := h.entryOf(number)
	h.rungs[t.Rung].promote(e)
	if t.Bracket > 0 {
		b := &h.brackets[t.Bracket-1]
		b.rungs[t.Rung-b.start].promote(e)
		b.halved = true // the first promotion of a bracket is one from its start
		// A final promotion comes when the bracket had nobody to send up.
		b.over, h.firstOpen = false, min(h.firstOpen, t.Bracket-1)
	}
	t.Status, t.Rung = out, t.Rung+1
	h.out++
}

// pending returns the trials that were created and never measured, from the
// newest to the oldest. The list is the history's own.
func (h *history) pending() []int { return h.waiting }

// arrived notes that the trial has an outcome: with its first one it goes from
// the list of those without to that of those with one.
func (h *history) arrived(number int) {
	if t := &h.trials[number]; t.Arrived == 0 {
		h.arrivals = append(h.arrivals, number)
		t.Arrived = len(h.arrivals)
	}
	// The newest come first, so the numbers fall.
	if at, found := slices.BinarySearchFunc(h.waiting, number, func(a, b int) int { return b - a }); found {
		h.waiting = slices.Delete(h.waiting, at, at+1)
	}
}

// configuration is that of the trial.
func (h *history) configuration(number int) space.Configuration {
	var configuration space.Configuration
	// It is the configuration's own JSON, or a snapshot's that was checked.
	_ = json.Unmarshal(h.trials[number].Params, &configuration)
	return configuration
}

// fits returns why the event of a trial with the status at the rung cannot be,
// if it cannot.
func (h *history) fits(e Event, now status, rung int) error {
	switch {
	case now != out:
		return problem.New(problem.Conflict, "trial %d is %s at rung %d already: it is not out with a worker", e.Trial, now, rung)
	case rung != e.Rung:
		return problem.New(problem.Conflict, "trial %d is at rung %d, not at rung %d", e.Trial, rung, e.Rung)
	case e.Kind == Reported && (e.Epoch < 1 || e.Epoch >= h.ladder[rung].Budget.Epochs):
		return problem.New(problem.Conflict, "trial %d has no epoch %d before the end of rung %d, which is epoch %d",
			e.Trial, e.Epoch, rung, h.ladder[rung].Budget.Epochs)
	case e.Kind != Failed && len(e.Values) != len(h.maximize):
		return problem.New(problem.Invalid, "trial %d has %d values for %d objectives", e.Trial, len(e.Values), len(h.maximize))
	case !(e.Violation >= 0):
		return problem.New(problem.Invalid, "trial %d has the violation %v: it must be 0 or more", e.Trial, float64(e.Violation))
	}
	return nil
}
