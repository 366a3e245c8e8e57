package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
)

// lesson is a record of the ground truth.
type lesson struct {
	id, machine string
	updated     time.Time
	document    string
}

// older orders lessons as they are read and forgotten.
func older(a, b lesson) int { return cmp.Or(a.updated.Compare(b.updated), cmp.Compare(a.id, b.id)) }

func (s *Store) forgetRecords(undo *undoing, machine string) {
	for _, one := range s.lessons(machine) {
		s.forgetRecord(undo, one)
	}
}

func (s *Store) forgetRecord(undo *undoing, one lesson) {
	delete(s.records, one.id)
	undo.add(func() { s.records[one.id] = one })
}

func (s *Store) writeRecords(undo *undoing, records []similarity.Record) error {
	grown := make(map[string]bool) // the types of machine that have a new one
	for _, written := range records {
		document, err := record.FormatRecord(written)
		if err != nil {
			return err
		}
		id, machine := written.ID, written.Machine
		before, there := s.records[id]
		s.records[id] = lesson{id: id, machine: machine, updated: record.UTC(written.Updated), document: document}
		undo.add(func() {
			if there {
				s.records[id] = before
			} else {
				delete(s.records, id)
			}
		})
		if !there || before.machine != machine {
			grown[machine] = true
		}
	}
	for machine := range grown {
		kept := s.lessonsOf(machine)
		for _, one := range kept[:max(0, len(kept)-journal.MaxRecords)] {
			s.forgetRecord(undo, one)
		}
	}
	return nil
}

// lessons returns those of the type of machine, of all types where it is empty,
// the oldest first.
func (s *Store) lessons(machine string) []lesson {
	if machine != "" {
		return s.lessonsOf(machine)
	}
	return slices.SortedFunc(maps.Values(s.records), older)
}

func (s *Store) lessonsOf(machine string) []lesson {
	var list []lesson
	for _, one := range s.records {
		if one.machine == machine {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, older)
	return list
}

// Records returns the ground truth of the type of machine, the oldest first.
func (s *Store) Records(ctx context.Context, machine string) ([]similarity.Record, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	var list []similarity.Record
	for _, one := range s.lessons(machine) {
		stored, err := record.ParseRecord(one.document)
		if err != nil {
			return nil, err
		}
		list = append(list, stored)
	}
	return list, nil
}

// RecordTypes returns the types of machine that there are records of, sorted.
func (s *Store) RecordTypes(ctx context.Context) ([]string, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	types := make(map[string]bool)
	for _, one := range s.records {
		types[one.machine] = true
	}
	return slices.Sorted(maps.Keys(types)), nil
}
