package study

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

const (
	// patience is how long a worker is made to wait at most for a better one that
	// waits too: then it gets what it would have got at once.
	patience = 3 * time.Second
	// forgetful is after how long without another one it is forgotten that a worker
	// was made to wait: while it is, it asks again with every tick.
	forgetful = 3 * time.Second
	// recallAfter is how soon a worker is called again to look for the same trial.
	recallAfter = time.Second
)

// line is who waits for trials in long polls, and who of them is made to wait for
// whom. The pool's lock guards it.
type line struct {
	waiting map[string]*waiter // by worker
	sorted  []string           // their ids
	// passed says since when a worker is made to wait for a better one, by worker
	// and study.
	passed map[string]map[string]passing
	// first is who was first to be made to wait for a trial of a study.
	first map[string]passedFirst
	// types counts the waiting workers by their type of machine.
	types map[string]int
}

// waiter is a worker that waits.
type waiter struct {
	caller  Caller
	machine string // its type
	// voices is how many of its calls wait.
	voices int
	// call is closed, and made anew, to have it look again.
	call chan struct{}
	// called is when that was last done for the sake of a study.
	called map[string]time.Time
}

type passing struct {
	since, last time.Time
	better      string // for whom
}

// passedFirst is a worker's type of machine, and when it was made to wait.
type passedFirst struct {
	machine string
	at      time.Time
}

func newLine() line {
	return line{waiting: map[string]*waiter{}, passed: map[string]map[string]passing{}, types: map[string]int{}, first: map[string]passedFirst{}}
}

