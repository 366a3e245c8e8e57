package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func (s *Store) insertStudy(undo *undoing, inserted journal.Study) error {
	document, err := formatStudy(inserted)
	if err != nil {
		return err
	}
	id, name := inserted.ID, inserted.Reference()
	if s.studies[id] != nil || s.names[name] != "" {
		return record.StudyTaken(inserted)
	}
	s.order++
	s.studies[id] = &studyRecord{order: s.order, name: name, document: document, trials: make(map[int]*entry)}
	s.names[name] = id
	undo.add(func() {
		delete(s.studies, id)
		delete(s.names, name)
	})
	return nil
}

func (s *Store) updateStudy(undo *undoing, update journal.Study, transfer bool) error {
	kept := s.studies[update.ID]
	if kept == nil {
		return record.NoStudy(update.ID)
	}
	current, err := parseStudy(kept.document)
	if err != nil {
		return err
	}
	current.Status, current.Reason = update.Status, update.Reason
	current.Elapsed, current.Since, current.Finished, current.Annotation = update.Elapsed, update.Since, update.Finished, update.Annotation
	current.Changes = update.Changes
	if transfer {
		if taken := s.names[update.Reference()]; taken != "" && taken != update.ID {
			return record.StudyTaken(update)
		}
		current.Owner, current.Definition.Name = update.Owner, update.Definition.Name
	}
	document, err := formatStudy(current)
	if err != nil {
		return err
	}
	before := *kept
	rename := func(name string) {
		delete(s.names, kept.name)
		kept.name, s.names[name] = name, update.ID
	}
	kept.document = document
	rename(current.Reference())
	undo.add(func() {
		kept.document = before.document
		rename(before.name)
	})
	return nil
}

func (s *Store) deleteStudy(undo *undoing, id string) error {
	kept := s.studies[id]
	if kept == nil {
		return record.NoStudy(id)
	}
	gone := make(map[trial.ID]*entry, len(kept.trials))
	for trialID, t := range s.trials {
		if t.study == id {
			gone[trialID] = t
			delete(s.trials, trialID)
		}
	}
	delete(s.studies, id)
	delete(s.names, kept.name)
	undo.add(func() {
		s.studies[id], s.names[kept.name] = kept, id
		maps.Copy(s.trials, gone)
	})
	return nil
}

// Study finds a study by its id or its reference.
func (s *Store) Study(ctx context.Context, ref string) (journal.Study, error) {
	if err := alive(ctx); err != nil {
		return journal.Study{}, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	kept := s.studies[ref]
	if kept == nil {
		kept = s.studies[s.names[ref]]
	}
	if kept == nil {
		return journal.Study{}, record.NoStudy(ref)
	}
	return parseStudy(kept.document)
}

// Studies returns all studies, the newest first.
func (s *Store) Studies(ctx context.Context) ([]journal.Study, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	records := slices.Collect(maps.Values(s.studies))
	slices.SortFunc(records, func(a, b *studyRecord) int { return cmp.Compare(b.order, a.order) })
	var list []journal.Study
	for _, kept := range records {
		stored, err := parseStudy(kept.document)
		if err != nil {
			return nil, err
		}
		list = append(list, stored)
	}
	slices.SortStableFunc(list, func(a, b journal.Study) int { return b.Created.Compare(a.Created) })
	return list, nil
}

// formatStudy returns the study as one JSON document.
func formatStudy(s journal.Study) (string, error) {
	s.Created, s.Since, s.Finished = record.UTC(s.Created), record.UTCOrNil(s.Since), record.UTCOrNil(s.Finished)
	document, err := json.Marshal(s)
	return string(document), err
}

// parseStudy reads what formatStudy wrote.
func parseStudy(document string) (journal.Study, error) {
	var s journal.Study
	err := json.Unmarshal([]byte(document), &s)
	return s, err
}
