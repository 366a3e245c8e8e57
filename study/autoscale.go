package study

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/pool"
)

const (
	// changesEntry is the kind and the name of what is stored of the drains by
	// advice.
	changesEntry = "changes"
	// mostChangesShown is how many of them are listed.
	mostChangesShown = 50
)

// notWanted is why a worker is drained by advice, as everybody is told.
const notWanted = "by the forecast of the demand it is not wanted now (an estimate)"

// storedChanges are the newest drains by advice, and what became of them.
type storedChanges struct {
	Changes []demand.Change `json:"changes"`
}

// Situation is what a [demand.Scaler] decides about, but for what is wanted: the
// workers, which of those that were drained by advice trials wait for, which of the
// others a study cannot do without, and what was done before.
func (s *Service) Situation() demand.Situation {
	s.poolMutex.Lock()
	situation := demand.Situation{Hosts: s.hosts(), Past: s.rules.changes}
	s.poolMutex.Unlock()
	sought := make(map[drainKey]bool)
	for _, r := range s.loaded() {
		r.mutex.Lock()
		if key, some := s.seeks(r); some {
			sought[key] = true
		}
		r.mutex.Unlock()
	}
	for i, one := range situation.Hosts {
		situation.Hosts[i].Sought = sought[drainKey{one.Name, one.Holder}]
	}
	return situation
}

// seeks is the one worker that takes trials and suits the study, if that has any
// work: without it, it would be sought at once. Where several are, there is none.
// Where none is, it is whom the study waits for that advice drained: one that is
// heard of before one that sleeps. The study's lock is held.
func (s *Service) seeks(r *session) (key drainKey, some bool) {
	want := r.ask()
	if r.stale || want.Running == 0 && want.Ready == 0 {
		return drainKey{}, false
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	need, now := s.need(r, 1), s.options.Now()
	const awake = -1 // before all that are drained
	here, best := make(map[drainKey]bool), math.MaxInt
	offer := func(one drainKey, rank int) {
		if rank < best || rank == best && one.entry() < key.entry() {
			key, best, some = one, rank, true
		}
	}
	for _, member := range s.workers.Members() {
		one, silent := drainKey{member.Registration.Name, member.Holder}, now.Sub(member.LastSeen) >= s.leaseTerm()
		here[one] = true
		if !suited(r, member) || !pool.RoomOf(member, nil).Fits(need) {
			continue
		}
		switch drain := s.drainOf(member); {
		case drain == nil && !silent && best == awake && key != one:
			return drainKey{}, false
		case drain == nil && !silent:
			key, best, some = one, awake, true
		case drain != nil && drain.Advised && !silent:
			offer(one, 0)
		case drain != nil && drain.Advised:
			offer(one, 1)
		}
	}
	for one, drain := range s.rules.drains { // of those that said goodbye no more is known
		if user, ofUser := strings.CutPrefix(one.Holder, "user:"); drain.Advised && !here[one] && drain.Capacity >= float64(need.GPUs) && (!ofUser || user == r.owner) {
			offer(one, 2)
		}
	}
	if best != awake && (want.Ready == 0 || r.full(0)) {
		return drainKey{}, false
	}
	return key, some
}

// Rescale drains workers by advice, takes such drains back, and keeps what was
// decided and seen. What has changed since it was decided is left out: a worker
// that a person drained meanwhile stays that person's. It returns what was kept,
// also beside an error.
func (s *Service) Rescale(ctx context.Context, changes []demand.Change) ([]demand.Change, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	if err := s.governing.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.governing.Leave()
	s.poolMutex.Lock()
	drains, past := maps.Clone(s.rules.drains), s.rules.changes
	s.poolMutex.Unlock()
	var kept []demand.Change
	var entries []PoolEntry
	var full error
	for _, one := range changes {
		key := drainKey{one.Worker, one.Holder}
		present, drained := drains[key]
		switch {
		case one.Pretended:
		case one.Action == demand.Drain:
			if drained {
				continue
			}
			if len(drains) >= mostRules { // what is taken back is, all the same
				full = problem.New(problem.Exhausted, "there are %d drained workers, the most there may be: undrain one first", len(drains))
				continue
			}
			drains[key] = protocol.Drain{Since: one.At, Reason: notWanted, Advised: true, Capacity: one.Capacity}
			entries = append(entries, poolEntry(drainEntry, key.entry(), storedDrain{key, drains[key]}))
		case one.Action == demand.Wake || one.Action == demand.Forgotten:
			if !drained || !present.Advised {
				continue
			}
			delete(drains, key)
			entries = append(entries, PoolEntry{Kind: drainEntry, Name: key.entry()})
		}
		kept = append(kept, one)
	}
	if len(kept) == 0 {
		return nil, full
	}
	all := demand.Remember(slices.Concat(past, kept))
	entries = append(entries, poolEntry(changesEntry, changesEntry, storedChanges{all}))
	var nothing struct{}
	if err := govern(unkeyed(ctx), s, &nothing, entries, func(r *rules) { r.drains, r.changes = drains, all }); err != nil {
		return nil, err
	}
	return kept, full
}

// autoscale is what the server drains by itself, the newest first. A caller who
// sees some studies only is not told how much all want.
func (s *Service) autoscale(caller Caller) *protocol.PoolAutoscale {
	told := s.options.Autoscale
	if told.Mode == "" {
		told.Mode = protocol.AutoscaleOff
	}
	told.Changes = []protocol.PoolChange{}
	s.poolMutex.Lock()
	past := s.rules.changes
	s.poolMutex.Unlock()
	for _, one := range slices.Backward(past) {
		if len(told.Changes) == mostChangesShown {
			break
		}
		change := protocol.PoolChange{At: one.At, Worker: one.Worker, Action: string(one.Action), Reason: one.Reason, Capacity: one.Capacity, Asleep: one.Asleep, Pretended: one.Pretended}
		if caller.Sight != All {
			change.Reason = ""
		}
		told.Changes = append(told.Changes, change)
	}
	return &told
}
