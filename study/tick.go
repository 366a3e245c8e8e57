package study

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
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
	s.uploads.Forget()
	s.approximate(now)
	s.preempt(now)
	if err := s.Keep(ctx, before, now, false); err != nil {
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
	for r := range s.sessions.Each() {
		r.Evict(now)
	}
	return errors.Join(failures...)
}

// endOverdue completes the studies that have run for their stop.seconds.
func (s *Service) endOverdue(ctx context.Context, now time.Time) error {
	due := func(r *session.Session) bool { return r.Overdue(now) }
	return s.sessions.ChangeDue(ctx, "end", due, func(tx *session.Transaction, current journal.Study) error {
		return tx.Conclude(protocol.StudyCompleted, fmt.Sprintf("its time of %g s is up", current.Definition.Stop.Seconds))
	})
}

// preempt lets trials make way for studies that ask for that, may, and have work
// and no room. It is called at every tick: a worker that is busy asks for nothing.
func (s *Service) preempt(now time.Time) {
	room := map[string]map[string]bool{}
	for r := range s.sessions.Each() {
		if r.Study.Definition.Preempt && r.Wanting() {
			room[r.ID] = s.makeWay(r, now)
		}
	}
	if s.allocator.EndClaims(now, room) {
		s.sessions.Notify() // whoever waits may have what was left
	}
}

// makeWay asks the workers of the trials in the study's way to pause them. It returns
// the workers of which the study may have what is left. The studies of other users are
// named to the administrators only. The study's lock is held.
func (s *Service) makeWay(r *session.Session, now time.Time) (may map[string]bool) {
	why := func(who string) string {
		return fmt.Sprintf("makes way for %s, whose priority is higher (%d)", who, r.Study.Definition.Priority)
	}
	asked, may := s.allocator.MakeWay(r.Ask(nil), now, why("study "+r.Study.Definition.Name), why("a study of another user"))
	for _, one := range asked {
		s.options.Logger.Info("preempted", "trial", one.Trial, "worker", one.Worker, "for", r.Study.Definition.Name)
	}
	return may
}

// forsaken reports whether nobody works on a study that only those work on who ask for
// it by name: no worker has a trial of it, and whoever has asked has left or is silent.
func (s *Service) forsaken(r *session.Session) bool {
	if r.Study.Status != protocol.StudyRunning || len(r.Study.Definition.Command) > 0 || r.Held > 0 {
		return false
	}
	s.allocator.ForgetSilent(r.Askers)
	return len(r.Askers) == 0
}

// restAll pauses the studies that nobody works on any more, so that their time stops.
func (s *Service) restAll(ctx context.Context, now time.Time) error {
	return s.restThose(ctx, func(r *session.Session) bool { return r.Stale || !r.AskedLately(now, s.options.leaseTerm()) })
}

// restThose pauses the studies that nobody works on, of those that may be.
func (s *Service) restThose(ctx context.Context, may func(*session.Session) bool) error {
	due := func(r *session.Session) bool { return s.forsaken(r) && may(r) }
	return s.sessions.ChangeDue(ctx, "pause", due, func(tx *session.Transaction, _ journal.Study) error {
		tx.Status(protocol.StudyPaused, session.RestReason)
		return nil
	})
}

// wake tells the workers that wait of trials that have rested, or were kept for a
// worker that did not come.
func (s *Service) wake(now time.Time) {
	rested := s.allocator.ReleaseHolds(now, s.isQueued)
	for r := range s.sessions.Each() {
		rested = r.Rested(now) || rested
	}
	if rested {
		s.sessions.Notify()
	}
}
