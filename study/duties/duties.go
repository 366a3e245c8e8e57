// Package duties does what time alone makes due, with a type for each duty. The caller runs
// them every second; what is due less often looks at the time itself.
package duties

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/approximation"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

// On is what the duties look after: the studies in memory, and who holds what.
type On struct {
	Sessions      *registry.Registry
	Allocator     *allocator.Allocator
	Scheduler     *scheduler.Scheduler
	Approximation *approximation.Controller
	Store         journal.Store
	Logger        *slog.Logger
	Term          time.Duration // of a lease
}

// Deadlines completes the studies that have run for their stop.seconds.
type Deadlines struct{ On }

// Do ends what is overdue.
func (s Deadlines) Do(ctx context.Context, now time.Time) error {
	due := func(r *session.Session) bool { return r.Overdue(now) }
	return s.Sessions.ChangeDue(ctx, "end", due, func(tx *session.Transaction, current journal.Study) error {
		return tx.Conclude(protocol.StudyCompleted, fmt.Sprintf("its time of %g s is up", current.Definition.Stop.Seconds))
	})
}

// Preemption lets trials make way for studies that ask for that, may, and have work
// and no room.
type Preemption struct{ On }

// Do is called at every tick: a worker that is busy asks for nothing.
func (s Preemption) Do(now time.Time) {
	room := map[string]map[string]bool{}
	for r := range s.Sessions.Each() {
		if r.Study.Definition.Preempt && r.Wanting() {
			room[r.ID] = s.makeWay(r, now)
		}
	}
	if s.Allocator.EndClaims(now, room) {
		s.Sessions.Notify() // whoever waits may have what was left
	}
}

// makeWay asks the workers of the trials in the study's way to pause them. It returns
// the workers of which the study may have what is left. The studies of other users are
// named to the administrators only. The study's lock is held.
func (s Preemption) makeWay(r *session.Session, now time.Time) (may map[string]bool) {
	why := func(who string) string {
		return fmt.Sprintf("makes way for %s, whose priority is higher (%d)", who, r.Study.Definition.Priority)
	}
	asked, may := s.Allocator.MakeWay(r.Ask(nil), now, why("study "+r.Study.Definition.Name), why("a study of another user"))
	for _, one := range asked {
		s.Logger.Info("preempted", "trial", one.Trial, "worker", one.Worker, "for", r.Study.Definition.Name)
	}
	return may
}

// Rest pauses the studies without a command that nobody works on, so that their time stops.
type Rest struct{ On }

// forsaken reports whether nobody works on a study that only those work on who ask for
// it by name: no worker has a trial of it, and whoever has asked has left or is silent.
func (s Rest) forsaken(r *session.Session) bool {
	if r.Study.Status != protocol.StudyRunning || len(r.Study.Definition.Command) > 0 || r.Held > 0 {
		return false
	}
	s.Allocator.ForgetSilent(r.Askers)
	return len(r.Askers) == 0
}

// Do pauses those that nobody has asked for lately.
func (s Rest) Do(ctx context.Context, now time.Time) error {
	return s.Those(ctx, func(r *session.Session) bool { return r.Stale || !r.AskedLately(now, s.Term) })
}

// Those pauses the studies that nobody works on, of those that may be.
func (s Rest) Those(ctx context.Context, may func(*session.Session) bool) error {
	due := func(r *session.Session) bool { return s.forsaken(r) && may(r) }
	return s.Sessions.ChangeDue(ctx, "pause", due, func(tx *session.Transaction, _ journal.Study) error {
		tx.Status(protocol.StudyPaused, session.RestReason)
		return nil
	})
}

// Wake wakes the workers that wait when there is something to wait for no more.
type Wake struct{ On }

// Do tells them of trials that have rested, or were kept for a
// worker that did not come.
func (s Wake) Do(now time.Time) {
	rested := s.Allocator.ReleaseHolds(now, s.Sessions.IsQueued)
	for r := range s.Sessions.Each() {
		rested = r.Rested(now) || rested
	}
	if rested {
		s.Sessions.Notify()
	}
}

// Migration has running trials move to a better machine, now and then.
type Migration struct{ On }

// Do has them migrate or exchange places, as the scheduler decides.
func (s Migration) Do(ctx context.Context) {
	migrations, exchanges := s.Scheduler.Reschedule(ctx)
	for _, one := range migrations {
		if s.Allocator.Start(one) {
			s.Logger.Info("a trial is to move", "trial", one.Trial, "why", one.Record.Why)
		}
	}
	for _, one := range exchanges {
		if !s.Allocator.Exchange(one.Both, one.Wait) {
			continue
		}
		for _, each := range one.Both {
			s.Logger.Info("two trials are to change places", "trial", each.Trial, "why", each.Record.Why)
		}
	}
}

// Eviction drops studies that are over and unused from memory.
type Eviction struct{ On }

// Do drops those that are due.
func (s Eviction) Do(now time.Time) {
	for r := range s.Sessions.Each() {
		r.Evict(now)
	}
}
