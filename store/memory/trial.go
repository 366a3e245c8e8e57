package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func (s *Store) writeTrial(undo *undoing, write journal.TrialWrite) error {
	written := write.Trial
	document, err := record.FormatTrial(written)
	if err != nil {
		return err
	}
	if write.Guard == nil {
		return s.insertTrial(undo, written, document)
	}
	kept := s.trials[written.ID]
	if kept == nil || kept.study != written.Study || kept.number != written.Number {
		return record.NoTrial(written.ID)
	}
	if kept.state != write.Guard.State || kept.epoch != write.Guard.LeaseEpoch {
		return record.GuardBroken(written.ID, *write.Guard)
	}
	state, epoch, before := kept.state, kept.epoch, kept.document
	kept.state, kept.epoch, kept.document = written.State, written.LeaseEpoch, document
	undo.add(func() { kept.state, kept.epoch, kept.document = state, epoch, before })
	return nil
}

func (s *Store) insertTrial(undo *undoing, inserted trial.Trial, document string) error {
	home := s.studies[inserted.Study]
	if s.trials[inserted.ID] != nil || home != nil && home.trials[inserted.Number] != nil {
		return record.TrialTaken(inserted)
	}
	if home == nil {
		return record.NoStudy(inserted.Study)
	}
	kept := &entry{
		study: inserted.Study, number: inserted.Number, state: inserted.State, epoch: inserted.LeaseEpoch, document: document,
		reported: make(map[[2]int]bool), leases: make(map[trial.LeaseEpoch][]record.Piece),
	}
	s.trials[inserted.ID], home.trials[inserted.Number] = kept, kept
	undo.add(func() {
		delete(s.trials, inserted.ID)
		delete(home.trials, inserted.Number)
	})
	return nil
}

func (s *Store) insertReport(undo *undoing, report trial.Report) error {
	document, err := record.FormatReport(report)
	if err != nil {
		return err
	}
	kept := s.trials[report.Trial]
	if kept == nil {
		return record.NoTrial(report.Trial)
	}
	key := [2]int{report.Rung, report.Epoch}
	if kept.reported[key] {
		return nil
	}
	kept.reported[key] = true
	kept.reports = append(kept.reports, document)
	undo.add(func() {
		delete(kept.reported, key)
		kept.reports = kept.reports[:len(kept.reports)-1]
	})
	return nil
}

// Trials returns a study's trials by number.
func (s *Store) Trials(ctx context.Context, id string) ([]trial.Trial, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	home := s.studies[id]
	if home == nil {
		return nil, record.NoStudy(id)
	}
	var list []trial.Trial
	for _, number := range slices.Sorted(maps.Keys(home.trials)) {
		stored, err := record.ParseTrial(home.trials[number].document)
		if err != nil {
			return nil, err
		}
		list = append(list, stored)
	}
	return list, nil
}

// Trial returns the trial.
func (s *Store) Trial(ctx context.Context, id trial.ID) (trial.Trial, error) {
	if err := alive(ctx); err != nil {
		return trial.Trial{}, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	kept := s.trials[id]
	if kept == nil {
		return trial.Trial{}, record.NoTrial(id)
	}
	return record.ParseTrial(kept.document)
}

// Reports returns the trial's reports in the order they were accepted.
func (s *Store) Reports(ctx context.Context, id trial.ID) ([]trial.Report, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	kept := s.trials[id]
	if kept == nil {
		return nil, record.NoTrial(id)
	}
	var list []trial.Report
	for _, document := range kept.reports {
		report, err := record.ParseReport(document)
		if err != nil {
			return nil, err
		}
		list = append(list, report)
	}
	return list, nil
}
