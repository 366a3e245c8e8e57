package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/trial"
)

// Apply makes the change durable as a whole, in the order of its fields, or
// not at all; see study.Store.
func (s *Store) Apply(ctx context.Context, change study.Change) error {
	return s.Submit(ctx, change).Wait()
}

// Submit hands the change to the writer. A caller can give up until the change
// is queued; from then on only the outcome is an honest answer.
func (s *Store) Submit(ctx context.Context, change study.Change) *study.Outcome {
	write, err := encode(change)
	if err != nil {
		outcome := study.NewOutcome()
		outcome.Settle(err)
		return outcome
	}
	return s.writer.submit(ctx, write.run)
}

// encoded is a change with its documents as text, made before the writer's
// turn so that the writer only writes.
type encoded struct {
	change     study.Change
	definition string
	trials     []string
	reports    []string
	records    []string
	// architectures are documents, in the order of the change's.
	architectures []string
}

func encode(change study.Change) (encoded, error) {
	e := encoded{change: change}
	var err error
	if change.Insert != nil {
		if e.definition, err = record.FormatDefinition(change.Insert.Definition); err != nil {
			return e, err
		}
	}
	for _, write := range change.Trials {
		document, err := record.FormatTrial(write.Trial)
		if err != nil {
			return e, err
		}
		e.trials = append(e.trials, document)
	}
	for _, report := range change.Reports {
		document, err := record.FormatReport(report)
		if err != nil {
			return e, err
		}
		e.reports = append(e.reports, document)
	}
	for _, one := range change.Records {
		document, err := record.FormatRecord(one)
		if err != nil {
			return e, err
		}
		e.records = append(e.records, document)
	}
	for _, one := range change.Architectures {
		document, err := record.FormatArchitecture(one)
		if err != nil {
			return e, err
		}
		e.architectures = append(e.architectures, document)
	}
	return e, nil
}

func (e encoded) run(s *session) error {
	for _, step := range []func(*session) error{
		e.checkNewest, e.insertStudy, e.updateStudy, e.deleteStudy, e.writeTrials, e.insertReports, e.insertEvents, e.putSnapshot,
		e.forgetRecords, e.writeRecords, e.writeArchitectures, e.insertReceipt,
	} {
		if err := step(s); err != nil {
			return err
		}
	}
	return nil
}

// checkNewest refuses what was not decided on the study's newest event.
func (e encoded) checkNewest(s *session) error {
	p := e.change.Behind
	if p == nil {
		return nil
	}
	newest, err := s.number("SELECT coalesce(max(sequence), 0) FROM event WHERE study = ?", p.Study)
	if err != nil {
		return err
	}
	if newest == 0 {
		var one int
		err = s.row("SELECT 1 FROM study WHERE id = ?", []any{p.Study}, &one)
		if errors.Is(err, sql.ErrNoRows) {
			return record.NoStudy(p.Study)
		}
		if err != nil {
			return err
		}
	}
	if newest != p.Sequence {
		return record.NotBehind(*p, newest)
	}
	return nil
}

