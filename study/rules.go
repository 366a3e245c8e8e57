package study

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/approximation"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/rules"
)

// loadPool reads what is stored of the pool and of what trainings on it took.
func (s *Service) loadPool(ctx context.Context) error {
	for _, from := range []struct {
		kinds []string
		load  func([]PoolEntry) error
	}{
		{allocator.Kinds(), s.allocator.Load}, {gpushare.Kinds(), s.gpus.Load},
		{[]string{approximation.ResponsesEntry, approximation.HistoryEntry}, s.approximation.Load},
	} {
		var entries []PoolEntry
		for _, kind := range from.kinds {
			some, err := s.store.PoolEntries(ctx, kind)
			if err != nil {
				return fmt.Errorf("load what is kept of the pool: %w", err)
			}
			entries = append(entries, some...)
		}
		if err := from.load(entries); err != nil {
			return problem.New(problem.Internal, "load what is kept of the pool: %w", err)
		}
	}
	return nil
}

// govern makes a change of the pool's rules durable, with the answer under the
// call's key, and then shows it. One change is made at a time.
func govern[T any](ctx context.Context, s *Service, answer *T, entries []PoolEntry, change func(*rules.Rules)) error {
	if ours, err := apply(ctx, s, Change{Pool: entries}, answer); !ours {
		return err
	}
	s.allocator.Govern(change)
	s.notify()
	return nil
}

// keepRules does what time alone makes due of the rules: what was spent is
// stored, reservations that are over go, and who waits hears of those that began
// or ended, and of a new day.
func (s *Service) keepRules(ctx context.Context, before, now time.Time, closing bool) (failed error) {
	entries, turned := s.allocator.Due(before, now, closing)
	if len(entries) > 0 {
		err := s.store.Apply(ctx, Change{Pool: entries})
		s.allocator.Applied(entries, err == nil)
		if err != nil {
			failed = fmt.Errorf("store what is kept of the pool: %w", err)
		}
	}
	if turned { // by the time, whatever of it is stored
		s.notify()
	}
	return failed
}

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
