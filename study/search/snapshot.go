package search

import (
	"encoding/json"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
)

// snapshotVersion changes when an older reader would misunderstand a snapshot.
const snapshotVersion = 1

// snapshot is the whole state. Rankings, models and shares follow from it.
type snapshot struct {
	Version int    `json:"version"`
	Method  string `json:"method"`
	// Promotion is missing in snapshots of programs that knew one only.
	Promotion budget.Promotion `json:"promotion,omitempty"`
	Generator []byte           `json:"generator"`
	Trials    []record         `json:"trials"`
	// Queue is what was enqueued and not created yet.
	Queue []space.Configuration `json:"queue,omitempty"`
	// Prior is what was measured elsewhere, and Best what is tried first of it.
	Prior []Observation `json:"prior,omitempty"`
	Best  []suggestion  `json:"best,omitempty"`
	// Repeats are numbered behind the trials.
	Repeats []repeat `json:"repeats,omitempty"`
}

// Snapshot implements [Method].
func (m *machine) Snapshot() (json.RawMessage, error) {
	generator, err := m.source.MarshalBinary()
	if err != nil {
		return nil, problem.New(problem.Internal, "save the random generator: %w", err)
	}
	text, err := json.Marshal(snapshot{
		Version: snapshotVersion, Method: m.settings.Method, Promotion: m.settings.Promotion,
		Generator: generator, Trials: m.history.trials,
		Queue: m.queue, Prior: m.prior.observations, Best: m.prior.best, Repeats: m.repeats.list,
	})
	if err != nil {
		return nil, problem.New(problem.Internal, "save the search: %w", err)
	}
	return text, nil
}

// Restore implements [Method]. After an error the state is what it was before.
func (m *machine) Restore(text json.RawMessage) error {
	var s snapshot
	if err := json.Unmarshal(text, &s); err != nil {
		return problem.New(problem.Invalid, "the snapshot of the search cannot be read: %w", err)
	}
	if s.Version != snapshotVersion || s.Method != m.settings.Method {
		return problem.New(problem.Invalid, "the snapshot is of method %q, version %d; expected %q, version %d",
			s.Method, s.Version, m.settings.Method, snapshotVersion)
	}
	if promotion := s.Promotion.OrDefault(); promotion != m.settings.Promotion {
		return problem.New(problem.Invalid, "the snapshot is of a search with promotion %q; expected %q", promotion, m.settings.Promotion)
	}
	source := new(rand.PCG)
	if err := source.UnmarshalBinary(s.Generator); err != nil {
		return problem.New(problem.Invalid, "the snapshot's random generator cannot be read: %w", err)
	}
	h := newHistory(m.settings)
	for number, t := range s.Trials {
		if !m.promotion.allows(h, slot{t.Bracket, t.Start, t.Parent != nil}) {
			return problem.New(problem.Invalid, "the snapshot's trial %d starts where %s promotion starts none", number, m.settings.Promotion)
		}
		if err := h.replay(m.settings.Space, number, t); err != nil {
			return err
		}
	}
	known, err := m.restorePrior(h, s)
	if err != nil {
		return err
	}
	if err := h.reorder(s.Trials); err != nil {
		return err
	}
	again := repeats{settings: m.settings.Repeats}
	if err := again.restore(h, s.Queue, s.Repeats); err != nil {
		return err
	}
	// A new proposer: the old one may remember another history of equal length.
	p, err := newProposer(m.settings)
	if err != nil {
		return err
	}
	m.source, m.history, m.proposer, m.dry = source, h, p, false
	m.queue, m.prior, m.repeats = s.Queue, known, again
	return nil
}

