package governor

import (
	"context"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/rules"
)

// Drain gives the worker with the id, or all of the caller's with the name, no
// more trials, until it is undrained: also behind a restart of the worker or the
// server. With ask.Now the trials that it runs pause by checkpoint and go on
// elsewhere.
func (g *Governor) Drain(ctx context.Context, worker string, ask protocol.DrainRequest) (protocol.Drained, error) {
	drain := protocol.Drain{Since: g.options.Now().Round(0).UTC(), Now: ask.Now, Reason: ask.Reason}
	return g.redrain(ctx, worker, &drain)
}

// Undrain gives the workers trials again. Those that are not connected are known
// by their names.
func (g *Governor) Undrain(ctx context.Context, worker string) (protocol.Drained, error) {
	return g.redrain(ctx, worker, nil)
}

// redrain drains the workers, or undrains them where there is no drain.
func (g *Governor) redrain(ctx context.Context, worker string, drain *protocol.Drain) (protocol.Drained, error) {
	if err := g.gate.Enter(ctx); err != nil {
		return protocol.Drained{}, err
	}
	defer g.gate.Leave()
	names, trials, found, foreign := g.allocator.Drainable(access.CallerOf(ctx), worker, drain == nil)
	if !found {
		err := problem.New(problem.NotFound, "there is no worker of yours with the name or id %q: the page of workers and \"tandem workers\" list them", worker)
		if foreign {
			return protocol.Drained{}, access.Deny(err)
		}
		return protocol.Drained{}, err
	}
	count := len(g.allocator.Snapshot().Rules.Drains)
	if drain != nil && count+len(names) > mostRules {
		return protocol.Drained{}, problem.New(problem.Exhausted, "there are %d drained workers, the most there may be: undrain one first", count)
	}
	answer, entries := protocol.Drained{Workers: []string{}, Trials: trials}, []journal.PoolEntry{}
	drains := make(map[rules.WorkerName]*protocol.Drain, len(names))
	for _, key := range names {
		drains[key] = drain
		if !slices.Contains(answer.Workers, key.Name) {
			answer.Workers = append(answer.Workers, key.Name)
		}
		if drain != nil {
			entries = append(entries, journal.Entry(rules.DrainEntry, key.Entry(), rules.StoredDrain{WorkerName: key, Drain: *drain}))
		} else {
			entries = append(entries, journal.PoolEntry{Kind: rules.DrainEntry, Name: key.Entry()})
		}
	}
	err := g.govern(ctx, &answer, entries, func(r *rules.Rules) { r.SetDrains(drains) })
	return answer, err
}

// mostChangesShown is how many changes by advice are listed.
const mostChangesShown = 50

// notWanted is why a worker is drained by advice, as everybody is told.
const notWanted = "by the forecast of the demand it is not wanted now (an estimate)"

// Rescale drains workers by advice, takes such drains back, and keeps what was
// decided and seen. What has changed since it was decided is left out: a worker
// that a person drained meanwhile stays that person's. It returns what was kept,
// also beside an error.
func (g *Governor) Rescale(ctx context.Context, changes []demand.Change) ([]demand.Change, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	if err := g.gate.Enter(ctx); err != nil {
		return nil, err
	}
	defer g.gate.Leave()
	present := g.allocator.Snapshot().Rules
	drains, past := maps.Clone(present.Drains), present.Changes
	var kept []demand.Change
	var entries []journal.PoolEntry
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
			entries = append(entries, journal.PoolEntry{Kind: rules.DrainEntry, Name: key.Entry()})
		}
		kept = append(kept, one)
	}
	if len(kept) == 0 {
		return nil, full
	}
	all := demand.Remember(slices.Concat(past, kept))
	entries = append(entries, journal.Entry(rules.ChangesEntry, rules.ChangesEntry, rules.StoredChanges{Changes: all}))
	if err := g.govern(ctx, nil, entries, func(r *rules.Rules) { r.Drains, r.Changes = drains, all }); err != nil {
		return nil, err
	}
	return kept, full
}

// Autoscale is what the server drains by itself, the newest first. A caller who
// sees some studies only is not told how much all want.
func (g *Governor) Autoscale(caller access.Caller) *protocol.PoolAutoscale {
	told := g.options.Autoscale
	if told.Mode == "" {
		told.Mode = protocol.AutoscaleOff
	}
	told.Changes = []protocol.PoolChange{}
	for _, one := range slices.Backward(g.allocator.Snapshot().Rules.Changes) {
		if len(told.Changes) == mostChangesShown {
			break
		}
		change := protocol.PoolChange{At: one.At, Worker: one.Worker, Action: string(one.Action), Reason: one.Reason, Capacity: one.Capacity, Asleep: one.Asleep, Pretended: one.Pretended}
		if caller.Sight != access.All {
			change.Reason = ""
		}
		told.Changes = append(told.Changes, change)
	}
	return &told
}
