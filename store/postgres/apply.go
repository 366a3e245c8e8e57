package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
)

// Apply makes the change durable as a whole, in the order of its fields, or
// not at all; see journal.Store.
func (s *Store) Apply(ctx context.Context, change journal.Change) error {
	return s.Submit(ctx, change).Wait()
}

// Submit hands the change to the writer. A caller can give up until the change
// is queued; from then on only the outcome is an honest answer.
func (s *Store) Submit(ctx context.Context, change journal.Change) *journal.Outcome {
	documents, err := record.Encode(change)
	if err != nil {
		outcome := journal.NewOutcome()
		outcome.Settle(err)
		return outcome
	}
	return s.writer.Submit(ctx, encoded{change, documents}.run)
}

// encoded is a change with its documents as text.
type encoded struct {
	change    journal.Change
	documents record.Documents
}

func (e encoded) run(s *session) error {
	for _, step := range []func(*session){
		e.checkNewest, e.insertStudy, e.updateStudy, e.deleteStudy, e.writeTrials, e.insertReports, e.insertEvents, e.putSnapshot,
		e.forgetRecords, e.writeRecords, e.writeArchitectures, e.writePool, e.insertReceipt,
	} {
		step(s)
	}
	return nil
}

// checkNewest refuses what was not decided on the study's newest event.
func (e encoded) checkNewest(s *session) {
	p := e.change.Behind
	if p == nil {
		return
	}
	s.do(func(results pgx.BatchResults) error {
		var newest int64
		var exists bool
		switch err := results.QueryRow().Scan(&newest, &exists); {
		case err != nil:
			return err
		case !exists:
			return record.NoStudy(p.Study)
		case newest != p.Sequence:
			return record.NotBehind(*p, newest)
		}
		return nil
	}, "SELECT coalesce((SELECT sequence FROM event WHERE study = $1 ORDER BY sequence DESC LIMIT 1), 0), EXISTS (SELECT 1 FROM study WHERE id = $1)", p.Study)
}

func (e encoded) insertStudy(s *session) {
	one := e.change.Insert
	if one == nil {
		return
	}
	s.do(unless(record.StudyTaken(*one), nil), `INSERT INTO study (id, name, definition, status, reason, created, elapsed, since, finished, annotation, stop)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		one.ID, one.Reference(), e.documents.Definition, string(one.Status), one.Reason,
		record.FormatTime(one.Created), int64(one.Elapsed), formatOptional(one.Since), formatOptional(one.Finished), e.documents.Inserted.Annotation, e.documents.Inserted.Stop)
}

func (e encoded) updateStudy(s *session) {
	one := e.change.Update
	if one == nil {
		return
	}
	if e.change.Transfer {
		s.do(unless(record.StudyTaken(*one), nil), "UPDATE study SET name = $1 WHERE id = $2", one.Reference(), one.ID)
	}
	s.do(touching(func() error { return record.NoStudy(one.ID) }),
		"UPDATE study SET status = $1, reason = $2, elapsed = $3, since = $4, finished = $5, annotation = $6, stop = $7 WHERE id = $8",
		string(one.Status), one.Reason, int64(one.Elapsed), formatOptional(one.Since), formatOptional(one.Finished), e.documents.Updated.Annotation, e.documents.Updated.Stop, one.ID)
}

func (e encoded) deleteStudy(s *session) {
	if id := e.change.Delete; id != "" {
		s.do(touching(func() error { return record.NoStudy(id) }), "DELETE FROM study WHERE id = $1", id)
	}
}

func (e encoded) writeTrials(s *session) {
	for i, write := range e.change.Trials {
		if write.Guard == nil {
			insertTrial(s, write, e.documents.Trials[i])
		} else {
			replaceTrial(s, write, e.documents.Trials[i])
		}
	}
}

func insertTrial(s *session, write journal.TrialWrite, document string) {
	t := write.Trial
	s.do(unless(record.TrialTaken(t), record.NoStudy(t.Study)),
		"INSERT INTO trial (id, study, number, state, lease_epoch, document) VALUES ($1, $2, $3, $4, $5, $6)",
		string(t.ID), t.Study, t.Number, string(t.State), int64(t.LeaseEpoch), document)
}

func replaceTrial(s *session, write journal.TrialWrite, document string) {
	t, guard := write.Trial, *write.Guard
	s.do(func(results pgx.BatchResults) error {
		var there, written bool
		switch err := results.QueryRow().Scan(&there, &written); {
		case err != nil:
			return err
		case !there:
			return record.NoTrial(t.ID)
		case !written:
			return record.GuardBroken(t.ID, guard)
		}
		return nil
	}, `WITH written AS (
			UPDATE trial SET state = $1, lease_epoch = $2, document = $3
			WHERE id = $4 AND study = $5 AND number = $6 AND lease_epoch = $7 AND state = $8 RETURNING 1)
		SELECT EXISTS (SELECT 1 FROM trial WHERE id = $4 AND study = $5 AND number = $6), EXISTS (SELECT 1 FROM written)`,
		string(t.State), int64(t.LeaseEpoch), document,
		string(t.ID), t.Study, t.Number, int64(guard.LeaseEpoch), string(guard.State))
}

func (e encoded) insertReports(s *session) {
	for i, report := range e.change.Reports {
		s.do(unless(nil, record.NoTrial(report.Trial)),
			"INSERT INTO report (trial, rung, epoch, document) VALUES ($1, $2, $3, $4) ON CONFLICT (trial, rung, epoch) DO NOTHING",
			string(report.Trial), report.Rung, report.Epoch, e.documents.Reports[i])
	}
}

func (e encoded) insertEvents(s *session) {
	for _, event := range e.change.Events {
		s.do(unless(record.SequenceTaken(event), record.NoStudy(event.Study)),
			"INSERT INTO event (study, sequence, at, kind, trial, state, worker, reason, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
			event.Study, event.Sequence, record.FormatTime(event.At), string(event.Kind), string(event.Trial),
			event.State, event.Worker, event.Reason, string(event.Data))
	}
}

func (e encoded) putSnapshot(s *session) {
	one := e.change.Snapshot
	if one == nil {
		return
	}
	s.do(unless(nil, record.NoStudy(one.Study)), `INSERT INTO snapshot (study, sequence, state) VALUES ($1, $2, $3)
		ON CONFLICT (study) DO UPDATE SET sequence = excluded.sequence, state = excluded.state
		WHERE excluded.sequence >= snapshot.sequence`,
		one.Study, one.Sequence, string(one.State))
}

func (e encoded) insertReceipt(s *session) {
	one := e.change.Receipt
	if one == nil {
		return
	}
	s.do(unless(record.KeyTaken(one.Key), nil), "INSERT INTO receipt (key, request, answer, at) VALUES ($1, $2, $3, $4)",
		one.Key, one.Request, string(one.Answer), record.FormatTime(one.At))
}

// formatOptional is a time as stored; nil for none.
func formatOptional(at *time.Time) *string {
	if at == nil {
		return nil
	}
	text := record.FormatTime(*at)
	return &text
}
