package study

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/trial"
)

// neighbourEntry is the kind of what is stored of leases that have, or had, others
// beside them on their GPU: whoever runs out of its memory there has not failed,
// also behind a restart of the server before which the others had left.
const neighbourEntry = "neighbour"

// entry names the lease in the store.
func (h holding) entry() string { return fmt.Sprintf("%s@%d", h.trial, h.lease) }

// holdingNamed is the lease that the entry names.
func holdingNamed(entry string) (holding, bool) {
	id, epoch, cut := strings.Cut(entry, "@")
	number, err := strconv.ParseInt(epoch, 10, 64)
	return holding{trial.ID(id), trial.LeaseEpoch(number)}, cut && err == nil
}

// loadNeighbours reads which leases had others beside them.
func (s *Service) loadNeighbours(ctx context.Context) error {
	found := map[holding]bool{}
	if err := eachEntry(ctx, s.store, neighbourEntry, func(name string, _ bool) {
		if one, known := holdingNamed(name); known {
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
		if one := (holding{lease.Trial, lease.Epoch}); lease.Beside && !s.neighboured[one] {
			entries = append(entries, poolEntry(neighbourEntry, one.entry(), true))
		}
	}
	for one := range s.neighboured {
		if !s.leases.Has(one.trial, one.lease) {
			entries = append(entries, PoolEntry{Kind: neighbourEntry, Name: one.entry()})
		}
	}
	return entries
}
