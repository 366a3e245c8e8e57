package study

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

// moveEntry is the kind of what is stored of moves: of each that a trial was told
// of, with the report after which it was told, until it has arrived or goes
// nowhere. So a server that starts again knows who has left a place for whom.
// What had not been told yet is decided anew.
const moveEntry = "move"

// storedMove is a move of a running trial as it is stored, with that of its
// partner where two change places: then it is that of the one which goes first.
type storedMove struct {
	Trial trial.ID         `json:"trial"`
	Lease trial.LeaseEpoch `json:"lease"`
	// Worker and From are the ids of the workers, Wait is in nanoseconds.
	Worker  string          `json:"worker"`
	From    string          `json:"from,omitempty"`
	Wait    time.Duration   `json:"wait,omitempty"`
	Told    bool            `json:"told,omitempty"`
	Record  trial.Migration `json:"record"`
	Partner *storedMove     `json:"partner,omitempty"`
}

// name tells it from earlier moves of the trial.
func (m storedMove) name() string { return fmt.Sprintf("%s@%d", m.Trial, m.Lease) }

// stored is the move as it is stored, which is with the one that goes first.
func (one *move) stored() storedMove {
	if one.partner != nil && one.wait == 0 {
		return one.partner.stored()
	}
	all := one.alone()
	if one.partner != nil {
		partner := one.partner.alone()
		all.Partner = &partner
	}
	return all
}

func (one *move) alone() storedMove {
	return storedMove{Trial: one.trial, Lease: one.lease, Worker: one.worker, From: one.from, Wait: one.wait, Told: one.told, Record: one.record}
}

// move is the stored one, without its partner.
func (m storedMove) move() *move {
	return &move{trial: m.Trial, lease: m.Lease, worker: m.Worker, from: m.From, wait: m.Wait, told: m.Told, record: m.Record}
}

// tell stores with the transaction that a trial was told to move, as it is once the
// transaction is durable. The pool's lock is held.
func (s *Service) tell(tx *transaction, one *move) {
	told := *one
	told.told = true
	if one.partner != nil {
		partner := *one.partner
		told.partner, partner.partner = &partner, &told
	}
	stored := told.stored()
	tx.change.Pool = append(tx.change.Pool, poolEntry(moveEntry, stored.name(), stored))
	tx.then(func() {
		s.poolMutex.Lock()
		defer s.poolMutex.Unlock()
		one.told = true
		s.departing[stored.name()] = stored
	})
}

// forgo takes back with the transaction that a trial is kept for its worker, which has
// other work. What the second of two does is no matter of the first one.
func (tx *transaction) forgo() {
	if stored := tx.move.stored(); stored.Trial == tx.move.trial {
		tx.change.Pool = append(tx.change.Pool, PoolEntry{Kind: moveEntry, Name: stored.name()})
	}
}

// departed are the entries to remove of moves that are over.
// The pool's lock is held.
func (s *Service) departed() (over []PoolEntry) {
	for name, stored := range s.departing {
		if s.departs(stored) || stored.Partner != nil && s.departs(*stored.Partner) {
			continue
		}
		over = append(over, PoolEntry{Kind: moveEntry, Name: name})
	}
	return over
}

// departs reports whether the trial is to leave, or has left and not arrived. The
// pool's lock is held.
func (s *Service) departs(m storedMove) bool {
	if s.isKept(m.Trial) || m.Told && s.leases.Has(m.Trial, m.Lease) {
		return true
	}
	one, moves := s.moves[m.Trial]
	return moves && one.lease == m.Lease
}

// isKept reports whether the trial is kept for a worker. The pool's lock is held.
func (s *Service) isKept(id trial.ID) bool {
	return slices.ContainsFunc(s.leases.Kept(), func(k pool.Keeping) bool { return k.Trial == id })
}

// loadMoves goes on with the moves that were under way when the server stopped.
// Whoever is waited for gets a whole new term, as leases do.
func (s *Service) loadMoves(ctx context.Context) error {
	var all []storedMove
	if err := eachEntry(ctx, s.store, moveEntry, func(_ string, one storedMove) { all = append(all, one) }); err != nil {
		return err
	}
	for _, stored := range all {
		s.goOnMoving(stored)
	}
	return nil
}

// goOnMoving goes on with one of them.
func (s *Service) goOnMoving(stored storedMove) {
	now, first := s.options.Now(), stored.move()
	here := s.whereabouts(first, now)
	var second *move
	var there whereabouts
	if stored.Partner != nil {
		second = stored.Partner.move()
		first.partner, second.partner = second, first
		there = s.whereabouts(second, now)
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	s.departing[stored.name()] = stored
	after := trial.ID("")
	if second != nil && (here.runs || here.left || second.told) {
		s.resume(second, there, now, "")
		if there.runs {
			after = second.trial
		}
		if !here.runs && (there.runs || there.left) {
			s.vacate(first, now)
		}
	}
	s.resume(first, here, now, after)
}

// resume has the trial leave, or keeps it for its worker if it has left. The pool's lock is
// held.
func (s *Service) resume(one *move, at whereabouts, now time.Time, after trial.ID) {
	switch {
	case at.runs:
		one.need = at.lease.Needs()
		s.moves[one.trial] = one
	case at.left:
		at.lease.Worker = one.worker
		s.leases.Keep(pool.Keeping{Lease: at.lease, Until: now.Add(max(keptSpan, one.wait)), Awaited: now, After: after})
	}
}

// whereabouts is where a trial is that was told to move, or whose partner was: it
// runs still, under that lease, or has left its worker and waits. Neither: that
// lease is over.
type whereabouts struct {
	runs, left bool
	lease      pool.Lease
}

func (s *Service) whereabouts(one *move, now time.Time) whereabouts {
	study, number := studyOf(one.trial)
	s.mutex.Lock()
	r, loaded := s.sessions[study]
	s.mutex.Unlock()
	if !loaded {
		return whereabouts{}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if number >= len(r.trials) || r.trials[number].LeaseEpoch != one.lease {
		return whereabouts{}
	}
	t := r.trials[number]
	return whereabouts{runs: t.State.Held(), left: t.State == trial.Queued, lease: r.leaseRecord(t, r.takes(t, 0, 0), now)}
}

// returns reports whether a worker that is not registered may only not have heard
// yet that the server was started again.
func (s *Service) returns() bool { return s.options.Now().Sub(s.began) < s.leaseTerm() }
