package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
	"github.com/tandem-tune/tandem/study/journal"
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
		row := e.records[i]
		rows, err := s.affect("UPDATE ground_truth SET updated = ?3, document = ?4, checksum = ?5 WHERE id = ?1 AND machine = ?2", row...)
		if err != nil {
			return err
		}
		if rows > 0 {
			continue
		}
		// One of another type of machine moves to this one.
		if err := s.exec(`INSERT INTO ground_truth (id, machine, updated, document, checksum) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET machine = excluded.machine, updated = excluded.updated,
				document = excluded.document, checksum = excluded.checksum`, row...); err != nil {
			return err
		}
		grown[one.Machine] = true
	}
	for machine := range grown {
		if err := s.exec(`DELETE FROM ground_truth WHERE id IN (
			SELECT id FROM ground_truth WHERE machine = ? ORDER BY updated DESC, id DESC LIMIT -1 OFFSET ?)`,
			machine, journal.MaxRecords); err != nil {
			return err
		}
	}
	return nil
}

func recordRow(r similarity.Record, document string) []any {
	return dbfile.Row("ground_truth", r.ID, r.Machine, record.FormatTime(r.Updated), document)
}

const selectRecord = "SELECT id, machine, updated, document, checksum FROM ground_truth "

// Records returns the ground truth of the type of machine, the oldest first.
func (s *Store) Records(ctx context.Context, machine string) ([]similarity.Record, error) {
	return look(ctx, s, func(v view) ([]similarity.Record, error) {
		if machine == "" {
			return whole(v, scanRecord, list{kind: "ground_truth", all: true}, selectRecord+"ORDER BY updated, id")
		}
		return whole(v, scanRecord, list{kind: "ground_truth", owner: machine}, selectRecord+"WHERE machine = ? ORDER BY updated, id", machine)
	})
}

// RecordTypes returns the types of machine that there are records of, sorted.
func (s *Store) RecordTypes(ctx context.Context) ([]string, error) {
	return look(ctx, s, func(v view) ([]string, error) {
		found, err := collect(v, scanText, "SELECT DISTINCT machine FROM ground_truth ORDER BY machine")
		if err != nil {
			return nil, err
		}
		tallied, err := collect(v, scanText, "SELECT owner FROM tally WHERE kind = 'ground_truth' AND entries > 0 ORDER BY owner")
		if err == nil && !slices.Equal(found, tallied) {
			err = dbfile.Damage{Table: "ground_truth", Row: "the types of machine", Finding: fmt.Sprintf("they are %q, and %q were written", found, tallied)}
		}
		return found, err
	})
}

func scanRecord(rows *sql.Rows) (one similarity.Record, sum int64, err error) {
	var id, machine, updated, document string
	if err = dbfile.Columns("ground_truth", rows, &id, &machine, &updated, &document, &sum); err != nil {
		return one, sum, err
	}
	if err = dbfile.Prove("ground_truth", sum, dbfile.Checksum("ground_truth", id, machine, updated, document), id); err != nil {
		return one, sum, err
	}
	one, err = record.ParseRecord(document)
	return one, sum, err
}

func scanText(rows *sql.Rows) (text string, err error) {
	err = rows.Scan(&text)
	return text, err
}
