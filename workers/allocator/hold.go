package allocator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/waitqueue"
)

// heldFor are the queued trials of the study that are held for a worker.
func (s *state) heldFor(study string, queue []int) Held {
	var held Held
	now := s.now()
	for _, one := range s.leases.Kept() {
		if number, known := one.Trial.Number(); known && one.Study == study && now.Before(one.Until) && slices.Contains(queue, number) {
			if held == nil {
				held = Held{}
			}
			held[number] = one.Worker
		}
	}
	return held
}

// Held are those of the queued trials of the study that are held for a worker.
func (p Placements) Held(study string, queue []int) Held {
	defer p.locked()()
	return p.heldFor(study, queue)
}

// heldAmount is what the first of the study's trials had that are held for the worker,
// as one is leased at a time.
func (s *state) heldAmount(study, worker string) pool.Amount {
	for _, one := range s.leases.Kept() {
		if one.Study == study && one.Worker == worker {
			return one.Amount()
		}
	}
	return pool.Amount{}
}

// HeldAmount is what a trial of the study had that is held for the worker, and what
// people call that.
func (p Placements) HeldAmount(study, worker string) (pool.Amount, string) {
	defer p.locked()()
	member, _ := p.workers.Member(worker)
	return p.heldAmount(study, worker), cmp.Or(member.Registration.Name, worker)
}

// Hold holds a trial that is given back for the worker that it moves to, with what it
// had: another trial of its owner must not have that meanwhile, nor may another worker
// have the trial. It reports whether the trial was out.
func (m Migrations) Hold(one *Migration, now time.Time) bool {
	defer m.locked()()
	lease, out := m.leases.Lease(one.Trial)
	if !out {
		return false
	}
	lease.Worker = one.Worker
	held := pool.Keeping{Lease: lease, Until: now.Add(max(HoldSpan, one.Wait)), Awaited: now}
	if one.Wait > 0 {
		held.After = one.Partner.Trial
	}
	m.leases.Keep(held)
	return true
}

// ReleaseHold holds the trial for nobody any more.
func (m Migrations) ReleaseHold(id trial.ID) {
	defer m.locked()()
	m.leases.LetGo(id)
}

// Holds are the trials that are held for workers.
func (m Migrations) Holds() []pool.Keeping {
	defer m.locked()()
	return m.leases.Kept()
}

// ReleaseHolds releases the held trials whose worker did not come for them in time,
// has gone, or can have them no more, so that any other may have them; and of those that
// are not queued any more. It ends exclusions that are over, too, and reports whether
// anybody should look again.
func (m Migrations) ReleaseHolds(now time.Time, queued func(trial.ID) bool) (some bool) {
	held, waiting := m.Holds(), map[trial.ID]bool{}
	for _, one := range held {
		waiting[one.Trial] = queued(one.Trial) // asks a study, so it is asked without the lock
	}
	defer m.locked()()
	for _, one := range held {
		_, waits := m.queue.Waiter(one.Worker)
		_, known := m.workers.Member(one.Worker)
		if _, out := m.leases.Lease(one.After); waits || out || !known && m.returns() {
			one.Awaited = now
			m.leases.Await(one.Trial, now)
		}
		if !waiting[one.Trial] || !now.Before(one.Until) || now.Sub(one.Awaited) >= waitqueue.Patience || !m.meets(one) {
			m.leases.LetGo(one.Trial)
			some = true
		}
	}
	some = m.endSlotHolds(now) || some
	return m.workers.EndExclusions(now) || some
}

// meets reports whether the worker for which a trial is held has room for it, and may
// have it.
func (s *state) meets(one pool.Keeping) bool {
	asker := pool.Asker{Owner: one.Owner, Study: one.Study, Need: one.Needs()}
	if member, known := s.workers.Member(one.Worker); known && s.reservedFor(member, asker) != "" {
		return false
	}
	return s.roomWithout(s.leases.Of(one.Worker), one.Worker, one.After, asker.Need)
}

