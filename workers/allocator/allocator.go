// Package allocator decides who has what of the pool of workers: leases, trials that
// are about to be leased, workers that wait, quotas, reservations, drains, holds and
// migrations. It is one monitor. One mutex guards all of it, and is never held over a
// call to another object: methods take and return values. What a study wants comes as
// an [Ask], made while the study's own lock is held.
package allocator

import (
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/rules"
	"github.com/tandem-tune/tandem/workers/waitqueue"
)

const (
	// HoldSpan is how long a trial that moves is held for its new machine.
	HoldSpan = 30 * time.Second
	// ForgetWorkersAfter is how long a silent worker stays in the list.
	ForgetWorkersAfter = 24 * time.Hour
)

// Options are what an Allocator takes from its surroundings.
type Options struct {
	// Now is the clock.
	Now func() time.Time
	// Term is how long a lease lives without a heartbeat.
	Term time.Duration
	// Lock guards the allocator; nil: a mutex of its own. Tests count how often it is
	// taken.
	Lock sync.Locker
}

// Allocator holds who has what and who waits. It is safe for concurrent use.
type Allocator struct {
	*state
	Workers
	Placements
	Rules
	Migrations
}

// state is what the lock guards. Its methods, and those of the types that share it which
// are not exported, are called with the lock held.
type state struct {
	lock sync.Locker
	now  func() time.Time
	term time.Duration

	leases  pool.Leases
	workers pool.Registry
	queue   *waitqueue.Queue
	// migrations are the running trials that are to move.
	migrations map[trial.ID]*Migration
	// slotHolds are the workers that are held for a trial which changes places.
	slotHolds map[string]slotHold
	departing map[string]Migration // what is stored of migrations, by name
	// colocated are the leases of which it is stored that others shared their GPU.
	colocated map[pool.LeaseID]bool
	rules     rules.Rules
	gangs     pool.Gangs
	counted   counted
	probed    Probes
	lastTick  time.Time
	// began is when the server was started.
	began time.Time
	// gone are launches that have ended, whose workers are not heard any more.
	gone map[launch]bool
}

// New returns an Allocator without workers, of a server that starts now.
func New(options Options) *Allocator {
	s := &state{
		lock: options.Lock, now: options.Now, term: options.Term, queue: waitqueue.New(), rules: rules.New(),
		migrations: make(map[trial.ID]*Migration), slotHolds: make(map[string]slotHold),
		departing: make(map[string]Migration), colocated: make(map[pool.LeaseID]bool),
		gone: make(map[launch]bool),
	}
	s.began, s.lastTick = s.now(), s.now() // it may fall asleep before its first tick
	if s.lock == nil {
		s.lock = new(sync.Mutex)
	}
	return &Allocator{s, Workers{s}, Placements{s}, Rules{s}, Migrations{s}}
}

// Tick does what time alone makes due. It returns when the last tick was, and the
// leases that have expired.
func (a *Allocator) Tick(now time.Time) (before time.Time, expired []pool.Lease) {
	defer a.locked()()
	before = a.lastTick
	a.chargeGPUs(now.Sub(before))
	if late := now.Sub(before); late > a.term/2 {
		// It was this server that slept (a stopped process, a busy machine):
		// heartbeats could not be taken, so no worker is late by that time.
		a.leases.Postpone(late, now.Add(a.term))
	}
	a.lastTick = now
	a.workers.Forget(now.Add(-ForgetWorkersAfter))
	return before, a.leases.Expired(now)
}

// locked locks the state until its answer is called.
func (s *state) locked() (unlock func()) {
	s.lock.Lock()
	return s.lock.Unlock
}

// returns reports whether a worker that is not registered may only not have heard
// yet that the server was started again.
func (s *state) returns() bool { return s.now().Sub(s.began) < s.term }

// heldOf are the worker's leases, those that are being decided among them.
func (s *state) heldOf(worker string) []pool.Lease {
	return append(s.leases.Of(worker), s.leases.Deciding(worker)...)
}

// usable reports whether a worker could take a trial now.
func (s *state) usable(member pool.Member) bool {
	return s.heard(&member) && s.rules.DrainOf(member) == nil
}

// heard reports whether the worker was heard of within the term of a lease.
func (s *state) heard(member *pool.Member) bool { return s.now().Sub(member.LastSeen) < s.term }

// alive are the workers that were heard of.
func (s *state) alive() []pool.Member {
	return slices.DeleteFunc(s.workers.Members(), func(m pool.Member) bool { return !s.heard(&m) })
}

