package study

import (
	"context"
	"fmt"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/approximation"
	"github.com/tandem-tune/tandem/workers/gpushare"
)

// loadPool reads what is stored of the pool and of what trainings on it took.
func (s *Service) loadPool(ctx context.Context) error {
	for _, from := range []struct {
		kinds []string
		load  func([]journal.PoolEntry) error
	}{
		{allocator.Kinds(), s.allocator.Load}, {gpushare.Kinds(), s.gpus.Load},
		{[]string{approximation.ResponsesEntry, approximation.HistoryEntry}, s.approximation.Load},
	} {
		var entries []journal.PoolEntry
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

// applyRules stores entries of the pool's rules, with the answer under the call's key;
// nil: without one.
func (s *Service) applyRules(ctx context.Context, entries []journal.PoolEntry, answer any) (ours bool, err error) {
	if answer == nil {
		ctx, answer = registry.Unkeyed(ctx), new(struct{})
	}
	return s.sessions.Apply(ctx, journal.Change{Pool: entries}, answer)
}
