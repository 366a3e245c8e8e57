package sqlite

import (
	"context"
	"database/sql"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
	"github.com/tandem-tune/tandem/study/journal"
)

func (e encoded) writePool(s *session) error {
	for i, one := range e.change.Pool {
		err := error(nil)
		if len(one.Document) == 0 {
			err = s.exec("DELETE FROM pool_entry WHERE kind = ? AND name = ?", one.Kind, one.Name)
		} else {
			err = s.exec(`INSERT INTO pool_entry (kind, name, document, checksum) VALUES (?, ?, ?, ?)
				ON CONFLICT (kind, name) DO UPDATE SET document = excluded.document, checksum = excluded.checksum`, e.pool[i]...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func poolRow(one journal.PoolEntry, _ string) []any {
	return dbfile.Row("pool_entry", one.Kind, one.Name, string(one.Document))
}

// PoolEntries returns all entries of the kind, by name.
func (s *Store) PoolEntries(ctx context.Context, kind string) ([]journal.PoolEntry, error) {
	return look(ctx, s, func(v view) ([]journal.PoolEntry, error) {
		return whole(v, scanPoolEntry, list{kind: "pool_entry", owner: kind},
			"SELECT kind, name, document, checksum FROM pool_entry WHERE kind = ? ORDER BY name", kind)
	})
}

func scanPoolEntry(rows *sql.Rows) (one journal.PoolEntry, sum int64, err error) {
	var document string
	if err = dbfile.Columns("pool_entry", rows, &one.Kind, &one.Name, &document, &sum); err != nil {
		return one, sum, err
	}
	one.Document = record.RawOrNil(document)
	return one, sum, dbfile.Prove("pool_entry", sum, dbfile.Checksum("pool_entry", one.Kind, one.Name, document), one.Kind, " ", one.Name)
}
