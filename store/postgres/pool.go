package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
)

func (e encoded) writePool(s *session) {
	for _, one := range e.change.Pool {
		if len(one.Document) == 0 {
			s.do(fine, "DELETE FROM pool_entry WHERE kind = $1 AND name = $2", one.Kind, one.Name)
			continue
		}
		s.do(fine, `INSERT INTO pool_entry (kind, name, document) VALUES ($1, $2, $3)
			ON CONFLICT (kind, name) DO UPDATE SET document = excluded.document`, one.Kind, one.Name, string(one.Document))
	}
}

// PoolEntries returns all entries of the kind, by name.
func (s *Store) PoolEntries(ctx context.Context, kind string) ([]journal.PoolEntry, error) {
	return collect(ctx, s, scanPoolEntry, "SELECT kind, name, document FROM pool_entry WHERE kind = $1 ORDER BY name", kind)
}

func scanPoolEntry(row pgx.CollectableRow) (journal.PoolEntry, error) {
	var one journal.PoolEntry
	var document string
	err := row.Scan(&one.Kind, &one.Name, &document)
	one.Document = record.RawOrNil(document)
	return one, err
}
