package search

import (
	"encoding/json"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/prior"
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
	Trials    []ladder.Record  `json:"trials"`
	// Queue is what was enqueued and not created yet.
	Queue []space.Configuration `json:"queue,omitempty"`
	// Retries has, for each of the queue, the failed trial that it is of; empty where
	// none of them is of one.
	Retries []*int `json:"retries,omitempty"`
	// Prior is what was measured elsewhere, and Best what is tried first of it.
	Prior []Observation      `json:"prior,omitempty"`
	Best  []prior.Suggestion `json:"best,omitempty"`
	// Repeats are numbered behind the trials.
	Repeats []repeat `json:"repeats,omitempty"`
}

// Snapshot returns the whole state.
func (m *Method) Snapshot() (json.RawMessage, error) {
	generator, err := m.source.MarshalBinary()
	if err != nil {
		return nil, problem.New(problem.Internal, "save the random generator: %w", err)
	}
	waiting, retries := m.waits()
	text, err := json.Marshal(snapshot{
		Version: snapshotVersion, Method: m.settings.Method, Promotion: m.settings.Promotion,
		Generator: generator, Trials: m.history.Trials,
		Queue: waiting, Retries: retries, Prior: m.prior.Observations, Best: m.prior.Best, Repeats: m.repeats.list,
	})
	if err != nil {
		return nil, problem.New(problem.Internal, "save the search: %w", err)
	}
	return text, nil
}

// waits is the queue as snapshots have it.
func (m *Method) waits() (waiting []space.Configuration, retries []*int) {
	of := make([]*int, len(m.queue))
	for i, one := range m.queue {
		waiting, of[i] = append(waiting, one.configuration), one.retryOf
		if one.retryOf != nil {
			retries = of
		}
	}
	return waiting, retries
}

// Restore puts the state of a snapshot, taken with the same settings, in place. After an error the state is what it was before.
func (m *Method) Restore(text json.RawMessage) error {
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
	h := m.settings.newHistory()
	for number, t := range s.Trials {
		if !m.promotion.Allows(h, ladder.Slot{Bracket: t.Bracket, Rung: t.Start}) {
			return problem.New(problem.Invalid, "the snapshot's trial %d starts where %s promotion starts none", number, m.settings.Promotion)
		}
		if err := h.Replay(m.settings.Space, number, t); err != nil {
			return err
		}
	}
	known, err := m.restorePrior(h, s)
	if err != nil {
		return err
	}
	if err := h.Reorder(s.Trials); err != nil {
		return err
	}
	again := repeats{settings: m.settings.Repeats}
	if err := again.restore(h, s.Queue, s.Repeats); err != nil {
		return err
	}
	// A new proposer: the old one may remember another history of equal length.
	p, err := methods()[m.settings.Method](m.settings)
	if err != nil {
		return err
	}
	m.source, m.history, m.proposer, m.dry = source, h, p, false
	m.queue, m.prior, m.repeats = nil, known, again
	for i, configuration := range s.Queue {
		one := queued{configuration: configuration}
		if i < len(s.Retries) {
			one.retryOf = s.Retries[i]
		}
		m.queue = append(m.queue, one)
	}
	return nil
}

// restorePrior checks what a snapshot has besides the trials, and models again
// what was measured elsewhere.
func (m *Method) restorePrior(h *ladder.History, s snapshot) (prior.Prior, error) {
	waiting := slices.Clone(s.Queue)
	for _, one := range s.Best {
		waiting = append(waiting, one.Configuration)
	}
	for _, of := range s.Retries {
		if of != nil && (*of < 0 || *of >= len(h.Trials) || h.Trials[*of].Status != ladder.Failed) {
			return prior.Prior{}, problem.New(problem.Invalid, "the snapshot tries trial %d again, which has not failed", *of)
		}
	}
	for _, configuration := range waiting {
		if faults := m.settings.Space.Check(configuration); len(faults) > 0 {
			return prior.Prior{}, problem.New(problem.Invalid, "the snapshot's queue does not fit the study's space: %s", faults[0])
		}
	}
	for i, o := range s.Prior {
		if _, fault := m.part(o); fault.Message != "" {
			return prior.Prior{}, problem.New(problem.Invalid, "the snapshot's result %d of elsewhere does not fit the study: %s", i, fault)
		}
	}
	known := prior.New(h, m.settings.Space, s.Prior)
	known.Best = s.Best
	for _, one := range s.Best {
		if known.Source(one.Source) == nil {
			return prior.Prior{}, problem.New(problem.Invalid, "the snapshot tries results of %q first, of which it has none", one.Source)
		}
	}
	return known, nil
}
