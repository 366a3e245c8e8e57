package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

const studyColumns = "SELECT id, definition, status, reason, created, elapsed, since, finished FROM study "

// Study finds a study by its id or its name; an id goes first.
func (s *Store) Study(ctx context.Context, ref string) (study.Study, error) {
	found, err := collect(ctx, s, scanStudy, studyColumns+"WHERE id = ?1 OR name = ?1 ORDER BY id <> ?1 LIMIT 1", ref)
	return only(found, err, "there is no study %q", ref)
}

// Studies returns all studies, the newest first.
func (s *Store) Studies(ctx context.Context) ([]study.Study, error) {
	return collect(ctx, s, scanStudy, studyColumns+"ORDER BY created DESC, id")
}

// Trials returns a study's trials by number.
func (s *Store) Trials(ctx context.Context, id string) ([]trial.Trial, error) {
	return collect(ctx, s, scanDocument[trial.Trial], "SELECT document FROM trial WHERE study_id = ? ORDER BY number", id)
}

// Trial returns one trial.
func (s *Store) Trial(ctx context.Context, id trial.ID) (trial.Trial, error) {
	found, err := collect(ctx, s, scanDocument[trial.Trial], "SELECT document FROM trial WHERE id = ?", string(id))
	return only(found, err, "there is no trial %q", id)
}

// Reports returns a trial's reports in the order they were accepted.
func (s *Store) Reports(ctx context.Context, id trial.ID) ([]trial.Report, error) {
	return collect(ctx, s, scanDocument[trial.Report], "SELECT document FROM report WHERE trial_id = ? ORDER BY id", string(id))
}

const eventColumns = "SELECT study_id, sequence, at, kind, trial_id, state, worker, reason, data FROM event "

// Events returns up to limit events of the study behind the sequence.
func (s *Store) Events(ctx context.Context, id string, after int64, limit int) ([]study.Event, error) {
	return collect(ctx, s, scanEvent, eventColumns+"WHERE study_id = ? AND sequence > ? ORDER BY sequence LIMIT ?", id, after, limit)
}

// TrialEvents returns every event of one trial, in order.
func (s *Store) TrialEvents(ctx context.Context, studyID string, id trial.ID) ([]study.Event, error) {
	return collect(ctx, s, scanEvent, eventColumns+"WHERE study_id = ? AND trial_id = ? AND trial_id <> '' ORDER BY sequence", studyID, string(id))
}

// Snapshot returns the study's newest snapshot.
func (s *Store) Snapshot(ctx context.Context, id string) (study.Snapshot, error) {
	found, err := collect(ctx, s, func(row *sql.Rows) (study.Snapshot, error) {
		var one study.Snapshot
		var state []byte
		err := row.Scan(&one.Study, &one.Sequence, &state)
		one.State = state
		return one, err
	}, "SELECT study_id, sequence, state FROM snapshot WHERE study_id = ?", id)
	return only(found, err, "study %q has no snapshot", id)
}

// Receipt returns the answer stored under the key.
func (s *Store) Receipt(ctx context.Context, key string) (study.Receipt, error) {
	found, err := collect(ctx, s, func(row *sql.Rows) (study.Receipt, error) {
		var one study.Receipt
		var at int64
		var answer []byte
		err := row.Scan(&one.Key, &one.Request, &answer, &at)
		one.Answer, one.At = answer, moment(at)
		return one, err
	}, "SELECT key, request, answer, at FROM receipt WHERE key = ?", key)
	return only(found, err, "there is no receipt for the key %q", key)
}

// PurgeReceipts deletes the receipts stored before the time and says how many.
func (s *Store) PurgeReceipts(ctx context.Context, before time.Time) (int, error) {
	var purged int64
	err := s.writer.do(ctx, func(session *session) (err error) {
		purged, err = session.affect("DELETE FROM receipt WHERE at < ?", before.UnixNano())
		return err
	})
	return int(purged), err
}

func scanStudy(row *sql.Rows) (study.Study, error) {
	var one study.Study
	var document []byte
	var status string
	var created, elapsed int64
	var since, finished sql.NullInt64
	if err := row.Scan(&one.ID, &document, &status, &one.Reason, &created, &elapsed, &since, &finished); err != nil {
		return one, err
	}
	var err error
	if one.Definition, err = definition.Stored(document); err != nil {
		return one, fmt.Errorf("the stored definition of study %s: %w", one.ID, err)
	}
	one.Status, one.Created, one.Elapsed = protocol.StudyStatus(status), moment(created), time.Duration(elapsed)
	one.Since, one.Finished = optional(since), optional(finished)
	return one, nil
}

func scanEvent(row *sql.Rows) (study.Event, error) {
	var one study.Event
	var at int64
	var data []byte
	err := row.Scan(&one.Study, &one.Sequence, &at, &one.Kind, &one.Trial, &one.State, &one.Worker, &one.Reason, &data)
	one.At = moment(at)
	if len(data) > 0 {
		one.Data = data
	}
	return one, err
}

func scanDocument[T any](row *sql.Rows) (T, error) {
	var one T
	var document []byte
	if err := row.Scan(&document); err != nil {
		return one, err
	}
	return one, json.Unmarshal(document, &one)
}

// collect runs a query on a reading connection.
func collect[T any](ctx context.Context, s *Store, scan func(*sql.Rows) (T, error), query string, args ...any) (list []T, err error) {
	rows, err := s.readers.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, unreadable(ctx, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	list = []T{}
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	if err := rows.Err(); err != nil {
		return nil, unreadable(ctx, err)
	}
	return list, nil
}

func unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return problem.New(problem.Unavailable, "the database cannot be read now: %w", err)
}

// only is the one row found, or not_found.
func only[T any](found []T, err error, missing string, args ...any) (T, error) {
	var none T
	switch {
	case err != nil:
		return none, err
	case len(found) == 0:
		return none, problem.New(problem.NotFound, missing, args...)
	}
	return found[0], nil
}

func moment(nanoseconds int64) time.Time { return time.Unix(0, nanoseconds).UTC() }

func optional(nanoseconds sql.NullInt64) *time.Time {
	if !nanoseconds.Valid {
		return nil
	}
	at := moment(nanoseconds.Int64)
	return &at
}
