package study

import (
	"slices"
	"time"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

// awaiting are the queued trials of a study that are kept for a worker, by number.
type awaiting map[int]string

// besides is how many are kept for other workers than this one.
func (a awaiting) besides(worker string) int {
	count := 0
	for _, one := range a {
		if one != worker {
			count++
		}
	}
	return count
}

// awaitingOf are those of the study, whose lock is held.
func (s *Service) awaitingOf(r *session) awaiting {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	var kept awaiting
	now := s.options.Now()
	for _, one := range s.leases.Kept() {
		if number, known := one.Trial.Number(); known && one.Study == r.id && now.Before(one.Until) && slices.Contains(r.queue, number) {
			if kept == nil {
				kept = awaiting{}
			}
			kept[number] = one.Worker
		}
	}
	return kept
}

// keep keeps a trial that is given back for the worker that it moves to, with what
// it had: another trial of its owner must not have that meanwhile, nor may another
// worker have the trial, which is seen in the queue before that is durable.
func (s *Service) keep(tx *transaction, held pool.Lease) {
	if !tx.kept {
		return
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if lease, out := s.leases.Lease(held.Trial); out {
		lease.Worker = tx.move.worker
		one := pool.Keeping{Lease: lease, Until: tx.now.Add(max(keptSpan, tx.move.wait)), Awaited: tx.now}
		if tx.move.wait > 0 {
			one.After = tx.move.partner.trial
		}
		s.leases.Keep(one)
		tx.undo = append(tx.undo, func() { s.letGoOf(held.Trial) })
	}
}

// letGoOf keeps the trial for nobody any more.
func (s *Service) letGoOf(id trial.ID) {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	s.leases.LetGo(id)
}

// keptAmount is what trials of the study had that are kept for the worker.
func (s *Service) keptAmount(r *session, worker string) pool.Amount {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	return s.lockedKept(r, worker)
}

// lockedKept is keptAmount for who holds the pool's lock: of the first of them, as
// one is leased at a time.
func (s *Service) lockedKept(r *session, worker string) pool.Amount {
	for _, one := range s.leases.Kept() {
		if one.Study == r.id && one.Worker == worker {
			return one.Amount()
		}
	}
	return pool.Amount{}
}

// letGoOfTaken lets go of the trials that are kept for a worker which has no room for
// them any more: it was given other work. The pool's lock is held.
func (s *Service) letGoOfTaken(worker string) (some bool) {
	for _, one := range s.leases.Kept() {
		if one.Worker == worker && !s.meets(one) {
			s.leases.LetGo(one.Trial)
			some = true
		}
	}
	return some
}

// letGoOfKept lets go of the trials whose worker did not come for them in time, has
// gone, or can have them no more, so that any other may have them; and of those that
// wait no more.
func (s *Service) letGoOfKept(now time.Time) (some bool) {
	s.poolMutex.Lock()
	kept := s.leases.Kept()
	s.poolMutex.Unlock()
	for _, one := range kept {
		queued := s.isQueued(one.Trial)
		s.poolMutex.Lock()
		_, waits := s.line.waiting[one.Worker]
		_, known := s.workers.Member(one.Worker)
		if _, out := s.leases.Lease(one.After); waits || out || !known && s.returns() {
			one.Awaited = now
			s.leases.Await(one.Trial, now)
		}
		if !queued || !now.Before(one.Until) || now.Sub(one.Awaited) >= patience || !s.meets(one) {
			s.leases.LetGo(one.Trial)
			some = true
		}
		s.poolMutex.Unlock()
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	return s.fill(now) || some
}

// isQueued reports whether the trial waits.
func (s *Service) isQueued(id trial.ID) bool {
	study, number := studyOf(id)
	s.mutex.Lock()
	r, loaded := s.sessions[study]
	s.mutex.Unlock()
	if !loaded {
		return false
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Contains(r.queue, number)
}

// meets reports whether the worker for which a trial is kept has room for it, and may
// have it. The pool's lock is held.
func (s *Service) meets(one pool.Keeping) bool {
	member, known := s.workers.Member(one.Worker)
	if !known {
		return s.returns()
	}
	if s.drainOf(member) != nil {
		return false
	}
	asker := pool.Asker{Owner: one.Owner, Study: one.Study, Need: one.Needs()}
	if pool.KeepsWorker(s.rules.reservations, member.Registration.Name, asker, s.options.Now()) != "" {
		return false
	}
	held := slices.DeleteFunc(s.leases.Of(one.Worker), func(l pool.Lease) bool { return l.Trial == one.After })
	room := pool.RoomOf(member, held)
	return room.Trials < room.Slots && room.Fits(asker.Need)
}

// expectedFirst puts studies with a trial that is kept for the worker before all of
// their priority or a lower one: it has left another place for this one.
func (s *Service) expectedFirst(list []choice, candidates []pool.Candidate, worker string) []choice {
	var expected []string
	s.poolMutex.Lock()
	for _, one := range s.leases.Kept() {
		if one.Worker == worker && s.options.Now().Before(one.Until) {
			expected = append(expected, one.Study)
		}
	}
	s.poolMutex.Unlock()
	if len(expected) == 0 {
		return list
	}
	priority := make(map[string]int, len(candidates))
	for _, one := range candidates {
		priority[one.Study] = one.Priority
	}
	for _, study := range slices.Backward(expected) {
		at := slices.IndexFunc(list, func(one choice) bool { return one.study == study })
		if at < 0 {
			continue
		}
		one := list[at]
		one.better, one.machine = "", ""
		list = slices.Delete(list, at, at+1)
		before := slices.IndexFunc(list, func(other choice) bool { return priority[other.study] <= priority[study] })
		if before < 0 {
			before = len(list)
		}
		list = slices.Insert(list, before, one)
	}
	return list
}