func (e encoded) insertStudy(s *session) error {
	one := e.change.Insert
	if one == nil {
		return nil
	}
	err := s.exec(`INSERT INTO study (id, name, definition, status, reason, created, elapsed, since, finished)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		one.ID, one.Definition.Name, e.definition, string(one.Status), one.Reason,
		record.FormatTime(one.Created), int64(one.Elapsed), formatOptional(one.Since), formatOptional(one.Finished))
	if taken(err) {
		return record.StudyTaken(*one)
	}
	return err
}

func (e encoded) updateStudy(s *session) error {
	one := e.change.Update
	if one == nil {
		return nil
	}
	rows, err := s.affect("UPDATE study SET status = ?, reason = ?, elapsed = ?, since = ?, finished = ? WHERE id = ?",
		string(one.Status), one.Reason, int64(one.Elapsed), formatOptional(one.Since), formatOptional(one.Finished), one.ID)
	if err == nil && rows == 0 {
		return record.NoStudy(one.ID)
	}
	return err
}

func (e encoded) deleteStudy(s *session) error {
	id := e.change.Delete
	if id == "" {
		return nil
	}
	rows, err := s.affect("DELETE FROM study WHERE id = ?", id)
	if err == nil && rows == 0 {
		return record.NoStudy(id)
	}
	return err
}

func (e encoded) writeTrials(s *session) error {
	for i, write := range e.change.Trials {
		step := s.insertTrial
		if write.Guard != nil {
			step = s.replaceTrial
		}
		if err := step(write, e.trials[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) insertTrial(write study.TrialWrite, document string) error {
	t := write.Trial
	err := s.exec("INSERT INTO trial (id, study, number, state, lease_epoch, document) VALUES (?, ?, ?, ?, ?, ?)",
		string(t.ID), t.Study, t.Number, string(t.State), int64(t.LeaseEpoch), document)
	switch {
	case taken(err):
		return record.TrialTaken(t)
	case orphan(err):
		return record.NoStudy(t.Study)
	}
	return err
}

func (s *session) replaceTrial(write study.TrialWrite, document string) error {
	t, guard := write.Trial, *write.Guard
	rows, err := s.affect(`UPDATE trial SET state = ?, lease_epoch = ?, document = ?
		WHERE id = ? AND study = ? AND number = ? AND lease_epoch = ? AND state = ?`,
		string(t.State), int64(t.LeaseEpoch), document,
		string(t.ID), t.Study, t.Number, int64(guard.LeaseEpoch), string(guard.State))
	if err != nil || rows > 0 {
		return err
	}
	var one int
	err = s.row("SELECT 1 FROM trial WHERE id = ? AND study = ? AND number = ?", []any{string(t.ID), t.Study, t.Number}, &one)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return record.NoTrial(t.ID)
	case err != nil:
		return err
	}
	return record.GuardBroken(t.ID, guard)
}

func (e encoded) insertReports(s *session) error {
	for i, report := range e.change.Reports {
		err := s.exec("INSERT INTO report (trial, rung, epoch, document) VALUES (?, ?, ?, ?) ON CONFLICT (trial, rung, epoch) DO NOTHING",
			string(report.Trial), report.Rung, report.Epoch, e.reports[i])
		if err := orphaned(err, report.Trial); err != nil {
			return err
		}
	}
	return nil
}

// eventRows is how many events one statement inserts at most: most changes have
// no more.
const eventRows = 3

func (e encoded) insertEvents(s *session) error {
	for some := range slices.Chunk(e.change.Events, eventRows) {
		err := s.insertEvents(some)
		if broken(err) {
			return err
		}
		if err == nil {
			continue
		}
		for _, event := range some { // the statement did nothing: which one was it?
			if err := s.insertEvent(event); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) insertEvents(events []study.Event) error {
	const row = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
	args := make([]any, 0, 9*eventRows)
	for _, event := range events {
		args = append(args, event.Study, event.Sequence, record.FormatTime(event.At), string(event.Kind), string(event.Trial),
			event.State, event.Worker, event.Reason, string(event.Data))
	}
	return s.exec("INSERT INTO event (study, sequence, at, kind, trial, state, worker, reason, data) VALUES "+
		row+strings.Repeat(", "+row, len(events)-1), args...)
}

func (s *session) insertEvent(event study.Event) error {
	err := s.insertEvents([]study.Event{event})
	switch {
	case taken(err):
		return record.SequenceTaken(event)
	case orphan(err):
		return record.NoStudy(event.Study)
	}
	return err
}

func (e encoded) putSnapshot(s *session) error {
	one := e.change.Snapshot
	if one == nil {
		return nil
	}
	err := s.exec(`INSERT INTO snapshot (study, sequence, state) VALUES (?, ?, ?)
		ON CONFLICT (study) DO UPDATE SET sequence = excluded.sequence, state = excluded.state
		WHERE excluded.sequence >= sequence`,
		one.Study, one.Sequence, string(one.State))
	if orphan(err) {
		return record.NoStudy(one.Study)
	}
	return err
}

func (e encoded) insertReceipt(s *session) error {
	one := e.change.Receipt
	if one == nil {
		return nil
	}
	err := s.exec("INSERT INTO receipt (key, request, answer, at) VALUES (?, ?, ?, ?)",
		one.Key, one.Request, string(one.Answer), record.FormatTime(one.At))
	if taken(err) {
		return record.KeyTaken(one.Key)
	}
	return err
}

// orphaned says that the trial is missing which a row belongs to.
func orphaned(err error, id trial.ID) error {
	if orphan(err) {
		return record.NoTrial(id)
	}
	return err
}

// formatOptional is a time as stored; nil for none.
func formatOptional(at *time.Time) any {
	if at == nil {
		return nil
	}
	return record.FormatTime(*at)
}