// replay puts a recorded trial through its life again.
func (h *history) replay(s space.Space, number int, t record) error {
	completed := t.Rung - t.Start
	if t.Status == measured {
		completed++
	}
	known := slices.Contains([]status{out, measured, failed, stopped}, t.Status)
	if !known || t.Start < 0 || t.Rung < t.Start || t.Rung >= len(h.rungs) || len(t.Results) != completed || len(t.Violations) > completed {
		return problem.New(problem.Invalid, "the snapshot's trial %d is at a rung that the study's ladder does not have", number)
	}
	if t.Parent != nil && (*t.Parent < 0 || *t.Parent >= number) || t.Replaced && (t.Status == out || t.Rung == len(h.rungs)-1) {
		return problem.New(problem.Invalid, "the snapshot's trial %d has a place in a population that cannot be", number)
	}
	var configuration space.Configuration
	if err := json.Unmarshal(t.Params, &configuration); err != nil {
		return problem.New(problem.Invalid, "the snapshot's trial %d has no readable configuration: %w", number, err)
	}
	if faults := s.Check(configuration); len(faults) > 0 {
		return problem.New(problem.Invalid, "the snapshot's trial %d does not fit the study's space: %s", number, faults[0])
	}
	if !t.drawn(len(s.Parameters)) {
		return problem.New(problem.Invalid, "the snapshot's trial %d was drawn at no point of the study's space", number)
	}
	h.create(proposal{configuration: configuration, origin: t.Origin, draw: t.Draw, parts: t.Parts}, slot{t.Bracket, t.Start, t.Parent != nil})
	if t.Parent != nil {
		h.adopt(number, *t.Parent)
	}
	for i, values := range t.Results {
		if len(values) != len(h.maximize) {
			return problem.New(problem.Invalid, "the snapshot's trial %d has %d values for %d objectives", number, len(values), len(h.maximize))
		}
		violation := t.violation(i)
		if !(violation >= 0) {
			return problem.New(problem.Invalid, "the snapshot's trial %d has a violation below 0", number)
		}
		h.measure(number, values, violation)
		if at := t.Start + i; at < t.Rung {
			h.promote(number)
		}
	}
	if err := h.replayReports(number, t); err != nil {
		return err
	}
	switch t.Status {
	case failed:
		h.fail(number)
	case stopped:
		h.stop(number)
	}
	if t.Replaced {
		h.replace(number)
	}
	return nil
}

// drawn reports whether the record's draws can be of a space of n parameters.
func (t *record) drawn(n int) bool {
	outside := func(u float64) bool { return !(u >= 0 && u <= 1) }
	if t.Draw != nil && (len(t.Draw.Point) != n || slices.ContainsFunc(t.Draw.Point, outside)) {
		return false
	}
	for _, one := range t.Parts {
		if one.Draw != nil && (len(one.Draw.Point) > n || slices.ContainsFunc(one.Draw.Point, outside)) {
			return false
		}
	}
	return true
}

// replayReports puts a recorded trial's intermediate values back.
func (h *history) replayReports(number int, t record) error {
	for _, o := range t.Reports {
		within := o.Rung >= t.Start && o.Rung <= t.Rung && o.Epoch >= 1 && o.Epoch < h.ladder[o.Rung].Budget.Epochs
		if !within || len(o.Values) != len(h.maximize) || h.trials[number].known(moment{o.Rung, o.Epoch}) {
			return problem.New(problem.Invalid, "the snapshot's trial %d has a report that cannot be, of epoch %d at rung %d", number, o.Epoch, o.Rung)
		}
		h.report(number, o)
	}
	return nil
}

// reorder puts the first outcomes, which were replayed trial by trial, in the
// order in which they came. Older snapshots do not tell it.
func (h *history) reorder(trials []record) error {
	if !slices.ContainsFunc(trials, func(t record) bool { return t.Arrived != 0 }) {
		return nil
	}
	order := make([]int, len(h.arrivals))
	for i := range order {
		order[i] = -1
	}
	for number, t := range trials {
		arrived := h.trials[number].Arrived > 0
		if !arrived && t.Arrived == 0 {
			continue
		}
		if !arrived || t.Arrived < 1 || t.Arrived > len(order) || order[t.Arrived-1] >= 0 {
			return problem.New(problem.Invalid, "the snapshot's trial %d had outcome %d of %d, which cannot be", number, t.Arrived, len(order))
		}
		order[t.Arrived-1], h.trials[number].Arrived = number, t.Arrived
	}
	h.arrivals = order
	return nil
}

// restorePrior checks what a snapshot has besides the trials, and models again
// what was measured elsewhere.
func (m *machine) restorePrior(h *history, s snapshot) (prior, error) {
	waiting := slices.Clone(s.Queue)
	for _, one := range s.Best {
		waiting = append(waiting, one.Configuration)
	}
	for _, configuration := range waiting {
		if faults := m.settings.Space.Check(configuration); len(faults) > 0 {
			return prior{}, problem.New(problem.Invalid, "the snapshot's queue does not fit the study's space: %s", faults[0])
		}
	}
	for i, o := range s.Prior {
		if _, fault := m.part(o); fault.Message != "" {
			return prior{}, problem.New(problem.Invalid, "the snapshot's result %d of elsewhere does not fit the study: %s", i, fault)
		}
	}
	known := newPrior(h, s.Prior)
	known.best = s.Best
	for _, one := range s.Best {
		if known.source(one.Source) == nil {
			return prior{}, problem.New(problem.Invalid, "the snapshot tries results of %q first, of which it has none", one.Source)
		}
	}
	return known, nil
}
