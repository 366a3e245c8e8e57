package study

import (
	"context"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

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