// isHeld reports whether the trial is held for a worker.
func (s *state) isHeld(id trial.ID) bool {
	return slices.ContainsFunc(s.leases.Kept(), func(k pool.Keeping) bool { return k.Trial == id })
}

// Two running trials change places like this. The one with the longer epochs pauses
// first, at the end of an epoch, and is held for the other's worker; its own worker is
// held for the other, which pauses at the end of its epoch and goes there. So at most
// one of them, and one worker, waits, for the shorter of the two epochs. If the other
// ends, is lost or is taken elsewhere, the first one has its worker all the same; if
// anything takes too long, both are free to go anywhere.

// slotHold is a worker that is held for a trial which is about to leave another one.
type slotHold struct {
	trial trial.ID
	lease trial.LeaseEpoch
	until time.Time
}

// expects reports whether a trial is on its way to the worker.
func (s *state) expects(worker string) bool {
	for _, one := range s.migrations {
		if one.Worker == worker {
			return true
		}
	}
	_, held := s.slotHolds[worker]
	return held || slices.ContainsFunc(s.leases.Kept(), func(k pool.Keeping) bool { return k.Worker == worker })
}

// roomWithout reports whether the worker, of the leases that it has, would have room if
// it did not run the trial.
func (s *state) roomWithout(leases []pool.Lease, worker string, without trial.ID, need pool.Need) bool {
	member, known := s.workers.Member(worker)
	if !known {
		return s.returns()
	}
	if s.rules.DrainOf(member) != nil {
		return false
	}
	held := slices.DeleteFunc(leases, func(l pool.Lease) bool { return l.Trial == without })
	return takesOne(pool.RoomOf(member, held), need)
}

// mayLeave reports whether a trial that changes places may pause now.
func (s *state) mayLeave(one *Migration) bool {
	other := one.Partner
	if one.Wait > 0 { // it goes first
		_, moves := s.migrations[other.Trial]
		return moves && s.leases.Has(other.Trial, other.Lease) && s.roomWithout(s.heldOf(one.Worker), one.Worker, other.Trial, one.Need)
	}
	return s.isHeld(other.Trial) && s.slotHolds[one.Worker].trial == one.Trial
}

// waitsForPartner reports whether the other trial has not left its worker yet.
func (m Migrations) waitsForPartner(one *Migration) bool {
	other := one.Partner
	leaves := m.migrations[other.Trial] == other || m.slotHolds[one.Worker].trial == one.Trial
	return one.Wait == 0 && leaves && m.leases.Has(other.Trial, other.Lease)
}

// holdSlot holds the worker that the first of two trials leaves for the second.
func (s *state) holdSlot(one *Migration, now time.Time) {
	s.slotHolds[one.From] = slotHold{one.Partner.Trial, one.Partner.Lease, now.Add(one.Wait)}
}

// occupied says why the worker takes nothing of the study: it is held for a trial that
// changes places.
func (s *state) occupied(study string, member pool.Member) Refusal {
	one, held := s.slotHolds[member.Registration.ID]
	if !held || !s.now().Before(one.until) {
		return Refusal{}
	}
	if slices.ContainsFunc(s.leases.Kept(), func(k pool.Keeping) bool { return k.Trial == one.trial && k.Study == study }) {
		return Refusal{} // it has come
	}
	return Refusal{protocol.WaitBusy, fmt.Sprintf("worker %s is kept for a trial that changes places with the one that it ran", member.Registration.Name)}
}

// endSlotHolds ends those that nobody will come for, or came too late for.
func (m Migrations) endSlotHolds(now time.Time) (some bool) {
	for worker, one := range m.slotHolds {
		if !now.Before(one.until) || !m.isHeld(one.trial) && !m.leases.Has(one.trial, one.lease) {
			delete(m.slotHolds, worker)
			some = true
		}
	}
	return some
}
