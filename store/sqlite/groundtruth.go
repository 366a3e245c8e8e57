package sqlite

import (
	"context"
	"database/sql"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study"
)

func (e encoded) forgetRecords(s *session) error {
	machine := e.change.Forget
	switch {
	case machine == nil:
		return nil
	case *machine == "":
		return s.exec("DELETE FROM ground_truth")
	}
	return s.exec("DELETE FROM ground_truth WHERE machine = ?", *machine)
}

// writeRecords replaces and inserts records. Only a type of machine that got a
// new one can have too many: the change of most reports, which go on with a
// record, is one statement.
func (e encoded) writeRecords(s *session) error {
	grown := make(map[string]bool)
	for i, one := range e.change.Records {
		updated := record.FormatTime(one.Updated)
		rows, err := s.affect("UPDATE ground_truth SET updated = ?, document = ? WHERE id = ? AND machine = ?", updated, e.records[i], one.ID, one.Machine)
		if err != nil {
			return err
		}
		if rows > 0 {
			continue
		}
		// One of another type of machine moves to this one.
		if err := s.exec("INSERT OR REPLACE INTO ground_truth (id, machine, updated, document) VALUES (?, ?, ?, ?)",
			one.ID, one.Machine, updated, e.records[i]); err != nil {
			return err
		}
		grown[one.Machine] = true
	}
	for machine := range grown {
		if err := s.exec(`DELETE FROM ground_truth WHERE id IN (
			SELECT id FROM ground_truth WHERE machine = ? ORDER BY updated DESC, id DESC LIMIT -1 OFFSET ?)`,
			machine, study.MaxRecords); err != nil {
			return err
		}
	}
	return nil
}

// Records returns the ground truth of the type of machine, the oldest first.
func (s *Store) Records(ctx context.Context, machine string) ([]similarity.Record, error) {
	const columns = "SELECT document FROM ground_truth "
	if machine == "" {
		return collect(ctx, s, scanRecord, columns+"ORDER BY updated, id")
	}
	return collect(ctx, s, scanRecord, columns+"WHERE machine = ? ORDER BY updated, id", machine)
}

// RecordTypes returns the types of machine that there are records of, sorted.
func (s *Store) RecordTypes(ctx context.Context) ([]string, error) {
	return collect(ctx, s, scanText, "SELECT DISTINCT machine FROM ground_truth ORDER BY machine")
}

func scanRecord(row *sql.Rows) (similarity.Record, error) {
	document, err := scanText(row)
	if err != nil {
		return similarity.Record{}, err
	}
	return record.ParseRecord(document)
}

func scanText(row *sql.Rows) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}
