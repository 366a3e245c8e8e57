package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// Apply makes the change durable as a whole, in the order of its fields, or
// not at all; see journal.Store.
func (s *Store) Apply(ctx context.Context, change journal.Change) error {
	return s.Submit(ctx, change).Wait()
}

// Submit hands the change to the writer. A caller can give up until the change
// is queued; from then on only the outcome is an honest answer.
func (s *Store) Submit(ctx context.Context, change journal.Change) *journal.Outcome {
	write, err := encode(change)
	if err != nil {
		outcome := journal.NewOutcome()
		outcome.Settle(err)
		return outcome
	}
	return s.writer.Submit(ctx, write.run)
}

// encoded is a change as rows, made before the writer's turn so that the writer
// only writes.
type encoded struct {
	change    journal.Change
	documents record.Documents
	// In the order of the change's lists.
	trials, reports, events, records, architectures, pool [][]any
}

func encode(change journal.Change) (encoded, error) {
	documents, err := record.Encode(change)
	if err != nil {
		return encoded{}, err
	}
	return encoded{
		change: change, documents: documents,
		trials: rows(change.Trials, documents.Trials, trialRow), reports: rows(change.Reports, documents.Reports, reportRow),
		records: rows(change.Records, documents.Records, recordRow), architectures: rows(change.Architectures, documents.Architectures, architectureRow),
		events: rows(change.Events, make([]string, len(change.Events)), eventRow), pool: rows(change.Pool, make([]string, len(change.Pool)), poolRow),
	}, nil
}

// rows are those of a list, each with its document.
func rows[T any](list []T, documents []string, row func(T, string) []any) [][]any {
	made := make([][]any, len(list))
	for i, one := range list {
		made[i] = row(one, documents[i])
	}
	return made
}

func trialRow(write journal.TrialWrite, document string) []any {
	t := write.Trial
	return dbfile.Row("trial", string(t.ID), t.Study, int64(t.Number), string(t.State), int64(t.LeaseEpoch), document)
}

func reportRow(r trial.Report, document string) []any {
	return dbfile.Row("report", string(r.Trial), int64(r.Rung), int64(r.Epoch), document)
}

func eventRow(e journal.Event, _ string) []any {
	return dbfile.Row("event", e.Study, e.Sequence, record.FormatTime(e.At), string(e.Kind), string(e.Trial),
		e.State, e.Worker, e.Reason, string(e.Data))
}