// counted are holdings as they were a moment ago.
type counted struct {
	held    pool.Holdings
	changes uint64
	at      time.Time
}

// countEvery is how long holdings count while no lease changes: who is alive
// changes more slowly. Thousands of workers that wait look at them at once.
const countEvery = time.Second

// holdings are what there is and who has it. They are not changed.
func (s *state) holdings() pool.Holdings {
	now, changes := s.now(), s.leases.Changes()
	if s.counted.held.ByOwner == nil || s.counted.changes != changes || now.Sub(s.counted.at) >= countEvery {
		s.counted = counted{pool.Hold(&s.workers, &s.leases, s.usable), changes, now}
	}
	return s.counted.held
}

// Leases are all that are out.
func (a *Allocator) Leases() []pool.Lease {
	defer a.locked()()
	return a.leases.All()
}

// Leased is the trial's lease and the worker that has it; false where it is not out.
func (a *Allocator) Leased(id trial.ID) (lease pool.Lease, worker pool.Member, out bool) {
	defer a.locked()()
	lease, out = a.leases.Lease(id)
	worker, _ = a.workers.Member(lease.Worker)
	return lease, worker, out
}

// Sharers are the trials that share GPUs with the trial.
func (a *Allocator) Sharers(id trial.ID) []trial.ID {
	defer a.locked()()
	lease, _ := a.leases.Lease(id)
	return a.leases.Sharers(lease)
}

// Regrant grants leases that were found in the store, each for a whole term, unless
// they are known already.
func (a *Allocator) Regrant(leases []pool.Lease) {
	now := a.now()
	defer a.locked()()
	for _, lease := range leases {
		if !a.leases.Has(lease.Trial, lease.Epoch) {
			lease.Deadline, lease.Beside = now.Add(a.term), a.colocated[pool.LeaseID{Trial: lease.Trial, Epoch: lease.Epoch}]
			a.leases.Grant(lease)
		}
	}
}

// Renew gives the lease a whole term.
func (a *Allocator) Renew(id trial.ID, epoch trial.LeaseEpoch) {
	defer a.locked()()
	a.leases.Renew(id, epoch, a.now().Add(a.term))
}

// Renewed reports whether the lease was renewed since.
func (a *Allocator) Renewed(since pool.Lease) bool {
	defer a.locked()()
	return a.leases.Renewed(since)
}

// Saved notes that the trial has a checkpoint of its lease.
func (a *Allocator) Saved(id trial.ID, epoch trial.LeaseEpoch) {
	defer a.locked()()
	a.leases.Saved(id, epoch)
}

// Reshare notes what the trial takes of its GPU from now on.
func (a *Allocator) Reshare(id trial.ID, epoch trial.LeaseEpoch, share pool.GPUShare) {
	defer a.locked()()
	a.leases.Reshare(id, epoch, share)
}

// Restate notes whose the study is now, and its priority.
func (a *Allocator) Restate(study, owner string, priority int) {
	defer a.locked()()
	a.leases.Restate(study, owner, priority)
	a.gangs.Restate(study, priority)
}

// Resize notes what the trial takes from now on of its worker, of a machine with so
// many cores.
func (a *Allocator) Resize(id trial.ID, epoch trial.LeaseEpoch, worker string, takes func(cores int) pool.Need) {
	defer a.locked()()
	member, _ := a.workers.Member(worker)
	taken := takes(member.Registration.Machine.Cores)
	a.leases.Resize(id, epoch, taken.Cores, taken.MemoryBytes)
	if taken.GPUShare != nil {
		a.leases.Reshare(id, epoch, *taken.GPUShare)
	}
}

// Release ends the lease, unless the trial is out under another by now. It reports
// whether others than the trial's study may have been kept from work by it: who looked
// before has to look again.
func (a *Allocator) Release(id trial.ID, epoch trial.LeaseEpoch) bool {
	defer a.locked()()
	if !a.leases.Has(id, epoch) {
		return false
	}
	held, _ := a.leases.Lease(id)
	a.leases.Release(id)
	_, bounded := a.rules.Quotas[held.Owner]
	return bounded || len(held.GPUs) > 0 || held.KeptCores || held.KeptMemory
}

// ReleaseAll ends the leases of the trials.
func (a *Allocator) ReleaseAll(trials []trial.Trial) {
	defer a.locked()()
	for _, t := range trials {
		a.leases.Release(t.ID)
	}
}
