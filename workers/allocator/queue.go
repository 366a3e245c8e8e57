package allocator

import (
	"time"

	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Skip has a worker with a machine of the type wait for a better one that waits too,
// which is woken. It is false when the worker has waited for long enough.
func (a *Allocator) Skip(worker, machine, study, better string) bool {
	now := a.now()
	defer a.locked()()
	if !a.queue.Skip(now, worker, study, better) {
		return false
	}
	a.queue.NoteFirst(study, machine, now)
	return true
}

// WakeSkipped has those look again who were skipped, and forgets what is long ago.
func (a *Allocator) WakeSkipped(now time.Time) {
	defer a.locked()()
	a.queue.WakeSkipped(now)
}

// Visit is a worker's call for a trial.
type Visit struct {
	Caller access.Caller
	Worker string
	// Study is the one that it asks for by its name; empty: any.
	Study string
	// Enqueue says that the call waits from now on, until Leave.
	Enqueue bool
	// Shares says that it needs the owners' shares, which are counted over all workers.
	Shares bool
}

// Arrival is what the allocator knows of a worker that calls.
type Arrival struct {
	// Elastic workers are given one trial at a time. Short says that one was ready and
	// had no room, when the worker last asked.
	Elastic, Short bool
	// Wake is closed when the worker should look again; nil if it does not wait.
	Wake <-chan struct{}
	// Waits says that it waits, Several that the workers which wait and this one have
	// machines of several types.
	Waits, Several bool
	// Expected are the studies with a trial that is held for the worker.
	Expected []string
	Shares   Shares
}

// Arrive notes a worker's call. It fails where the worker is not registered or not the
// caller's.
func (a *Allocator) Arrive(v Visit) (Arrival, error) {
	defer a.locked()()
	member, err := a.seen(v.Worker, v.Caller)
	if err != nil {
		return Arrival{}, err
	}
	machine := member.Registration.Machine.Type()
	a.workers.NoteOnly(v.Worker, v.Study)
	if v.Enqueue {
		a.queue.Enqueue(v.Worker, machine, v.Caller)
	}
	arrival := Arrival{Elastic: member.Registration.Elastic, Short: member.Short, Shares: Shares{Clearing: !a.gangs.Empty()}, Several: a.queue.Several(machine)}
	if v.Shares {
		arrival.Shares = a.shares()
	}
	if w, waits := a.queue.Waiter(v.Worker); waits {
		arrival.Wake, arrival.Waits = w.Wake(), true
	}
	now := a.now()
	for _, one := range a.leases.Kept() {
		if one.Worker == v.Worker && now.Before(one.Until) {
			arrival.Expected = append(arrival.Expected, one.Study)
		}
	}
	return arrival, nil
}

// Leave ends a call that waited.
func (a *Allocator) Leave(worker string) {
	defer a.locked()()
	a.queue.Dequeue(worker)
}

// NoteShort notes whether a trial was ready and had no room on the worker.
func (a *Allocator) NoteShort(worker string, short bool) {
	defer a.locked()()
	a.workers.NoteShort(worker, short)
}

// served forgets that the worker was skipped: it has a trial. The trials are released
// that are held for it and find no room any more.
func (s *state) served(lease pool.Lease) (released bool) {
	s.queue.Served(lease.Worker)
	for _, one := range s.leases.Kept() {
		if one.Worker == lease.Worker && !s.meets(one) {
			s.leases.LetGo(one.Trial)
			released = true
		}
	}
	return released
}
