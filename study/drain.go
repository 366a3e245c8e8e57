package study

import (
	"context"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/workers/rules"
)

// Drain gives the worker with the id, or all of the caller's with the name, no
// more trials, until it is undrained: also behind a restart of the worker or the
// server. With ask.Now the trials that it runs pause by checkpoint and go on
// elsewhere.
func (s *Service) Drain(ctx context.Context, worker string, ask protocol.DrainRequest) (protocol.Drained, error) {
	drain := protocol.Drain{Since: s.options.Now().Round(0).UTC(), Now: ask.Now, Reason: ask.Reason}
	return s.redrain(ctx, worker, &drain)
}

// Undrain gives the workers trials again. Those that are not connected are known
// by their names.
func (s *Service) Undrain(ctx context.Context, worker string) (protocol.Drained, error) {
	return s.redrain(ctx, worker, nil)
}

// redrain drains the workers, or undrains them where there is no drain.
func (s *Service) redrain(ctx context.Context, worker string, drain *protocol.Drain) (protocol.Drained, error) {
	if err := s.governing.Enter(ctx); err != nil {
		return protocol.Drained{}, err
	}
	defer s.governing.Leave()
	names, trials, found, foreign := s.allocator.Drainable(callerOf(ctx), worker, drain == nil)
	if !found {
		err := problem.New(problem.NotFound, "there is no worker of yours with the name or id %q: the page of workers and \"tandem workers\" list them", worker)
		if foreign {
			return protocol.Drained{}, denial{err}
		}
		return protocol.Drained{}, err
	}
	count := len(s.allocator.Snapshot().Rules.Drains)
	if drain != nil && count+len(names) > mostRules {
		return protocol.Drained{}, problem.New(problem.Exhausted, "there are %d drained workers, the most there may be: undrain one first", count)
	}
	answer, entries := protocol.Drained{Workers: []string{}, Trials: trials}, []PoolEntry{}
	drains := make(map[rules.WorkerName]*protocol.Drain, len(names))
	for _, key := range names {
		drains[key] = drain
		if !slices.Contains(answer.Workers, key.Name) {
			answer.Workers = append(answer.Workers, key.Name)
		}
		if drain != nil {
			entries = append(entries, journal.Entry(rules.DrainEntry, key.Entry(), rules.StoredDrain{WorkerName: key, Drain: *drain}))
		} else {
			entries = append(entries, PoolEntry{Kind: rules.DrainEntry, Name: key.Entry()})
		}
	}
	err := govern(ctx, s, &answer, entries, func(r *rules.Rules) { r.SetDrains(drains) })
	return answer, err
}
