package study

import (
	"context"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/rules"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

const (
	// mostChangesShown is how many of them are listed.
	mostChangesShown = 50
)

// notWanted is why a worker is drained by advice, as everybody is told.
const notWanted = "by the forecast of the demand it is not wanted now (an estimate)"

// Situation is what a [demand.Scaler] decides about, but for what is wanted: the
// workers, which of those that were drained by advice trials wait for, which of the
// others a study cannot do without, and what was done before.
func (s *Service) Situation() demand.Situation {
	all := s.allocator.Snapshot()
	situation := demand.Situation{Hosts: scheduler.Hosts(all), Past: all.Rules.Changes}
	sought := make(map[rules.WorkerName]bool)
	for r := range s.each() {
		want := r.wants()
		if r.stale || want.Running == 0 && want.Ready == 0 {
			continue
		}
		if worker, some := scheduler.Sought(all, s.ask(r, nil), want.Ready > 0 && !r.full(0)); some {
			sought[worker] = true
		}
	}
	for i, one := range situation.Hosts {
		situation.Hosts[i].Sought = sought[rules.WorkerName{Name: one.Name, Holder: one.Holder}]
	}
	return situation
}

// Rescale drains workers by advice, takes such drains back, and keeps what was
// decided and seen. What has changed since it was decided is left out: a worker
// that a person drained meanwhile stays that person's. It returns what was kept,
// also beside an error.
func (s *Service) Rescale(ctx context.Context, changes []demand.Change) ([]demand.Change, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	if err := s.governing.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.governing.Leave()
	present := s.allocator.Snapshot().Rules
	drains, past := maps.Clone(present.Drains), present.Changes
	var kept []demand.Change
	var entries []PoolEntry
	var full error
	for _, one := range changes {
		key := rules.WorkerName{Name: one.Worker, Holder: one.Holder}
		before, drained := drains[key]
		switch {
		case one.Pretended:
		case one.Action == demand.Drain:
			if drained {
				continue
			}
			if len(drains) >= mostRules { // what is taken back is, all the same
				full = problem.New(problem.Exhausted, "there are %d drained workers, the most there may be: undrain one first", len(drains))
				continue
			}
			drains[key] = protocol.Drain{Since: one.At, Reason: notWanted, Advised: true, Capacity: one.Capacity}
			entries = append(entries, journal.Entry(rules.DrainEntry, key.Entry(), rules.StoredDrain{WorkerName: key, Drain: drains[key]}))
		case one.Action == demand.Wake || one.Action == demand.Forgotten:
			if !drained || !before.Advised {
				continue
			}
			delete(drains, key)
			entries = append(entries, PoolEntry{Kind: rules.DrainEntry, Name: key.Entry()})
		}
		kept = append(kept, one)
	}
	if len(kept) == 0 {
		return nil, full
	}
	all := demand.Remember(slices.Concat(past, kept))
	entries = append(entries, journal.Entry(rules.ChangesEntry, rules.ChangesEntry, rules.StoredChanges{Changes: all}))
	var nothing struct{}
	if err := govern(unkeyed(ctx), s, &nothing, entries, func(r *rules.Rules) { r.Drains, r.Changes = drains, all }); err != nil {
		return nil, err
	}
	return kept, full
}

// autoscale is what the server drains by itself, the newest first. A caller who
// sees some studies only is not told how much all want.
func (s *Service) autoscale(caller Caller) *protocol.PoolAutoscale {
	told := s.options.Autoscale
	if told.Mode == "" {
		told.Mode = protocol.AutoscaleOff
	}
	told.Changes = []protocol.PoolChange{}
	for _, one := range slices.Backward(s.allocator.Snapshot().Rules.Changes) {
		if len(told.Changes) == mostChangesShown {
			break
		}
		change := protocol.PoolChange{At: one.At, Worker: one.Worker, Action: string(one.Action), Reason: one.Reason, Capacity: one.Capacity, Asleep: one.Asleep, Pretended: one.Pretended}
		if caller.Sight != All {
			change.Reason = ""
		}
		told.Changes = append(told.Changes, change)
	}
	return &told
}
