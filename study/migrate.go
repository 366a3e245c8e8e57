package study

import (
	"context"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// orMove has the holder of a trial that has reported give it back for another
// machine, if that waits still and may have it, unless it is told something else.
// That it was told is stored with the transaction; without one, for a report that was
// accepted before, nobody is told who had not been.
func (s *leases) orMove(r *session.Session, t trial.Trial, told protocol.Directive, tx *session.Transaction) protocol.Directive {
	if told.Action != protocol.Continue || s.allocator.Migrating(t.ID) == "" {
		return told
	}
	departure := s.allocator.Depart(r.Ask(&r.Trials[t.Number]), t.ID, t.LeaseEpoch, tx != nil)
	if departure.Entry != nil {
		tx.Change.Pool = append(tx.Change.Pool, *departure.Entry)
	}
	if departure.After != nil {
		tx.Then(departure.After)
	}
	if departure.Pause {
		return protocol.Directive{Action: protocol.Pause, Reason: departure.Why}
	}
	return told
}

// leaving notes the migration for which a trial is given back, if it is for one, and
// whether the other worker waits still.
func (s *leases) leaving(tx *session.Transaction, t trial.Trial) {
	if s.allocator.Migrating(t.ID) == "" {
		return
	}
	one, awaited := s.allocator.Leaving(tx.Session.Ask(&tx.Session.Trials[t.Number]), t.ID, t.LeaseEpoch)
	if one != nil {
		tx.Migration, tx.Awaited = one, awaited
		tx.Then(func() { s.allocator.Left(one, awaited, tx.Now) })
	}
}

// hold holds a trial that is given back for the worker that it migrates to. It is seen
// in the queue before that is durable, so it is held before, too.
func (s *leases) hold(tx *session.Transaction) {
	if tx.Held && s.allocator.Hold(tx.Migration, tx.Now) {
		tx.Undo = append(tx.Undo, func() { s.allocator.ReleaseHold(tx.Migration.Trial) })
	}
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
	study, number := registry.StudyOf(id)
	r := s.sessions.InMemory(study)
	if r == nil {
		return allocator.Whereabouts{}
	}
	r.Lock()
	defer r.Unlock()
	if number >= len(r.Trials) || r.Trials[number].LeaseEpoch != lease {
		return allocator.Whereabouts{}
	}
	t := r.Trials[number]
	return allocator.Whereabouts{Runs: t.State.Held(), Left: t.State == trial.Queued, Lease: r.LeaseRecord(t, r.Usage(t, 0, 0), now)}
}

// regrant gives the leases found in the store a whole term, unless they are
// known already.
func (s *Service) regrant(r *session.Session) {
	now, leases := s.options.Now(), []pool.Lease(nil)
	for _, t := range r.Trials {
		if t.State.Held() {
			granted := now
			if t.Started != nil {
				granted = *t.Started
			}
			leases = append(leases, r.LeaseRecord(t, r.Usage(t, 0, 0), granted))
		}
	}
	if len(leases) > 0 {
		s.allocator.Regrant(leases)
		s.allocator.Restate(r.ID, r.Owner(), r.Study.Definition.Priority) // those that were known may be of the one before
	}
}

// directive is what a holder of the trial has to do now: what the study wants of
// it, unless it has to make way.
func (s *leases) directive(r *session.Session, t trial.Trial) protocol.Directive {
	directive := r.Directive(t)
	if directive.Action != protocol.Continue {
		return directive
	}
	if reason := s.allocator.PauseReason(t.ID, t.LeaseEpoch, t.Worker); reason != "" {
		return protocol.Directive{Action: protocol.Pause, Reason: reason}
	}
	return directive
}

// scheduled is what the scheduler sees of the studies.
type scheduled struct {
	sessions *registry.Registry
	waits    func(*session.Session) []protocol.Wait
}

// works reports whether the study, with a command, may have a trial for a worker.
func works(r *session.Session) bool {
	return r.Trains() && (r.Stale || r.Broken == nil && !r.Idle() && !r.Full(0))
}

// Candidates are the studies that work and that the caller sees.
func (v scheduled) Candidates(caller access.Caller) []pool.Candidate {
	var list []pool.Candidate
	for r := range v.sessions.Each() {
		if works(r) && caller.Sees(r.ID, r.Owner()) {
			list = append(list, pool.Candidate{
				Study: r.Study.ID, Owner: r.Owner(), Priority: r.Study.Definition.Priority, Running: r.Held, Created: r.Study.Created,
			})
		}
	}
	return list
}

// Working are the studies that work.
func (v scheduled) Working() map[string]bool {
	working := map[string]bool{}
	for r := range v.sessions.Each() {
		working[r.ID] = works(r)
	}
	return working
}

// View shows the study unless it is over, or is not in memory as it should be.
func (v scheduled) View(ctx context.Context, study string, show func(scheduler.Study)) {
	r := v.sessions.InMemory(study)
	if r == nil {
		return
	}
	r.Lock()
	defer r.Unlock()
	if r.Stale || r.Study.Status.Over() {
		return
	}
	show(scheduler.Study{
		ID: r.ID, Title: registry.NameFor(r.Study, access.CallerOf(ctx)), Trains: r.Trains(),
		Energy: r.Study.Definition.Placement.Energy, Parallel: r.Study.Definition.Parallel, Trials: r.Trials, Queue: r.Queue, Resting: r.Resting,
		Startable: r.Startable(), DataFraction: r.Ladder[0].Budget.DataFraction,
		Costs: func() *costmodel.Model { return r.Costs(ctx) }, Loads: r.Loads,
		Ask:   func(t *trial.Trial) allocator.Ask { return r.Ask(t) },
		Waits: func() []protocol.Wait { return v.waits(r) },
	})
}

// Changes is closed when anything changes.
func (v scheduled) Changes() <-chan struct{} { return v.sessions.Changes() }
