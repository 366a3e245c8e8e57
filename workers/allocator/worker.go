package allocator

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/rules"
)

// Workers are those that are registered. They share the allocator's lock.
type Workers struct{ *state }

// Why a worker cannot be spoken for.
var (
	ErrUnknown = errors.New("the worker is not registered")
	ErrForeign = errors.New("the worker is somebody else's")
	ErrGone    = errors.New("the worker's launch has ended")
)

// Register notes a worker, which then belongs to the caller. It fails with ErrForeign
// where the id belongs to another, and with ErrGone where its launch has ended.
func (w Workers) Register(caller access.Caller, registration protocol.WorkerRegistration) error {
	defer w.locked()()
	if present, known := w.workers.Member(registration.ID); known && !caller.Holds(present.Holder) {
		return ErrForeign
	}
	if w.gone[launch{caller.Holder, registration.Launch}] {
		return ErrGone
	}
	w.workers.Register(registration, caller.Holder, w.now())
	w.counted = counted{}
	return nil
}

// Remove forgets a worker; false if it is not the caller's. Leases that it holds run
// out by themselves.
func (w Workers) Remove(caller access.Caller, worker string) bool {
	defer w.locked()()
	if member, known := w.workers.Member(worker); known && !caller.Holds(member.Holder) {
		return false
	}
	w.workers.Remove(worker)
	return true
}

// launch is what a launcher started, by who holds its worker.
type launch struct{ holder, id string }

// mostGone is how many launches that have ended are remembered.
const mostGone = 10_000

// Gone notes that the launch of a worker has ended: it is not heard any more, should it
// still run. What it holds is for the caller to end, which then calls [Workers.Bury].
func (w Workers) Gone(caller access.Caller, worker, id string) (held []pool.Lease, err error) {
	defer w.locked()()
	member, known := w.workers.Member(worker)
	switch {
	case !known:
		return nil, ErrUnknown
	case !caller.Holds(member.Holder):
		return nil, ErrForeign
	case id == "", id != member.Registration.Launch: // nobody launched it, or another launch is meant
		return nil, ErrGone
	}
	if len(w.gone) >= mostGone {
		clear(w.gone) // a worker that still runs long after is only given trials again
	}
	w.gone[launch{member.Holder, id}] = true
	return w.leases.Of(worker), nil
}

// Bury forgets a worker that is gone.
func (w Workers) Bury(worker string) {
	defer w.locked()()
	w.workers.Remove(worker)
}

// seen notes that the worker was heard of. It fails where that is not registered, not
// the caller's, or gone.
func (s *state) seen(worker string, caller access.Caller) (pool.Member, error) {
	member, known := s.workers.Member(worker)
	switch {
	case !known, s.gone[launch{member.Holder, member.Registration.Launch}]:
		return member, ErrUnknown
	case !caller.Holds(member.Holder):
		return member, ErrForeign
	}
	s.workers.Seen(worker, s.now())
	return member, nil
}

// Heartbeat notes that the worker was heard of, and what it says of itself.
func (w Workers) Heartbeat(caller access.Caller, worker string, beat protocol.Heartbeat) error {
	defer w.locked()()
	if _, err := w.seen(worker, caller); err != nil {
		return err
	}
	if beat.Sprint != nil {
		w.workers.NoteSprint(worker, beat.Sprint)
	}
	if beat.Load != nil {
		w.workers.NoteLoad(worker, beat.Load, w.now())
	}
	return nil
}

// Excuse renews the caller's leases of the worker, and notes that it was heard of.
func (w Workers) Excuse(caller access.Caller, worker string) {
	now := w.now()
	defer w.locked()()
	if member, known := w.workers.Member(worker); known && caller.Holds(member.Holder) {
		w.workers.Seen(worker, now)
	}
	for _, lease := range w.leases.Of(worker) {
		if caller.Holds(lease.Holder) {
			w.leases.Renew(lease.Trial, lease.Epoch, now.Add(w.term))
		}
	}
}

