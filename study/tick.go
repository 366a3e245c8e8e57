package study

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
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

// preempt lets trials make way for studies that ask for that, may, and have work
// and no room. It is called at every tick: a worker that is busy asks for nothing.
func (s *Service) preempt(now time.Time) {
	room := map[string]map[string]bool{}
	for r := range s.each() {
		if r.study.Definition.Preempt && r.wanting() {
			room[r.id] = s.makeWay(r, now)
		}
	}
	if s.allocator.EndClaims(now, room) {
		s.notify() // whoever waits may have what was left
	}
}

// wanting reports whether the study has work for workers and may have one more of
// them.
func (r *session) wanting() bool {
	return !r.stale && r.broken == nil && len(r.study.Definition.Command) > 0 &&
		r.study.Status == protocol.StudyRunning && r.mayStart() && !r.full(0)
}

// mayStart reports whether the study may have a trial to start: one is queued,
// more may be made, or one was measured and may go up. The search is asked only
// when a worker is free, so that a study whose last trials run has not heard yet
// that this was all.
func (r *session) mayStart() bool {
	if r.idle() {
		return false
	}
	most := r.study.Definition.Stop.Trials
	if len(r.queue) > 0 || most == 0 || len(r.trials) < most || r.study.Definition.Search.Repeats != nil {
		return true
	}
	for _, t := range r.trials {
		if t.State == trial.Paused {
			return true
		}
	}
	return false
}

// makeWay asks the workers of the trials in the study's way to pause them. It returns
// the workers of which the study may have what is left. The studies of other users are
// named to the administrators only. The study's lock is held.
func (s *Service) makeWay(r *session, now time.Time) (may map[string]bool) {
	why := func(who string) string {
		return fmt.Sprintf("makes way for %s, whose priority is higher (%d)", who, r.study.Definition.Priority)
	}
	asked, may := s.allocator.MakeWay(s.ask(r, nil), now, why("study "+r.study.Definition.Name), why("a study of another user"))
	for _, one := range asked {
		s.options.Logger.Info("preempted", "trial", one.Trial, "worker", one.Worker, "for", r.study.Definition.Name)
	}
	return may
}

// restReason is why a study without a command is paused that nobody works on. It is
// stored: by it such a study is told from one that a user has paused.
const restReason = "no process asks for its trials; it goes on when one does"

// atRest reports whether the study waits for somebody to ask for its trials.
func atRest(s Study) bool {
	return s.Status == protocol.StudyPaused && s.Reason == restReason
}

// asks notes that the worker asks for trials of this very study.
func (r *session) asks(worker string, now time.Time) {
	if r.askers == nil {
		r.askers = make(map[string]bool)
	}
	r.askers[worker], r.asked = true, now
}

// resumeRest lets a study go on that was at rest, as somebody asks for its trials.
func (s *Service) resumeRest(ctx context.Context, r *session) error {
	tx := s.begin(r)
	current := r.study
	current.Since, current.Status, current.Reason = &tx.now, protocol.StudyRunning, "a process asks for its trials"
	tx.status(current)
	var nothing struct{}
	return commit(unkeyed(ctx), s, tx, &nothing)
}

// forsaken reports whether nobody works on a study that only those work on who ask for
// it by name: no worker has a trial of it, and whoever has asked has left or is silent.
func (s *Service) forsaken(r *session) bool {
	if r.study.Status != protocol.StudyRunning || len(r.study.Definition.Command) > 0 || r.held > 0 {
		return false
	}
	s.allocator.ForgetSilent(r.askers)
	return len(r.askers) == 0
}

// askedLately reports whether the study was begun, resumed or asked for not long ago: who
// did so may be about to ask, or to come back after the server was restarted.
func (r *session) askedLately(now time.Time, term time.Duration) bool {
	return r.study.Since != nil && now.Sub(*r.study.Since) < term || now.Sub(r.asked) < term
}

// restAll pauses the studies that nobody works on any more, so that their time stops.
func (s *Service) restAll(ctx context.Context, now time.Time) error {
	return s.restThose(ctx, func(r *session) bool { return r.stale || !r.askedLately(now, s.leaseTerm()) })
}

// restThose pauses the studies that nobody works on, of those that may be.
func (s *Service) restThose(ctx context.Context, may func(*session) bool) error {
	due := func(r *session) bool { return s.forsaken(r) && may(r) }
	return s.changeDue(ctx, "pause", due, func(tx *transaction, current Study) error {
		current.Elapsed, current.Since = current.ElapsedAt(tx.now), nil
		current.Status, current.Reason = protocol.StudyPaused, restReason
		tx.status(current)
		return nil
	})
}
