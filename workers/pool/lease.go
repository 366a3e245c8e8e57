// Package pool answers: who runs what, and for how long may they?
//
// [Leases] keeps the deadlines of the leases that are out, [Registry] the
// workers, and [Order] decides which study a free worker serves first. All are
// plain values that take the time as an argument: no clock, no I/O, no lock.
// The invariant: a trial has at most one lease, and it ends by release or by
// its deadline.
package pool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/trial"
)

// LeaseID names a lease: a trial, and which of its leases.
type LeaseID struct {
	Trial trial.ID
	Epoch trial.LeaseEpoch
}

func (l LeaseID) String() string { return fmt.Sprintf("%s@%d", l.Trial, l.Epoch) }

// ParseLeaseID is the inverse of [LeaseID.String].
func ParseLeaseID(text string) (LeaseID, bool) {
	id, epoch, cut := strings.Cut(text, "@")
	number, err := strconv.ParseInt(epoch, 10, 64)
	return LeaseID{trial.ID(id), trial.LeaseEpoch(number)}, cut && err == nil
}

// Lease is one trial in a worker's hands.
type Lease struct {
	Trial trial.ID
	Epoch trial.LeaseEpoch
	// Study is the id of the trial's study, Owner the user whose it is (empty: the
	// administrators), Priority its class.
	Study, Owner string
	Priority     int
	Worker       string
	// Holder is to whom the worker belongs.
	Holder   string
	Deadline time.Time
	// Cores is how many cores it keeps busy; 0: all of the machine.
	Cores int
	// MemoryBytes is what it was seen to use, or what is kept for it; 0 where
	// neither is known.
	MemoryBytes int64
	// KeptCores and KeptMemory say that its study asked for so many cores and so
	// much memory: they count also where the worker divides its machine itself.
	KeptCores, KeptMemory bool
	// GPUs are those it has for itself, by their place in the machine's list; with
	// a GPUShare it is one that it may share, and that is what it should take of it.
	GPUs     []int
	GPUShare *GPUShare
	// Beside says that another trial has, or had, a share of the same GPU under it.
	Beside bool
	// Granted is when the worker got it.
	Granted time.Time
	// Resumable says that the trial has a checkpoint to go on from.
	Resumable bool
	// Preempted is when the trial was last asked to make way; zero: never.
	Preempted time.Time
	// Leave is why its worker shall pause it and give it back; empty: it shall not.
	Leave string
	// LeaveFor is for whom it shall; the zero value: for nobody in particular.
	LeaveFor Claim
}

// Claim is a study for which trials make way.
type Claim struct {
	Study    string
	Priority int
	// Lapsed says that it does not hold now: the study has no work, or may not have
	// what is left.
	Lapsed bool
}

// Leases are the leases that are out. The zero value is empty and ready.
type Leases struct {
	byTrial map[trial.ID]Lease
	// byWorker names the trials each worker has.
	byWorker map[string]map[trial.ID]struct{}
	// pending are those that are being decided, by the tickets of Pend.
	pending map[int]Lease
	tickets int
	// kept are trials that wait for the worker they move to.
	kept map[trial.ID]Keeping
	// cleared are the claims on what trials have left, by worker.
	cleared map[string][]cleared
	// changes counts what changed in who has what.
	changes uint64
}

// Grant records a lease, in place of any older one of the trial.
func (l *Leases) Grant(lease Lease) {
	if l.byTrial == nil {
		l.byTrial = make(map[trial.ID]Lease)
		l.byWorker = make(map[string]map[trial.ID]struct{})
	}
	l.Release(lease.Trial)
	l.LetGo(lease.Trial)
	l.changes++
	for _, id := range l.Sharers(lease) {
		other := l.byTrial[id]
		other.Beside, lease.Beside = true, true
		l.byTrial[id] = other
	}
	l.byTrial[lease.Trial] = lease
	l.take(lease)
	if l.byWorker[lease.Worker] == nil {
		l.byWorker[lease.Worker] = make(map[trial.ID]struct{})
	}
	l.byWorker[lease.Worker][lease.Trial] = struct{}{}
}

// Sharers are the other trials that have a share of the lease's GPU, in order of
// their ids.
func (l *Leases) Sharers(lease Lease) []trial.ID {
	if lease.GPUShare == nil || len(lease.GPUs) == 0 {
		return nil
	}
	return slices.DeleteFunc(l.HeldBy(lease.Worker), func(id trial.ID) bool {
		other := l.byTrial[id]
		return id == lease.Trial || other.GPUShare == nil || !slices.Equal(other.GPUs, lease.GPUs)
	})
}