// Refuse notes why the worker does not run the study.
func (w Workers) Refuse(worker, study, reason string) {
	defer w.locked()()
	w.workers.Refuse(worker, study, reason)
}

// Worker is the worker with the id and what it holds; false if it is not registered.
func (w Workers) Worker(id string) (member pool.Member, held []pool.Lease, known bool) {
	defer w.locked()()
	member, known = w.workers.Member(id)
	return member, w.leases.Of(id), known
}

// Exclusions are those of workers from the study, those that are over among them.
func (w Workers) Exclusions(study string) []pool.Exclusion {
	defer w.locked()()
	return w.workers.Exclusions(study)
}

// History is how busy the worker's machine was; false if it is not registered.
func (w Workers) History(worker string) ([]protocol.LoadStep, bool) {
	defer w.locked()()
	_, known := w.workers.Member(worker)
	return w.workers.History(worker, w.now()), known
}

// ForgetSilent takes those workers out that are not registered or were not heard of.
func (w Workers) ForgetSilent(workers map[string]bool) {
	defer w.locked()()
	maps.DeleteFunc(workers, func(worker string, _ bool) bool {
		member, known := w.workers.Member(worker)
		return !known || !w.heard(&member)
	})
}

// GPUTypes are the types of GPU of the workers that were heard of, sorted.
func (w Workers) GPUTypes() []string {
	defer w.locked()()
	types := map[string]bool{}
	for member := range w.workers.All() {
		if len(member.Registration.Machine.GPUs) > 0 && w.heard(member) {
			for _, name := range member.Registration.Machine.GPUs {
				types[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(types))
}

// PauseReason is why the trial should be given back: it makes way, or its worker is
// drained; empty if it should not.
func (w Workers) PauseReason(id trial.ID, epoch trial.LeaseEpoch, worker string) string {
	defer w.locked()()
	if reason := w.leases.Asked(id, epoch); reason != "" {
		return reason
	}
	if member, known := w.workers.Member(worker); known {
		if drain := w.rules.DrainOf(member); drain != nil && drain.Now {
			return "worker " + member.Registration.Name + " is drained" + because(drain.Reason)
		}
	}
	return ""
}

// Standing is a registered worker, with what it runs, how it is drained and how many of
// its calls wait.
type Standing struct {
	pool.Member
	Alive  bool
	Trials []trial.ID
	Drain  *protocol.Drain // nil: it is not
	Calls  int
}

// Sprints is what all workers that were heard of have left for sprints.
func (w Workers) Sprints() (sum protocol.SprintAccount) {
	defer w.locked()()
	for member := range w.workers.All() {
		if account := member.Sprint; account != nil && w.heard(member) {
			sum.Joules, sum.Of, sum.Watts = sum.Joules+account.Joules, sum.Of+account.Of, sum.Watts+account.Watts
			sum.ExtraWatts = max(sum.ExtraWatts, account.ExtraWatts) // of one trial, at most
		}
	}
	return sum
}

// Snapshot is the pool at one moment. Nothing in it is to be changed.
type Snapshot struct {
	Now     time.Time
	Workers []Standing // by name, then id
	Rules   rules.Rules
	Held    pool.Holdings
}

// Snapshot is the pool now.
func (w Workers) Snapshot() Snapshot {
	defer w.locked()()
	all := Snapshot{Now: w.now(), Rules: w.rules.Copy(), Held: w.holdings()}
	members := w.workers.Members()
	all.Workers = make([]Standing, 0, len(members))
	for _, member := range members {
		one := Standing{Member: member, Alive: w.heard(&member), Trials: w.leases.HeldBy(member.Registration.ID), Drain: w.rules.DrainOf(member)}
		if waiter, waits := w.queue.Waiter(member.Registration.ID); waits {
			one.Calls = waiter.Calls
		}
		all.Workers = append(all.Workers, one)
	}
	return all
}
