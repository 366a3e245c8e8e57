package study

import (
	"context"

	"github.com/tandem-tune/tandem/workers/pool"
)

// neighbourEntry is the kind of what is stored of leases that have, or had, others
// beside them on their GPU: whoever runs out of its memory there has not failed,
// also behind a restart of the server before which the others had left.
const neighbourEntry = "neighbour"

// loadNeighbours reads which leases had others beside them.
func (s *Service) loadNeighbours(ctx context.Context) error {
	found := map[pool.LeaseID]bool{}
	if err := eachEntry(ctx, s.store, neighbourEntry, func(name string, _ bool) {
		if one, known := pool.ParseLeaseID(name); known {
			found[one] = true
		}
	}); err != nil {
		return err
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	s.neighboured = found
	return nil
}

// neighbours are the entries to write of leases that others have come beside, and
// those to remove of leases that are over. The pool's lock is held.
func (s *Service) neighbours() (entries []PoolEntry) {
	for _, lease := range s.leases.All() {
		if one := (pool.LeaseID{Trial: lease.Trial, Epoch: lease.Epoch}); lease.Beside && !s.neighboured[one] {
			entries = append(entries, poolEntry(neighbourEntry, one.String(), true))
		}
	}
	for one := range s.neighboured {
		if !s.leases.Has(one.Trial, one.Epoch) {
			entries = append(entries, PoolEntry{Kind: neighbourEntry, Name: one.String()})
		}
	}
	return entries
}