// Reshare notes what the lease should take of its GPU from now on.
func (l *Leases) Reshare(id trial.ID, epoch trial.LeaseEpoch, share GPUShare) {
	if lease, ok := l.byTrial[id]; ok && lease.Epoch == epoch && lease.GPUShare != nil {
		lease.GPUShare = &share
		l.changes++
		l.byTrial[id] = lease
	}
}

// Restate notes whose the study is now, and its priority, where it has or claims something.
func (l *Leases) Restate(study, owner string, priority int) {
	for id, lease := range l.byTrial {
		if lease.Study == study {
			lease.Owner, lease.Priority = owner, priority
		}
		lease.LeaveFor.restate(study, priority)
		l.byTrial[id] = lease
	}
	for _, claims := range l.cleared {
		for i := range claims {
			claims[i].restate(study, priority)
		}
	}
	l.changes++
}

// Resize notes what the lease takes of its machine from now on.
func (l *Leases) Resize(id trial.ID, epoch trial.LeaseEpoch, cores int, memory int64) {
	if lease, ok := l.byTrial[id]; ok && lease.Epoch == epoch {
		lease.Cores, lease.MemoryBytes = cores, memory
		l.changes++
		l.byTrial[id] = lease
	}
}

// Renew moves a lease's deadline; false if that lease is not out.
func (l *Leases) Renew(id trial.ID, epoch trial.LeaseEpoch, deadline time.Time) bool {
	lease, ok := l.byTrial[id]
	if !ok || lease.Epoch != epoch {
		return false
	}
	lease.Deadline = deadline
	l.byTrial[id] = lease
	return true
}

// Has reports whether that very lease is out.
func (l *Leases) Has(id trial.ID, epoch trial.LeaseEpoch) bool {
	lease, ok := l.byTrial[id]
	return ok && lease.Epoch == epoch
}

// Renewed reports whether the lease was renewed since it was looked at.
func (l *Leases) Renewed(since Lease) bool {
	lease, ok := l.byTrial[since.Trial]
	return ok && lease.Epoch == since.Epoch && lease.Deadline.After(since.Deadline)
}

// Release ends the trial's lease.
func (l *Leases) Release(id trial.ID) {
	lease, ok := l.byTrial[id]
	if !ok {
		return
	}
	delete(l.byTrial, id)
	l.changes++
	l.clear(lease)
	if of := l.byWorker[lease.Worker]; len(of) > 1 {
		delete(of, id)
	} else {
		delete(l.byWorker, lease.Worker)
	}
}

// Expired returns the leases whose deadline has passed, the oldest first.
func (l *Leases) Expired(now time.Time) []Lease {
	var expired []Lease
	for _, lease := range l.byTrial {
		if lease.Deadline.Before(now) {
			expired = append(expired, lease)
		}
	}
	slices.SortFunc(expired, func(a, b Lease) int {
		if c := a.Deadline.Compare(b.Deadline); c != 0 {
			return c
		}
		return strings.Compare(string(a.Trial), string(b.Trial))
	})
	return expired
}

// Postpone moves every deadline by the span, but not beyond the latest one a
// lease can have: the server itself was asleep, and no worker is to blame for a
// heartbeat nobody could take.
func (l *Leases) Postpone(span time.Duration, latest time.Time) {
	for id, lease := range l.byTrial {
		if lease.Deadline = lease.Deadline.Add(span); lease.Deadline.After(latest) {
			lease.Deadline = latest
		}
		l.byTrial[id] = lease
	}
}

// Lease returns the one of the trial that is out.
func (l *Leases) Lease(id trial.ID) (Lease, bool) {
	lease, ok := l.byTrial[id]
	return lease, ok
}

// HeldBy returns the trials leased to the worker, in order of their ids.
func (l *Leases) HeldBy(worker string) []trial.ID {
	held := make([]trial.ID, 0, len(l.byWorker[worker]))
	for id := range l.byWorker[worker] {
		held = append(held, id)
	}
	slices.Sort(held)
	return held
}

// Of returns the worker's leases, in order of their trials' ids.
func (l *Leases) Of(worker string) []Lease {
	held := l.HeldBy(worker)
	leases := make([]Lease, len(held))
	for i, id := range held {
		leases[i] = l.byTrial[id]
	}
	return leases
}
