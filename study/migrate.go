package study

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
)

// reschedule has running trials migrate or exchange places, as the scheduler decides.
func (s *Service) reschedule(ctx context.Context) {
	migrations, exchanges := s.scheduler.Reschedule(ctx)
	for _, one := range migrations {
		if s.allocator.Start(one) {
			s.options.Logger.Info("a trial is to move", "trial", one.Trial, "why", one.Record.Why)
		}
	}
	for _, one := range exchanges {
		if !s.allocator.Exchange(one.Both, one.Wait) {
			continue
		}
		for _, each := range one.Both {
			s.options.Logger.Info("two trials are to change places", "trial", each.Trial, "why", each.Record.Why)
		}
	}
}

// orMove has the holder of a trial that has reported give it back for another
// machine, if that waits still and may have it, unless it is told something else.
// That it was told is stored with the transaction; without one, for a report that was
// accepted before, nobody is told who had not been.
func (s *Service) orMove(r *session, t trial.Trial, told protocol.Directive, tx *transaction) protocol.Directive {
	if told.Action != protocol.Continue || s.allocator.Migrating(t.ID) == "" {
		return told
	}
	departure := s.allocator.Depart(s.ask(r, &r.trials[t.Number]), t.ID, t.LeaseEpoch, tx != nil)
	if departure.Entry != nil {
		tx.change.Pool = append(tx.change.Pool, *departure.Entry)
	}
	if departure.After != nil {
		tx.then(departure.After)
	}
	if departure.Pause {
		return protocol.Directive{Action: protocol.Pause, Reason: departure.Why}
	}
	return told
}

// leaving notes the migration for which a trial is given back, if it is for one, and
// whether the other worker waits still.
func (s *Service) leaving(tx *transaction, t trial.Trial) {
	if s.allocator.Migrating(t.ID) == "" {
		return
	}
	one, awaited := s.allocator.Leaving(s.ask(tx.session, &tx.session.trials[t.Number]), t.ID, t.LeaseEpoch)
	if one != nil {
		tx.migration, tx.awaited = one, awaited
		tx.then(func() { s.allocator.Left(one, awaited, tx.now) })
	}
}

// depart notes on a trial that is given back that it moves, and keeps it for its
// new machine for a while.
func (tx *transaction) depart(t trial.Trial, reason string) (trial.Trial, string) {
	if tx.migration == nil {
		return t, reason
	}
	record := tx.migration.Record
	record.At = tx.now
	t.Migrations = append(slices.Clone(t.Migrations), record)
	if !tx.awaited {
		if entry := tx.migration.Cancelled(); entry != nil {
			tx.change.Pool = append(tx.change.Pool, *entry)
		}
		return t, record.Why + "; that has other work by now"
	}
	tx.held = true
	return t, fmt.Sprintf("%s; kept for it for up to %g s", record.Why, allocator.HoldSpan.Seconds())
}

// moved adds an epoch to what a trial's last move really came to.
func moved(t trial.Trial, report trial.Report) trial.Trial {
	last := len(t.Migrations) - 1
	if last < 0 || report.LeaseEpoch <= t.Migrations[last].LeaseEpoch {
		return t
	}
	t.Migrations = slices.Clone(t.Migrations)
	one := &t.Migrations[last]
	one.Epochs++
	one.Seconds += report.Seconds
	one.Energy = one.Energy.Plus(report.Energy)
	return t
}

// studyOf is the study and the number of a trial.
func studyOf(id trial.ID) (study string, number int) {
	study, _, _ = strings.Cut(string(id), "-")
	number, _ = id.Number()
	return study, number
}

// arrived notes where a trial goes on that has moved.
func arrived(t trial.Trial, tx *transaction) trial.Trial {
	last := len(t.Migrations) - 1
	if last < 0 || t.Migrations[last].Arrived != "" {
		return t
	}
	t.Migrations = slices.Clone(t.Migrations)
	t.Migrations[last].Arrived, t.Migrations[last].ArrivedType = tx.here.Name, tx.here.Machine
	return t
}

// hold holds a trial that is given back for the worker that it migrates to. It is seen
// in the queue before that is durable, so it is held before, too.
func (s *Service) hold(tx *transaction) {
	if tx.held && s.allocator.Hold(tx.migration, tx.now) {
		tx.undo = append(tx.undo, func() { s.allocator.ReleaseHold(tx.migration.Trial) })
	}
}

// isQueued reports whether the trial waits.
func (s *Service) isQueued(id trial.ID) bool {
	study, number := studyOf(id)
	r := s.inMemory(study)
	if r == nil {
		return false
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Contains(r.queue, number)
}

// resumeMigrations goes on with the migrations that were under way when the server
// stopped.
func (s *Service) resumeMigrations() {
	now := s.options.Now()
	for _, stored := range s.allocator.Stored() {
		var partner allocator.Whereabouts
		if stored.Partner != nil {
			partner = s.whereabouts(stored.Partner.Trial, stored.Partner.Lease, now)
		}
		s.allocator.Resume(stored, s.whereabouts(stored.Trial, stored.Lease, now), partner)
	}
}

// whereabouts is where a trial is that had the lease when it was told to migrate.
func (s *Service) whereabouts(id trial.ID, lease trial.LeaseEpoch, now time.Time) allocator.Whereabouts {
	study, number := studyOf(id)
	r := s.inMemory(study)
	if r == nil {
		return allocator.Whereabouts{}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if number >= len(r.trials) || r.trials[number].LeaseEpoch != lease {
		return allocator.Whereabouts{}
	}
	t := r.trials[number]
	return allocator.Whereabouts{Runs: t.State.Held(), Left: t.State == trial.Queued, Lease: r.leaseRecord(t, r.takes(t, 0, 0), now)}
}