// standInLine notes that the worker waits, until the answer is called. Who asks
// for one study, or does not wait, stands in no line.
func (s *Service) standInLine(ctx context.Context, request protocol.LeaseRequest) (leave func()) {
	if request.Study != "" || request.WaitSeconds <= 0 {
		return func() {}
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	w, waits := s.line.waiting[request.Worker]
	if !waits {
		w = &waiter{call: make(chan struct{}), called: map[string]time.Time{}}
		s.line.waiting[request.Worker] = w
		at, _ := slices.BinarySearch(s.line.sorted, request.Worker)
		s.line.sorted = slices.Insert(s.line.sorted, at, request.Worker)
		member, _ := s.workers.Member(request.Worker)
		w.machine = member.Registration.Machine.Type()
		s.line.types[w.machine]++
	}
	w.caller = callerOf(ctx)
	w.voices++
	return func() {
		s.poolMutex.Lock()
		defer s.poolMutex.Unlock()
		if w.voices--; w.voices == 0 {
			s.line.leave(request.Worker)
		}
	}
}

// leave takes a worker out of the line, and calls those who were made to wait for
// it.
func (l *line) leave(worker string) {
	machine := l.waiting[worker].machine
	if l.types[machine]--; l.types[machine] == 0 {
		delete(l.types, machine)
	}
	delete(l.waiting, worker)
	if at, there := slices.BinarySearch(l.sorted, worker); there {
		l.sorted = slices.Delete(l.sorted, at, at+1)
	}
	for other, studies := range l.passed {
		for _, one := range studies {
			if one.better == worker {
				l.callOut(other)
				break
			}
		}
	}
}

// callOf returns a channel that is closed when the worker should look again; nil,
// which never is, for one that stands in no line.
func (s *Service) callOf(worker string) <-chan struct{} {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if w, waits := s.line.waiting[worker]; waits {
		return w.call
	}
	return nil
}

func (l *line) callOut(worker string) {
	if w, waits := l.waiting[worker]; waits {
		close(w.call)
		w.call = make(chan struct{})
	}
}

// passOver makes a worker wait for a better one that waits too, which is called.
// It is false when the worker has waited for long enough.
func (s *Service) passOver(worker string, chosen choice) bool {
	now := s.options.Now()
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if !s.lockedPassOver(worker, chosen.study, chosen.better) {
		return false
	}
	if first, known := s.line.first[chosen.study]; !known || now.Sub(first.at) > patience {
		s.line.first[chosen.study] = passedFirst{chosen.machine, now}
	}
	return true
}

// lockedPassOver is passOver for who holds the pool's lock, whatever the machines are.
func (s *Service) lockedPassOver(worker, study, better string) bool {
	now := s.options.Now()
	w, waits := s.line.waiting[better]
	if !waits {
		return false
	}
	one, before := s.line.passed[worker][study]
	if !before || now.Sub(one.last) > forgetful {
		one.since = now
	}
	one.better = better
	if one.last = now; now.Sub(one.since) >= patience {
		delete(s.line.passed[worker], study)
		return false
	}
	if s.line.passed[worker] == nil {
		s.line.passed[worker] = map[string]passing{}
	}
	s.line.passed[worker][study] = one
	if last, called := w.called[study]; !called || now.Sub(last) >= recallAfter {
		w.called[study] = now
		s.line.callOut(better)
	}
	return true
}

// firstPassed takes away who was first to be made to wait for a trial of the
// study that a worker gets now, with the transaction: its type of machine, empty if
// there was nobody.
func (s *Service) firstPassed(tx *transaction) string {
	study := tx.session.id
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	first, known := s.line.first[study]
	if known {
		delete(s.line.first, study)
		tx.undo = append(tx.undo, func() {
			s.poolMutex.Lock()
			defer s.poolMutex.Unlock()
			if _, another := s.line.first[study]; !another {
				s.line.first[study] = first
			}
		})
	}
	if !known || s.options.Now().Sub(first.at) > patience {
		return ""
	}
	return first.machine
}

// served forgets that the worker was made to wait: it has a trial. The pool's lock
// is held.
func (l *line) served(worker string) { delete(l.passed, worker) }

// callAgain has those look again who were made to wait, and forgets what is long ago.
func (s *Service) callAgain(now time.Time) {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	for worker, studies := range s.line.passed {
		for study, one := range studies {
			if now.Sub(one.last) > forgetful {
				delete(studies, study)
			}
		}
		if len(studies) == 0 {
			delete(s.line.passed, worker)
			continue
		}
		s.line.callOut(worker)
	}
	for study, first := range s.line.first {
		if now.Sub(first.at) > patience {
			delete(s.line.first, study)
		}
	}
}

// stand is a worker that could take a trial now.
type stand struct {
	worker, host, machine string // machine is its type
	caller                Caller
	// trials is how many more it asks for.
	trials int
	room   pool.Room
	kind   string // see kindOf
}

// standing are the workers that wait and have room, and the one that asks, in the
// order of their ids.
func (s *Service) standing(asker string, caller Caller) []stand {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	stands, idle, empty := make([]stand, 0, len(s.line.sorted)+1), s.leases.Idle(), map[string]pool.Room{}
	add := func(worker string, caller Caller, voices int) {
		member, known := s.workers.Find(worker)
		if !known {
			return
		}
		one := stand{worker: worker, host: member.Registration.Name, machine: member.Type, caller: caller, trials: voices}
		free := idle(worker) && member.Reserved == 0
		if room, seen := empty[member.Kind]; free && seen {
			one.room = room
		} else if one.room = s.lockedSite(worker, "").room; free {
			empty[member.Kind] = one.room
		}
		if one.room.Elastic {
			one.trials = min(voices, one.room.Slots-one.room.Trials)
		}
		if one.trials > 0 {
			one.kind = s.kindOf(member, one.room, free)
			stands = append(stands, one)
		}
	}
	_, waits := s.line.waiting[asker]
	ask := asker != "" && !waits
	for _, worker := range s.line.sorted {
		if ask && asker < worker {
			add(asker, caller, 1)
			ask = false
		}
		w := s.line.waiting[worker]
		add(worker, w.caller, w.voices)
	}
	if ask {
		add(asker, caller, 1)
	}
	return stands
}

// typesOf are the types of machine there are, each once, in their order.
func typesOf(stands []stand) []string {
	types, last := map[string]bool{}, ""
	for i := range stands {
		if machine := stands[i].machine; i == 0 || machine != last {
			types[machine], last = true, machine
		}
	}
	return slices.Sorted(maps.Keys(types))
}

// probesByType are the probes of all workers that are known: of the machines as
// they are, since what is set on a machine is a part of its type, or of settings
// of theirs where a worker ran no others.
func (s *Service) probesByType() probed {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if changes := s.workers.Probed(); s.probed.known == nil || s.probed.changes != changes {
		s.probed = probed{s.gatherProbes(), changes}
	}
	return s.probed
}

// probed are the workers' probes by type of machine, as of so many changes. They are
// not changed.
type probed struct {
	known   map[string][]placement.Probe
	changes uint64
}

// gatherProbes is probesByType for who holds the pool's lock.
func (s *Service) gatherProbes() map[string][]placement.Probe {
	plain, set := map[string][]placement.Probe{}, map[string][]placement.Probe{}
	for member := range s.workers.All() {
		machine := member.Type
		for _, one := range member.Registration.Probes {
			list := plain
			if one.Setting != "" {
				list = set
			}
			list[machine] = append(list[machine], placement.Probe{
				Workload: one.Workload, Setting: one.Setting, Took: placement.Prediction{Seconds: one.Seconds, Joules: one.Joules},
			})
		}
	}
	for machine, probes := range set {
		if len(plain[machine]) == 0 {
			plain[machine] = probes
		}
	}
	return plain
}

// lineUp says whether the worker stands in line, and whether the workers there and
// this one are of several types.
func (s *Service) lineUp(worker string) (waits, several bool) {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	_, waits = s.line.waiting[worker]
	if len(s.line.types) != 1 {
		return waits, len(s.line.types) > 1
	}
	member, _ := s.workers.Member(worker)
	_, same := s.line.types[member.Registration.Machine.Type()]
	return waits, !same
}

// workerName is what people call the worker.
func (s *Service) workerName(worker string) string {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	member, _ := s.workers.Member(worker)
	return orElse(member.Registration.Name, worker)
}
