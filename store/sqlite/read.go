package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/trial"
)

const selectStudy = "SELECT id, definition, status, reason, created, elapsed, since, finished FROM study "

// Study finds a study by its id or its name; an id goes first.
func (s *Store) Study(ctx context.Context, ref string) (study.Study, error) {
	found, err := collect(ctx, s, scanStudy, selectStudy+"WHERE id = ?1 OR name = ?1 ORDER BY id <> ?1 LIMIT 1", ref)
	return only(found, err, record.NoStudy(ref))
}

// Studies returns all studies, the newest first.
func (s *Store) Studies(ctx context.Context) ([]study.Study, error) {
	return collect(ctx, s, scanStudy, selectStudy+"ORDER BY created DESC, position DESC")
}

// Trials returns a study's trials by number.
func (s *Store) Trials(ctx context.Context, id string) ([]trial.Trial, error) {
	list, err := collect(ctx, s, scanTrial, "SELECT document FROM trial WHERE study = ? ORDER BY number", id)
	return list, s.orMissing(ctx, len(list), err, studyExists(id))
}

// Trial returns the trial.
func (s *Store) Trial(ctx context.Context, id trial.ID) (trial.Trial, error) {
	found, err := collect(ctx, s, scanTrial, "SELECT document FROM trial WHERE id = ?", string(id))
	return only(found, err, record.NoTrial(id))
}

// Reports returns the trial's reports in the order they were accepted.
func (s *Store) Reports(ctx context.Context, id trial.ID) ([]trial.Report, error) {
	list, err := collect(ctx, s, scanReport, "SELECT document FROM report WHERE trial = ? ORDER BY position", string(id))
	return list, s.orMissing(ctx, len(list), err, trialExists(id))
}

const selectEvent = "SELECT study, sequence, at, kind, trial, state, worker, reason, data FROM event "

// Events returns up to limit events of the study with sequence > after.
func (s *Store) Events(ctx context.Context, id string, after int64, limit int) ([]study.Event, error) {
	// SQLite takes a negative limit for none.
	list, err := collect(ctx, s, scanEvent, selectEvent+"WHERE study = ? AND sequence > ? ORDER BY sequence LIMIT max(?, 0)", id, after, limit)
	return list, s.orMissing(ctx, len(list), err, studyExists(id))
}

// TrialEvents returns every event of one trial, in order.
func (s *Store) TrialEvents(ctx context.Context, studyID string, id trial.ID) ([]study.Event, error) {
	list, err := collect(ctx, s, scanEvent, selectEvent+"WHERE trial = ? AND trial <> '' AND study = ? ORDER BY sequence", string(id), studyID)
	exists := trialExists(id)
	exists.query, exists.args = exists.query+" AND study = ?", append(exists.args, studyID)
	return list, s.orMissing(ctx, len(list), err, exists)
}

// Snapshot returns the study's newest snapshot.
func (s *Store) Snapshot(ctx context.Context, id string) (study.Snapshot, error) {
	found, err := collect(ctx, s, scanSnapshot, "SELECT study, sequence, state FROM snapshot WHERE study = ?", id)
	if err := s.orMissing(ctx, len(found), err, studyExists(id)); err != nil {
		return study.Snapshot{}, err
	}
	return only(found, nil, record.NoSnapshot(id))
}

// Receipt returns the answer stored under the key.
func (s *Store) Receipt(ctx context.Context, key string) (study.Receipt, error) {
	found, err := collect(ctx, s, scanReceipt, "SELECT key, request, answer, at FROM receipt WHERE key = ?", key)
	return only(found, err, record.NoReceipt(key))
}

// PurgeReceipts deletes the receipts older than the time and returns how many.
func (s *Store) PurgeReceipts(ctx context.Context, before time.Time) (int, error) {
	var purged int64
	err := s.writer.do(ctx, func(session *session) (err error) {
		purged, err = session.affect("DELETE FROM receipt WHERE at < ?", record.FormatTime(before))
		return err
	})
	return int(purged), err
}

// collect runs a query on a reading connection.
func collect[T any](ctx context.Context, s *Store, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	rows, err := s.readers.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.health.explain(err)
	}
	var list []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, s.health.explain(errors.Join(err, rows.Close()))
		}
		list = append(list, one)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, s.health.explain(err)
	}
	return list, nil
}

// only is the one row found, or what is said when there is none.
func only[T any](found []T, err, missing error) (T, error) {
	var none T
	switch {
	case err != nil:
		return none, err
	case len(found) == 0:
		return none, missing
	}
	return found[0], nil
}

// existence asks whether there is something to have an empty list at all.
type existence struct {
	query   string
	args    []any
	missing error
}

func studyExists(id string) existence {
	return existence{"SELECT 1 FROM study WHERE id = ?", []any{id}, record.NoStudy(id)}
}

func trialExists(id trial.ID) existence {
	return existence{"SELECT 1 FROM trial WHERE id = ?", []any{string(id)}, record.NoTrial(id)}
}

// orMissing tells an empty list from one of something that does not exist.
func (s *Store) orMissing(ctx context.Context, count int, err error, exists existence) error {
	if err != nil || count > 0 {
		return err
	}
	found, err := collect(ctx, s, func(*sql.Rows) (struct{}, error) { return struct{}{}, nil }, exists.query, exists.args...)
	_, err = only(found, err, exists.missing)
	return err
}
