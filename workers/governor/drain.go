package governor

import (
	"context"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
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
		err := problem.New(problem.NotFound, "there is no worker with the name or id %q that you may drain: a user may drain workers with tokens of their own, and an administrator all", worker)
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
