package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

const selectStudy = "SELECT id, name, definition, status, reason, created, elapsed, since, finished, annotation, stop FROM study "

// Study finds a study by its id or its reference; an id goes first.
func (s *Store) Study(ctx context.Context, ref string) (journal.Study, error) {
	found, err := collect(ctx, s, scanStudy, selectStudy+"WHERE id = $1 OR name = $1 ORDER BY id <> $1 LIMIT 1", ref)
	return only(found, err, record.NoStudy(ref))
}

// Studies returns all studies, the newest first.
func (s *Store) Studies(ctx context.Context) ([]journal.Study, error) {
	return collect(ctx, s, scanStudy, selectStudy+"ORDER BY created DESC, position DESC")
}

// Trials returns a study's trials by number.
func (s *Store) Trials(ctx context.Context, id string) ([]trial.Trial, error) {
	list, err := collect(ctx, s, scanDocument(record.ParseTrial), "SELECT document FROM trial WHERE study = $1 ORDER BY number", id)
	return list, s.orMissing(ctx, len(list), err, studyExists(id))
}

// Trial returns the trial.
func (s *Store) Trial(ctx context.Context, id trial.ID) (trial.Trial, error) {
	found, err := collect(ctx, s, scanDocument(record.ParseTrial), "SELECT document FROM trial WHERE id = $1", string(id))
	return only(found, err, record.NoTrial(id))
}

// Reports returns the trial's reports in the order they were accepted.
func (s *Store) Reports(ctx context.Context, id trial.ID) ([]trial.Report, error) {
	list, err := collect(ctx, s, scanDocument(record.ParseReport), "SELECT document FROM report WHERE trial = $1 ORDER BY position", string(id))
	return list, s.orMissing(ctx, len(list), err, trialExists(id))
}

const selectEvent = "SELECT study, sequence, at, kind, trial, state, worker, reason, data FROM event "

// Events returns up to limit events of the study with sequence > after.
func (s *Store) Events(ctx context.Context, id string, after int64, limit int) ([]journal.Event, error) {
	list, err := collect(ctx, s, scanEvent, selectEvent+"WHERE study = $1 AND sequence > $2 ORDER BY sequence LIMIT $3", id, after, max(limit, 0))
	return list, s.orMissing(ctx, len(list), err, studyExists(id))
}

// TrialEvents returns every event of one trial, in order.
func (s *Store) TrialEvents(ctx context.Context, studyID string, id trial.ID) ([]journal.Event, error) {
	list, err := collect(ctx, s, scanEvent, selectEvent+"WHERE trial = $1 AND trial <> '' AND study = $2 ORDER BY sequence", string(id), studyID)
	exists := trialExists(id)
	exists.query, exists.args = exists.query+" AND study = $2", append(exists.args, studyID)
	return list, s.orMissing(ctx, len(list), err, exists)
}

// Snapshot returns the study's newest snapshot.
func (s *Store) Snapshot(ctx context.Context, id string) (journal.Snapshot, error) {
	found, err := collect(ctx, s, scanSnapshot, "SELECT study, sequence, state FROM snapshot WHERE study = $1", id)
	if err := s.orMissing(ctx, len(found), err, studyExists(id)); err != nil {
		return journal.Snapshot{}, err
	}
	return only(found, nil, record.NoSnapshot(id))
}

// Receipt returns the answer stored under the key.
func (s *Store) Receipt(ctx context.Context, key string) (journal.Receipt, error) {
	found, err := collect(ctx, s, scanReceipt, "SELECT key, request, answer, at FROM receipt WHERE key = $1", key)
	return only(found, err, record.NoReceipt(key))
}

// PurgeReceipts deletes the receipts older than the time and returns how many.
func (s *Store) PurgeReceipts(ctx context.Context, before time.Time) (int, error) {
	var purged int64
	err := s.writer.Do(ctx, func(run *session) error {
		run.do(func(results pgx.BatchResults) error {
			tag, err := results.Exec()
			purged = tag.RowsAffected()
			return err
		}, "DELETE FROM receipt WHERE at < $1", record.FormatTime(before))
		return nil
	})
	if err != nil {
		return 0, err
	}
	return int(purged), nil
}

// collect runs a query on a reading connection, and once more when that one
// was dead.
func collect[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	if err := s.readable(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	list, err := once(ctx, s, scan, query, args)
	if lost(err) {
		list, err = once(ctx, s, scan, query, args)
	}
	if err != nil {
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
	return existence{"SELECT 1 FROM study WHERE id = $1", []any{id}, record.NoStudy(id)}
}

func trialExists(id trial.ID) existence {
	return existence{"SELECT 1 FROM trial WHERE id = $1", []any{string(id)}, record.NoTrial(id)}
}

// orMissing tells an empty list from one of something that does not exist.
func (s *Store) orMissing(ctx context.Context, count int, err error, exists existence) error {
	if err != nil || count > 0 {
		return err
	}
	found, err := collect(ctx, s, func(pgx.CollectableRow) (struct{}, error) { return struct{}{}, nil }, exists.query, exists.args...)
	_, err = only(found, err, exists.missing)
	return err
}

func once[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], query string, args []any) ([]T, error) {
	rows, err := s.database.reads.Query(ctx, query, texts(args)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (T, error) {
		one, err := scan(row)
		if err != nil {
			err = problem.New(problem.Internal, "the store: %w", err)
		}
		return one, err
	})
}

// readable says why nothing is read any more.
func (s *Store) readable() error {
	select {
	case <-s.closed:
		return record.Closed()
	default:
		return s.Err()
	}
}
