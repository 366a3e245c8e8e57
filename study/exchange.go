package study

import (
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Two running trials change places like this. The one with the longer epochs pauses
// first, at the end of an epoch, and is kept for the other's worker; its own worker is
// kept for the other, which pauses at the end of its epoch and goes there. So at most
// one of them, and one worker, waits, for the shorter of the two epochs. If the other
// ends, is lost or is taken elsewhere, the first one has its worker all the same; if
// anything takes too long, both are free to go anywhere.

// vacancy is a worker that is kept for a trial which is about to leave another one.
type vacancy struct {
	trial trial.ID
	lease trial.LeaseEpoch
	until time.Time
}

// mover is a running trial that could go on elsewhere.
type mover struct {
	placement.Running
	lease  pool.Lease
	offer  offer
	sights map[string]sight
	// epoch is what one takes where it is, in seconds.
	epoch float64
	// there says of all workers whether it may run there, if that ran nothing.
	there []bool
}

// mayGo says of each worker whether the study's trial may run there, if that ran
// nothing and the trial gives back what it has.
func (s *Service) mayGo(r *session, lease pool.Lease, workers []stand) []bool {
	there := make([]bool, len(workers))
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	for i, one := range workers {
		member, known := s.workers.Member(one.worker)
		if !known || !suited(r, member) {
			continue
		}
		need := s.need(r, max(1, member.Registration.Machine.Cores))
		there[i] = s.withheld(r, member, need, lease.Amount()).reason == "" && pool.RoomOf(member, nil).Fits(need)
	}
	return there
}

// decideExchanges has trials change places that stay where they are otherwise.
func (s *Service) decideExchanges(movers []mover, machines []placement.Machine, known outlooks, byName map[string]stand) {
	var running []placement.Running
	by := map[string]mover{}
	for _, one := range movers {
		s.poolMutex.Lock()
		_, goes := s.moves[one.lease.Trial]
		s.poolMutex.Unlock()
		if goes || one.lease.GPUShare != nil {
			continue
		}
		task := one.Running
		task.Task = placement.Task{
			Name: one.Name, Energy: one.offer.energy, Suits: func(machine int) bool { return one.there[machine] },
			Needs: placement.Resources{Cores: one.lease.Cores, GPUs: len(one.lease.GPUs), MemoryBytes: keptMemory(one.lease)},
		}
		task.Owner = one.lease.Owner
		task.Move.Seconds += one.epoch // until the other one has come to the end of its own
		running = append(running, task)
		by[one.Name] = one
	}
	for _, one := range placement.Exchanges(running, machines, known, placement.Settings{}) {
		first, second := one.First, one.Second
		if by[first.Task].epoch < by[second.Task].epoch {
			first, second = second, first
		}
		s.toExchange([2]placement.Migration{first, second}, [2]mover{by[first.Task], by[second.Task]}, byName)
	}
}

// keptMemory is what the study asked for.
func keptMemory(lease pool.Lease) int64 {
	if lease.KeptMemory {
		return lease.MemoryBytes
	}
	return 0
}

// toExchange notes that two trials are to change places, if each has room where the
// other one is.
func (s *Service) toExchange(goes [2]placement.Migration, movers [2]mover, byName map[string]stand) {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	var both [2]*move
	for i, m := range goes {
		lease, other := movers[i].lease, movers[1-i].lease
		if s.expects(m.To) || !s.leases.Has(lease.Trial, lease.Epoch) || !s.roomWithout(m.To, other.Trial, lease.Needs()) {
			return
		}
		from, to := byName[m.From], byName[m.To]
		both[i] = &move{trial: lease.Trial, lease: lease.Epoch, worker: m.To, need: lease.Needs(), from: m.From, record: recordOf(lease, m, from, to)}
		both[i].record.Why = fmt.Sprintf("changes places with another trial, from %s (%s) to %s (%s): what is left should take %s there with the move, and %s here (an estimate); H=%g",
			from.host, from.machine, to.host, to.machine, amountsOf(both[i].record.Goes), amountsOf(both[i].record.Stays), movers[i].offer.energy)
	}
	wait := time.Duration(1.5*movers[1].epoch*float64(time.Second)) + keptSpan
	both[0].partner, both[1].partner, both[0].wait = both[1], both[0], wait
	for _, one := range both {
		s.options.Logger.Info("two trials are to change places", "trial", one.trial, "why", one.record.Why)
		s.moves[one.trial] = one
	}
}

// expects reports whether a trial is on its way to the worker. The pool's lock is held.
func (s *Service) expects(worker string) bool {
	for _, one := range s.moves {
		if one.worker == worker {
			return true
		}
	}
	_, vacant := s.vacancies[worker]
	return vacant || slices.ContainsFunc(s.leases.Kept(), func(k pool.Keeping) bool { return k.Worker == worker })
}

// roomWithout reports whether the worker would have room if it did not run the trial.
// The pool's lock is held.
func (s *Service) roomWithout(worker string, without trial.ID, need pool.Need) bool {
	member, known := s.workers.Member(worker)
	if !known {
		return s.returns()
	}
	if s.drainOf(member) != nil {
		return false
	}
	held := slices.DeleteFunc(s.heldOf(worker), func(l pool.Lease) bool { return l.Trial == without })
	room := pool.RoomOf(member, held)
	return room.Trials < room.Slots && room.Fits(need)
}

// mayLeave reports whether a trial that changes places may pause now. The pool's lock
// is held.
func (s *Service) mayLeave(one *move) bool {
	other := one.partner
	if one.wait > 0 { // it goes first
		_, moves := s.moves[other.trial]
		return moves && s.leases.Has(other.trial, other.lease) && s.roomWithout(one.worker, other.trial, one.need)
	}
	return s.isKept(other.trial) && s.vacancies[one.worker].trial == one.trial
}

// waitsForPartner reports whether the other trial has not left its worker yet. The
// pool's lock is held.
func (s *Service) waitsForPartner(one *move) bool {
	other := one.partner
	leaves := s.moves[other.trial] == other || s.vacancies[one.worker].trial == one.trial
	return one.wait == 0 && leaves && s.leases.Has(other.trial, other.lease)
}

// vacate keeps the worker that the first of two trials leaves for the second. The
// pool's lock is held.
func (s *Service) vacate(one *move, now time.Time) {
	s.vacancies[one.from] = vacancy{one.partner.trial, one.partner.lease, now.Add(one.wait)}
}

// occupied says why the worker takes nothing of the study: it is kept for a trial that
// changes places. The pool's lock is held.
func (s *Service) occupied(r *session, member pool.Member) refused {
	one, vacant := s.vacancies[member.Registration.ID]
	if !vacant || !s.options.Now().Before(one.until) {
		return refused{}
	}
	if slices.ContainsFunc(s.leases.Kept(), func(k pool.Keeping) bool { return k.Trial == one.trial && k.Study == r.id }) {
		return refused{} // it has come
	}
	return refused{protocol.WaitBusy, "worker " + member.Registration.Name + " is kept for a trial that changes places with the one that it ran"}
}

// fill ends the vacancies that nobody will come for, or came too late for. The pool's
// lock is held.
func (s *Service) fill(now time.Time) (some bool) {
	for worker, one := range s.vacancies {
		if !now.Before(one.until) || !s.isKept(one.trial) && !s.leases.Has(one.trial, one.lease) {
			delete(s.vacancies, worker)
			some = true
		}
	}
	return some
}
