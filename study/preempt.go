package study

import (
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

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
