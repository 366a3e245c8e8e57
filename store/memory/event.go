package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func bySequence(event journal.Event, sequence int64) int {
	return cmp.Compare(event.Sequence, sequence)
}

func (s *Store) insertEvent(undo *undoing, event journal.Event) error {
	home := s.studies[event.Study]
	if home == nil {
		return record.NoStudy(event.Study)
	}
	at, taken := slices.BinarySearchFunc(home.events, event.Sequence, bySequence)
	if taken {
		return record.SequenceTaken(event)
	}
	event.At = record.UTC(event.At)
	home.events = slices.Insert(home.events, at, copied(event))
	undo.add(func() { home.events = slices.Delete(home.events, at, at+1) })
	return nil
}

// checkNewest refuses what was not decided on the study's newest event.
func (s *Store) checkNewest(p journal.Position) error {
	home, newest := s.studies[p.Study], int64(0)
	if home == nil {
		return record.NoStudy(p.Study)
	}
	if n := len(home.events); n > 0 {
		newest = home.events[n-1].Sequence
	}
	if newest != p.Sequence {
		return record.NotBehind(p, newest)
	}
	return nil
}

func copied(event journal.Event) journal.Event {
	event.Data = raw(event.Data)
	return event
}

// Events returns up to limit events of the study with sequence > after.
func (s *Store) Events(ctx context.Context, id string, after int64, limit int) ([]journal.Event, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	home := s.studies[id]
	if home == nil {
		return nil, record.NoStudy(id)
	}
	from, found := slices.BinarySearchFunc(home.events, after, bySequence)
	if found {
		from++
	}
	var list []journal.Event
	for _, event := range home.events[from:] {
		if len(list) >= limit {
			break
		}
		list = append(list, copied(event))
	}
	return list, nil
}

// TrialEvents returns every event of one trial, in order.
func (s *Store) TrialEvents(ctx context.Context, studyID string, id trial.ID) ([]journal.Event, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	if kept := s.trials[id]; kept == nil || kept.study != studyID {
		return nil, record.NoTrial(id)
	}
	var list []journal.Event
	for _, event := range s.studies[studyID].events {
		if event.Trial == id {
			list = append(list, copied(event))
		}
	}
	return list, nil
}

func (s *Store) putSnapshot(undo *undoing, snapshot journal.Snapshot) error {
	home := s.studies[snapshot.Study]
	if home == nil {
		return record.NoStudy(snapshot.Study)
	}
	before := home.snapshot
	if before != nil && before.Sequence > snapshot.Sequence {
		return nil
	}
	snapshot.State = raw(snapshot.State)
	home.snapshot = &snapshot
	undo.add(func() { home.snapshot = before })
	return nil
}

// Snapshot returns the study's newest snapshot.
func (s *Store) Snapshot(ctx context.Context, id string) (journal.Snapshot, error) {
	if err := alive(ctx); err != nil {
		return journal.Snapshot{}, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	home := s.studies[id]
	if home == nil {
		return journal.Snapshot{}, record.NoStudy(id)
	}
	if home.snapshot == nil {
		return journal.Snapshot{}, record.NoSnapshot(id)
	}
	snapshot := *home.snapshot
	snapshot.State = raw(snapshot.State)
	return snapshot, nil
}
