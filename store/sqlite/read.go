package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

const selectStudy = `SELECT position, id, name, definition, created, fixed_checksum,
	status, reason, elapsed, since, finished, annotation, stop, checksum FROM study `

// Study finds a study by its id or its reference; an id goes first.
func (s *Store) Study(ctx context.Context, ref string) (journal.Study, error) {
	return look(ctx, s, func(v view) (journal.Study, error) { return v.study(ref) })
}

func (v view) study(ref string) (journal.Study, error) {
	found, err := collect(v, proven(scanStudy), selectStudy+"WHERE id = ?1 OR name = ?1 ORDER BY id <> ?1 LIMIT 1", ref)
	is := func(one journal.Study) bool { return one.ID == ref || one.Reference() == ref }
	return only(found, err, is, func() error {
		all, err := v.studies()
		if err == nil && slices.ContainsFunc(all, is) {
			err = dbfile.Damage{Table: "study", Row: fmt.Sprintf("row %q", ref), Finding: "it is there, but its index does not lead to it"}
		}
		if err != nil {
			return err
		}
		return record.NoStudy(ref)
	})
}

// Studies returns all studies, the newest first.
func (s *Store) Studies(ctx context.Context) ([]journal.Study, error) {
	return look(ctx, s, view.studies)
}

func (v view) studies() ([]journal.Study, error) {
	return whole(v, scanStudy, list{kind: "study"}, selectStudy+"ORDER BY created DESC, position DESC")
}

const selectTrial = "SELECT id, study, number, state, lease_epoch, document, checksum FROM trial "

// Trials returns a study's trials by number.
func (s *Store) Trials(ctx context.Context, id string) ([]trial.Trial, error) {
	return look(ctx, s, func(v view) ([]trial.Trial, error) {
		found, err := whole(v, scanTrial, list{kind: "trial", owner: id}, selectTrial+"WHERE study = ? ORDER BY number", id)
		return found, v.orNoStudy(len(found), err, id)
	})
}

// Trial returns the trial.
func (s *Store) Trial(ctx context.Context, id trial.ID) (trial.Trial, error) {
	return look(ctx, s, func(v view) (trial.Trial, error) { return v.trial(id) })
}

func (v view) trial(id trial.ID) (trial.Trial, error) {
	found, err := collect(v, proven(scanTrial), selectTrial+"WHERE id = ?", string(id))
	is := func(one trial.Trial) bool { return one.ID == id }
	return only(found, err, is, func() error {
		return v.missing(absence{
			table: "trial", key: string(id), missing: record.NoTrial(id),
			count: "SELECT count(*), coalesce(sum(id = ?), 0) FROM trial NOT INDEXED",
		})
	})
}

// Reports returns the trial's reports in the order they were accepted.
func (s *Store) Reports(ctx context.Context, id trial.ID) ([]trial.Report, error) {
	return look(ctx, s, func(v view) ([]trial.Report, error) {
		found, err := whole(v, scanReport, list{kind: "report", owner: string(id)},
			"SELECT trial, rung, epoch, document, checksum FROM report WHERE trial = ? ORDER BY position", string(id))
		return found, v.orNoTrial(len(found), err, id)
	})
}

const selectEvent = "SELECT study, sequence, at, kind, trial, state, worker, reason, data, checksum FROM event "

// Events returns up to limit events of the study with sequence > after.
func (s *Store) Events(ctx context.Context, id string, after int64, limit int) ([]journal.Event, error) {
	return look(ctx, s, func(v view) ([]journal.Event, error) {
		// SQLite takes a negative limit for none.
		page, err := collect(v, proven(scanEvent), selectEvent+"WHERE study = ? AND sequence > ? ORDER BY sequence LIMIT max(?, 0)", id, after, limit)
		if err != nil || limit <= 0 {
			return page, v.orNoStudy(len(page), err, id)
		}
		written, err := v.tally(list{kind: "event", owner: id})
		if err == nil && !seamless(page, after, limit, written.newest) {
			page, err = v.page(id, after, limit)
		}
		return page, v.orNoStudy(len(page), err, id)
	})
}

