package pool

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/trial"
)

// Pend counts a lease that is being decided, so that no other decision gives
// away what it will have. It has to be settled with the ticket.
func (l *Leases) Pend(lease Lease) (ticket int) {
	if l.pending == nil {
		l.pending = make(map[int]Lease)
	}
	l.tickets++
	l.changes++
	l.pending[l.tickets] = lease
	return l.tickets
}

// Settle ends what Pend began: the lease was granted, or will not be.
func (l *Leases) Settle(ticket int) {
	delete(l.pending, ticket)
	l.changes++
}

// Keeping is a trial that was given back to go on at another worker, and waits for
// that. Its lease is the one that it had, with the new worker: what it had is its
// owner's still, and nobody else's.
type Keeping struct {
	Lease
	// Until is when it waits no longer, Awaited when the worker was last known to be
	// there for it.
	Until, Awaited time.Time
	// After is the trial that has to leave that worker first; empty: none has.
	After trial.ID
}

// Keep counts what the trial had as its owner's, until it is leased again or let go.
func (l *Leases) Keep(one Keeping) {
	if l.kept == nil {
		l.kept = make(map[trial.ID]Keeping)
	}
	l.changes++
	l.kept[one.Trial] = one
}

// Kept are the trials that are kept for workers, in the order of their ids.
func (l *Leases) Kept() []Keeping {
	if len(l.kept) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(l.kept), func(a, b Keeping) int { return cmp.Compare(a.Trial, b.Trial) })
}

// Await notes that the worker for which the trial is kept is there.
func (l *Leases) Await(id trial.ID, now time.Time) {
	if one, kept := l.kept[id]; kept {
		one.Awaited = now
		l.kept[id] = one
	}
}

// LetGo ends what Keep began.
func (l *Leases) LetGo(id trial.ID) {
	if _, kept := l.kept[id]; kept {
		delete(l.kept, id)
		l.changes++
	}
}

// elsewhere are the leases of trials that are kept and have no other one: not even
// one that is being decided for their study at the worker that they are kept for,
// which gives them that.
func (l *Leases) elsewhere() (kept []Lease) {
	type seat struct{ study, worker string }
	deciding := make(map[seat]int)
	for _, one := range l.pending {
		deciding[seat{one.Study, one.Worker}]++
	}
	for _, one := range l.Kept() {
		at := seat{one.Study, one.Worker}
		if _, out := l.byTrial[one.Trial]; out {
			continue
		}
		if deciding[at] > 0 {
			deciding[at]--
			continue
		}
		kept = append(kept, one.Lease)
	}
	return kept
}

// Needs is what it needs of a worker: what it had.
func (l Lease) Needs() Need {
	need := Need{GPUs: len(l.GPUs), GPUShare: l.GPUShare, Cores: l.Cores, MemoryBytes: l.MemoryBytes, KeptCores: l.KeptCores, KeptMemory: l.KeptMemory}
	if need.GPUShare != nil {
		need.GPUs = 0
	}
	return need
}

// Changes counts how often who has what has changed.
func (l *Leases) Changes() uint64 { return l.changes }

// All returns every lease, those that are being decided among them, in no order.
func (l *Leases) All() []Lease {
	all := make([]Lease, 0, len(l.byTrial)+len(l.pending))
	for _, lease := range l.byTrial {
		all = append(all, lease)
	}
	for _, lease := range l.pending {
		all = append(all, lease)
	}
	return all
}

// Idle tells of a worker whether it has no lease, and none is being decided for it, for
// as long as nothing changes.
func (l *Leases) Idle() func(worker string) bool {
	deciding := make(map[string]bool, len(l.pending))
	for _, one := range l.pending {
		deciding[one.Worker] = true
	}
	return func(worker string) bool { return len(l.byWorker[worker]) == 0 && !deciding[worker] }
}

// Deciding returns the leases of the worker that are being decided, in the order
// in which that began.
func (l *Leases) Deciding(worker string) []Lease {
	if len(l.pending) == 0 {
		return nil
	}
	var deciding []Lease
	for _, ticket := range slices.Sorted(maps.Keys(l.pending)) {
		if lease := l.pending[ticket]; lease.Worker == worker {
			deciding = append(deciding, lease)
		}
	}
	return deciding
}

// Saved notes that the trial has a checkpoint to go on from.
func (l *Leases) Saved(id trial.ID, epoch trial.LeaseEpoch) {
	if lease, ok := l.byTrial[id]; ok && lease.Epoch == epoch {
		lease.Resumable = true
		l.byTrial[id] = lease
	}
}

// Ask wants the worker of the lease to pause its trial and to give it back, for the
// study and the reason; false if that lease is not out.
func (l *Leases) Ask(asked Lease, by Claim, reason string, now time.Time) bool {
	lease, ok := l.byTrial[asked.Trial]
	if !ok || lease.Epoch != asked.Epoch {
		return false
	}
	lease.Leave, lease.LeaveFor, lease.Preempted = reason, by, now
	l.byTrial[asked.Trial] = lease
	return true
}

// Asked is why the lease's worker shall give the trial back; empty: it shall not.
func (l *Leases) Asked(id trial.ID, epoch trial.LeaseEpoch) string {
	if lease, ok := l.byTrial[id]; ok && lease.Epoch == epoch {
		return lease.Leave
	}
	return ""
}
