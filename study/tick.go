package study

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Tick does what time alone makes due: it takes trials back from silent
// workers, ends studies whose time is up, lets trials make way for others, keeps
// the rules of the pool, and now and then has running trials move to a better
// machine. The caller runs it every second.
func (s *Service) Tick(ctx context.Context) error {
	now := s.options.Now()
	before, expired := s.allocator.Tick(now)
	s.gpus.Connect(s.allocator.GPUTypes())

	var failures []error
	for _, lease := range expired {
		s.options.Logger.Warn("lease expired", "trial", lease.Trial, "worker", lease.Worker)
		if err := s.expire(ctx, lease); err != nil {
			failures = append(failures, fmt.Errorf("expire the lease of trial %s: %w", lease.Trial, err))
		}
	}
	s.wake(now)
	s.uploads.forget(now.Add(-UploadLife))
	s.approximate(now)
	s.preempt(now)
	if err := s.keepRules(ctx, before, now, false); err != nil {
		failures = append(failures, err)
	}
	if err := s.keepResponses(ctx, now, false); err != nil {
		failures = append(failures, err)
	}
	s.allocator.WakeSkipped(now)
	s.reschedule(ctx)
	if err := s.endOverdue(ctx, now); err != nil {
		failures = append(failures, err)
	}
	if err := s.restAll(ctx, now); err != nil {
		failures = append(failures, err)
	}
	for r := range s.each() {
		r.shelve(now)
	}
	return errors.Join(failures...)
}

// endOverdue completes the studies that have run for their stop.seconds.
func (s *Service) endOverdue(ctx context.Context, now time.Time) error {
	due := func(r *session) bool { return r.overdue(now) }
	return s.changeDue(ctx, "end", due, func(tx *transaction, current Study) error {
		return tx.conclude(protocol.StudyCompleted, fmt.Sprintf("its time of %g s is up", current.Definition.Stop.Seconds))
	})
}

func (r *session) overdue(now time.Time) bool {
	limit := r.study.Definition.Stop.Seconds
	return limit > 0 && r.study.Status == protocol.StudyRunning && r.study.ElapsedAt(now).Seconds() >= limit
}