func (e encoded) run(s *session) error {
	for _, step := range []func(*session) error{
		e.checkNewest, e.insertStudy, e.updateStudy, e.deleteStudy, e.writeTrials, e.insertReports, e.insertEvents, e.putSnapshot,
		e.forgetRecords, e.writeRecords, e.writeArchitectures, e.writePool, e.insertReceipt,
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
	// The position is part of the checksum, so it is not left to SQLite.
	position, err := s.number("SELECT coalesce(max(position), 0) + 1 FROM study")
	if err != nil {
		return err
	}
	created := record.FormatTime(one.Created)
	fixed := dbfile.Checksum("study", position, one.ID, one.Reference(), e.documents.Definition, created)
	changing := dbfile.Row("study", one.ID, fixed, string(one.Status), one.Reason, int64(one.Elapsed), formatOptional(one.Since), formatOptional(one.Finished), e.documents.Inserted.Annotation, e.documents.Inserted.Stop)
	err = s.exec(`INSERT INTO study (id, fixed_checksum, status, reason, elapsed, since, finished, annotation, stop, checksum, position, name, definition, created)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append(changing, position, one.Reference(), e.documents.Definition, created)...)
	if dbfile.Taken(err) {
		return record.StudyTaken(*one)
	}
	return err
}

func (e encoded) updateStudy(s *session) error {
	one := e.change.Update
	if one == nil {
		return nil
	}
	if e.change.Transfer {
		err := s.exec("UPDATE study SET name = ?2, fixed_checksum = row_checksum('study', position, id, ?2, definition, created) WHERE id = ?1", one.ID, one.Reference())
		if dbfile.Taken(err) {
			return record.StudyTaken(*one)
		}
		if err != nil {
			return err
		}
	}
	rows, err := s.affect(`UPDATE study SET status = ?2, reason = ?3, elapsed = ?4, since = ?5, finished = ?6, annotation = ?7, stop = ?8,
		checksum = row_checksum('study', id, fixed_checksum, ?2, ?3, ?4, ?5, ?6, ?7, ?8) WHERE id = ?1`,
		one.ID, string(one.Status), one.Reason, int64(one.Elapsed), formatOptional(one.Since), formatOptional(one.Finished), e.documents.Updated.Annotation, e.documents.Updated.Stop)
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

func (s *session) insertTrial(write journal.TrialWrite, row []any) error {
	t := write.Trial
	err := s.exec("INSERT INTO trial (id, study, number, state, lease_epoch, document, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)", row...)
	switch {
	case dbfile.Taken(err):
		return record.TrialTaken(t)
	case dbfile.Orphan(err):
		return record.NoStudy(t.Study)
	}
	return err
}

func (s *session) replaceTrial(write journal.TrialWrite, row []any) error {
	t, guard := write.Trial, *write.Guard
	rows, err := s.affect(`UPDATE trial SET state = ?4, lease_epoch = ?5, document = ?6, checksum = ?7
		WHERE id = ?1 AND study = ?2 AND number = ?3 AND lease_epoch = ?8 AND state = ?9`,
		append(row, int64(guard.LeaseEpoch), string(guard.State))...)
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
		err := s.exec(`INSERT INTO report (trial, rung, epoch, document, checksum) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (trial, rung, epoch) DO NOTHING`, e.reports[i]...)
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
	done := 0
	for some := range slices.Chunk(e.events, eventRows) {
		err := s.insertEvents(some)
		if broken(err) {
			return err
		}
		if err != nil { // the statement did nothing: which one was it?
			for i, one := range some {
				if err := s.insertEvent(e.change.Events[done+i], one); err != nil {
					return err
				}
			}
		}
		done += len(some)
	}
	return nil
}

func (s *session) insertEvents(rows [][]any) error {
	const row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	return s.exec("INSERT INTO event (study, sequence, at, kind, trial, state, worker, reason, data, checksum) VALUES "+
		row+strings.Repeat(", "+row, len(rows)-1), slices.Concat(rows...)...)
}

func (s *session) insertEvent(event journal.Event, row []any) error {
	err := s.insertEvents([][]any{row})
	switch {
	case dbfile.Taken(err):
		return record.SequenceTaken(event)
	case dbfile.Orphan(err):
		return record.NoStudy(event.Study)
	}
	return err
}

func (e encoded) putSnapshot(s *session) error {
	one := e.change.Snapshot
	if one == nil {
		return nil
	}
	err := s.exec(`INSERT INTO snapshot (study, sequence, state, checksum) VALUES (?, ?, ?, ?)
		ON CONFLICT (study) DO UPDATE SET sequence = excluded.sequence, state = excluded.state, checksum = excluded.checksum
		WHERE excluded.sequence >= sequence`,
		dbfile.Row("snapshot", one.Study, one.Sequence, string(one.State))...)
	if dbfile.Orphan(err) {
		return record.NoStudy(one.Study)
	}
	return err
}

func (e encoded) insertReceipt(s *session) error {
	one := e.change.Receipt
	if one == nil {
		return nil
	}
	err := s.exec("INSERT INTO receipt (key, request, answer, at, checksum) VALUES (?, ?, ?, ?, ?)",
		dbfile.Row("receipt", one.Key, one.Request, string(one.Answer), record.FormatTime(one.At))...)
	if dbfile.Taken(err) {
		return record.KeyTaken(one.Key)
	}
	return err
}

// orphaned says that the trial is missing which a row belongs to.
func orphaned(err error, id trial.ID) error {
	if dbfile.Orphan(err) {
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