// seamless reports whether nothing can be missing in a page of events: each
// follows the one before, and the last one is where the page or the log ends.
func seamless(page []journal.Event, after int64, limit int, newest int64) bool {
	last := after
	for _, one := range page {
		if one.Sequence-1 != last {
			return false
		}
		last = one.Sequence
	}
	return len(page) == limit || last >= newest
}

// page is a page of events from the proven list of all.
func (v view) page(id string, after int64, limit int) ([]journal.Event, error) {
	all, err := whole(v, scanEvent, list{kind: "event", owner: id}, selectEvent+"WHERE study = ? ORDER BY sequence", id)
	page := slices.DeleteFunc(all, func(one journal.Event) bool { return one.Sequence <= after })
	return page[:min(len(page), limit)], err
}

// TrialEvents returns every event of one trial, in order.
func (s *Store) TrialEvents(ctx context.Context, studyID string, id trial.ID) ([]journal.Event, error) {
	return look(ctx, s, func(v view) ([]journal.Event, error) {
		found, err := whole(v, scanEvent, list{kind: told, owner: string(id)},
			selectEvent+"WHERE trial = ? AND trial <> '' ORDER BY sequence", string(id))
		found = slices.DeleteFunc(found, func(one journal.Event) bool { return one.Study != studyID })
		if err != nil || len(found) > 0 {
			return found, err
		}
		of, err := v.trial(id)
		if err == nil && of.Study != studyID {
			err = record.NoTrial(id)
		}
		return nil, err
	})
}

// Snapshot returns the study's newest snapshot.
func (s *Store) Snapshot(ctx context.Context, id string) (journal.Snapshot, error) {
	return look(ctx, s, func(v view) (journal.Snapshot, error) {
		found, err := whole(v, scanSnapshot, list{kind: "snapshot", owner: id},
			"SELECT study, sequence, state, checksum FROM snapshot WHERE study = ?", id)
		is := func(one journal.Snapshot) bool { return one.Study == id }
		return only(found, v.orNoStudy(len(found), err, id), is, func() error { return record.NoSnapshot(id) })
	})
}

// Receipt returns the answer stored under the key. That there is none is the
// usual case and not looked into: Open has checked that every receipt is found.
func (s *Store) Receipt(ctx context.Context, key string) (journal.Receipt, error) {
	if err := s.Err(); err != nil {
		return journal.Receipt{}, err
	}
	reader, err := s.readers.Conn(ctx)
	if err != nil {
		return journal.Receipt{}, s.health.Explain(err)
	}
	defer func() { _ = reader.Close() }()         // it goes back to the others
	v := view{context.WithoutCancel(ctx), reader} // one row needs no transaction, and is found at once
	found, err := collect(v, proven(scanReceipt), "SELECT key, request, answer, at, checksum FROM receipt WHERE key = ?", key)
	is := func(one journal.Receipt) bool { return one.Key == key }
	receipt, err := only(found, err, is, func() error { return record.NoReceipt(key) })
	return receipt, s.health.Explain(err)
}

// PurgeReceipts deletes the receipts older than the time and returns how many.
func (s *Store) PurgeReceipts(ctx context.Context, before time.Time) (int, error) {
	var purged int64
	err := s.writer.Do(ctx, func(session *session) (err error) {
		purged, err = session.affect("DELETE FROM receipt WHERE at < ?", record.FormatTime(before))
		return err
	})
	return int(purged), err
}

// orNoStudy tells an empty list from one of a study that does not exist.
func (v view) orNoStudy(count int, err error, id string) error {
	if err != nil || count > 0 {
		return err
	}
	one, err := v.study(id)
	if err == nil && one.ID != id { // found by its reference
		err = record.NoStudy(id)
	}
	return err
}

// orNoTrial tells an empty list from one of a trial that does not exist.
func (v view) orNoTrial(count int, err error, id trial.ID) error {
	if err != nil || count > 0 {
		return err
	}
	_, err = v.trial(id)
	return err
}
