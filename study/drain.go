package study

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/pool"
)

// drainOf is how the worker is drained; nil: it is not. The pool's lock is held.
func (s *Service) drainOf(member pool.Member) *protocol.Drain {
	drain, drained := s.rules.drains[drainKey{member.Registration.Name, member.Holder}]
	if !drained {
		return nil
	}
	return &drain
}

// entry names the drain in the store.
func (k drainKey) entry() string {
	name, _ := json.Marshal([]string{k.Name, k.Holder})
	return string(name)
}

// Drain gives the worker with the id, or all of the caller's with the name, no
// more trials, until it is undrained: also behind a restart of the worker or the
// server. With ask.Now the trials that it runs pause by checkpoint and go on
// elsewhere.
func (s *Service) Drain(ctx context.Context, worker string, ask protocol.DrainRequest) (protocol.Drained, error) {
	drain := protocol.Drain{Since: s.options.Now().Round(0).UTC(), Now: ask.Now, Reason: ask.Reason}
	return s.redrain(ctx, worker, &drain)
}

// Undrain gives the workers trials again. Those that are not connected are known
// by their names.
func (s *Service) Undrain(ctx context.Context, worker string) (protocol.Drained, error) {
	return s.redrain(ctx, worker, nil)
}

// redrain drains the workers, or undrains them where there is no drain.
func (s *Service) redrain(ctx context.Context, worker string, drain *protocol.Drain) (protocol.Drained, error) {
	if err := s.governing.Enter(ctx); err != nil {
		return protocol.Drained{}, err
	}
	defer s.governing.Leave()
	s.poolMutex.Lock()
	keys, trials, err := s.drainable(ctx, worker, drain == nil)
	count := len(s.rules.drains)
	s.poolMutex.Unlock()
	if err != nil {
		return protocol.Drained{}, err
	}
	if drain != nil && count+len(keys) > mostRules {
		return protocol.Drained{}, problem.New(problem.Exhausted, "there are %d drained workers, the most there may be: undrain one first", count)
	}
	answer, entries := protocol.Drained{Workers: []string{}, Trials: trials}, []PoolEntry{}
	for _, key := range keys {
		if !slices.Contains(answer.Workers, key.Name) {
			answer.Workers = append(answer.Workers, key.Name)
		}
		if drain != nil {
			entries = append(entries, poolEntry(drainEntry, key.entry(), storedDrain{key, *drain}))
		} else {
			entries = append(entries, PoolEntry{Kind: drainEntry, Name: key.entry()})
		}
	}
	err = govern(ctx, s, &answer, entries, func(r *rules) {
		r.drains = maps.Clone(r.drains)
		for _, key := range keys {
			delete(r.drains, key)
			if drain != nil {
				r.drains[key] = *drain
			}
		}
	})
	return answer, err
}

// drainable finds the caller's workers with the id or the name, and how many
// trials they run. Undraining also finds those that are away, and nothing that is
// not drained. The pool's lock is held.
func (s *Service) drainable(ctx context.Context, worker string, drained bool) (keys []drainKey, trials int, err error) {
	caller := callerOf(ctx)
	found, foreign := map[drainKey]bool{}, false
	for _, member := range s.workers.Members() {
		key := drainKey{member.Registration.Name, member.Holder}
		switch meant := member.Registration.ID == worker || key.Name == worker; {
		case meant && caller.holds(member.Holder):
			found[key] = found[key] || !drained || s.drainOf(member) != nil
		case meant:
			foreign = true
		}
	}
	for key := range s.rules.drains {
		if drained && key.Name == worker && caller.holds(key.Holder) {
			found[key] = true
		}
	}
	if len(found) == 0 {
		err := problem.New(problem.NotFound, "there is no worker of yours with the name or id %q: the page of workers and \"tandem workers\" list them", worker)
		if foreign {
			return nil, 0, denial{err}
		}
		return nil, 0, err
	}
	for key, does := range found {
		if does {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b drainKey) int { return slices.Compare([]string{a.Name, a.Holder}, []string{b.Name, b.Holder}) })
	for _, member := range s.workers.Members() {
		if found[drainKey{member.Registration.Name, member.Holder}] {
			trials += len(s.leases.HeldBy(member.Registration.ID))
		}
	}
	return keys, trials, nil
}
