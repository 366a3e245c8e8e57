package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
)

func (e encoded) forgetRecords(s *session) {
	machine := e.change.Forget
	switch {
	case machine == nil:
	case *machine == "":
		s.do(fine, "DELETE FROM ground_truth")
	default:
		s.do(fine, "DELETE FROM ground_truth WHERE machine = $1", *machine)
	}
}

// writeRecords replaces and inserts records, one of another type of machine
// included, and then takes the oldest of types that have too many.
func (e encoded) writeRecords(s *session) {
	var machines []string
	for i, one := range e.change.Records {
		s.do(fine, `INSERT INTO ground_truth (id, machine, updated, document) VALUES ($1, $2, $3, $4)
			ON CONFLICT (id) DO UPDATE SET machine = excluded.machine, updated = excluded.updated, document = excluded.document`,
			one.ID, one.Machine, record.FormatTime(one.Updated), e.documents.Records[i])
		if !slices.Contains(machines, one.Machine) {
			machines = append(machines, one.Machine)
		}
	}
	for _, machine := range machines {
		s.do(fine, `DELETE FROM ground_truth WHERE id IN (
			SELECT id FROM ground_truth WHERE machine = $1 ORDER BY updated DESC, id DESC OFFSET $2)`, machine, journal.MaxRecords)
	}
}

// Records returns the ground truth of the type of machine, the oldest first.
func (s *Store) Records(ctx context.Context, machine string) ([]similarity.Record, error) {
	return collect(ctx, s, scanDocument(record.ParseRecord), "SELECT document FROM ground_truth WHERE machine = $1 OR $1 = '' ORDER BY updated, id", machine)
}

// RecordTypes returns the types of machine that there are records of, sorted.
func (s *Store) RecordTypes(ctx context.Context) ([]string, error) {
	return collect(ctx, s, scanText, "SELECT DISTINCT machine FROM ground_truth ORDER BY machine")
}

func scanText(row pgx.CollectableRow) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}
