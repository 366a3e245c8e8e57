package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
)

// blueprint is an architecture as it is stored.
type blueprint struct {
	key      string
	seen     time.Time
	document string
}

func newer(a, b blueprint) int { return cmp.Or(b.seen.Compare(a.seen), cmp.Compare(b.key, a.key)) }

func (s *Store) writeArchitectures(undo *undoing, architectures []emu.Architecture) error {
	for _, one := range architectures {
		document, err := record.FormatArchitecture(one)
		if err != nil {
			return err
		}
		s.putArchitecture(undo, blueprint{key: one.Key, seen: record.UTC(one.Seen), document: document})
	}
	if len(s.blueprints) > journal.MaxArchitectures {
		kept := slices.SortedFunc(maps.Values(s.blueprints), newer)
		for _, one := range kept[journal.MaxArchitectures:] {
			delete(s.blueprints, one.key)
			undo.add(func() { s.blueprints[one.key] = one })
		}
	}
	return nil
}

func (s *Store) putArchitecture(undo *undoing, one blueprint) {
	before, there := s.blueprints[one.key]
	s.blueprints[one.key] = one
	undo.add(func() {
		if there {
			s.blueprints[one.key] = before
		} else {
			delete(s.blueprints, one.key)
		}
	})
}

// Architecture returns the architecture with the key.
func (s *Store) Architecture(ctx context.Context, key string) (emu.Architecture, error) {
	if err := alive(ctx); err != nil {
		return emu.Architecture{}, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	found, there := s.blueprints[key]
	if !there {
		return emu.Architecture{}, record.NoArchitecture(key)
	}
	return record.ParseArchitecture(found.document)
}

// Architectures returns up to limit of them, the newest first.
func (s *Store) Architectures(ctx context.Context, limit int) ([]emu.Architecture, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	var list []emu.Architecture
	for _, one := range slices.SortedFunc(maps.Values(s.blueprints), newer) {
		if len(list) >= limit {
			break
		}
		stored, err := record.ParseArchitecture(one.document)
		if err != nil {
			return nil, err
		}
		list = append(list, stored)
	}
	return list, nil
}
