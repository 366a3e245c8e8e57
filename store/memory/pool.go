package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/tandem-tune/tandem/study/journal"
)

// poolKey names an entry of the pool.
type poolKey struct{ kind, name string }

func (s *Store) writePool(undo *undoing, entries []journal.PoolEntry) {
	for _, one := range entries {
		key := poolKey{one.Kind, one.Name}
		before, there := s.pool[key]
		undo.add(func() {
			if there {
				s.pool[key] = before
			} else {
				delete(s.pool, key)
			}
		})
		if len(one.Document) == 0 {
			delete(s.pool, key)
		} else {
			s.pool[key] = bytes.Clone(one.Document)
		}
	}
}

// PoolEntries returns all entries of the kind, by name.
func (s *Store) PoolEntries(ctx context.Context, kind string) ([]journal.PoolEntry, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	var entries []journal.PoolEntry
	for key, document := range s.pool {
		if key.kind == kind {
			entries = append(entries, journal.PoolEntry{Kind: kind, Name: key.name, Document: bytes.Clone(document)})
		}
	}
	slices.SortFunc(entries, func(a, b journal.PoolEntry) int { return cmp.Compare(a.Name, b.Name) })
	return entries, nil
}
