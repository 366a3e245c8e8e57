package study

import (
	"context"
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
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
	now := s.options.Now()
	receipt, err := receiptOf(ctx, *answer, now)
	if err != nil {
		return err
	}
	// A client that hangs up must not leave us guessing whether the write happened.
	if err := s.store.Apply(context.WithoutCancel(ctx), Change{Pool: entries, Receipt: receipt}); err != nil {
		return overtaken(ctx, s, err, answer)
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
