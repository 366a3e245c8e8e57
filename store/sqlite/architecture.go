package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
	"github.com/tandem-tune/tandem/study/journal"
)

func (e encoded) writeArchitectures(s *session) error {
	for _, row := range e.architectures {
		if err := s.exec(`INSERT INTO architecture (key, seen, document, checksum) VALUES (?, ?, ?, ?)
			ON CONFLICT (key) DO UPDATE SET seen = excluded.seen, document = excluded.document, checksum = excluded.checksum`, row...); err != nil {
			return err
		}
	}
	if len(e.architectures) == 0 {
		return nil
	}
	return s.exec("DELETE FROM architecture WHERE key IN (SELECT key FROM architecture ORDER BY seen DESC, key DESC LIMIT -1 OFFSET ?)", journal.MaxArchitectures)
}

func architectureRow(a emu.Architecture, document string) []any {
	return dbfile.Row("architecture", a.Key, record.FormatTime(a.Seen), document)
}

const selectArchitecture = "SELECT key, seen, document, checksum FROM architecture "

// Architecture returns the architecture with the key.
func (s *Store) Architecture(ctx context.Context, key string) (emu.Architecture, error) {
	return look(ctx, s, func(v view) (emu.Architecture, error) {
		found, err := collect(v, proven(scanArchitecture), selectArchitecture+"WHERE key = ?", key)
		is := func(one emu.Architecture) bool { return one.Key == key }
		return only(found, err, is, func() error {
			return v.missing(absence{
				table: "architecture", key: key, missing: record.NoArchitecture(key),
				count: "SELECT count(*), coalesce(sum(key = ?), 0) FROM architecture NOT INDEXED",
			})
		})
	})
}

// Architectures returns up to limit of them, the newest first.
func (s *Store) Architectures(ctx context.Context, limit int) ([]emu.Architecture, error) {
	return look(ctx, s, func(v view) ([]emu.Architecture, error) {
		page, err := collect(v, proven(scanArchitecture), selectArchitecture+"ORDER BY seen DESC, key DESC LIMIT max(?, 0)", limit)
		if err != nil {
			return nil, err
		}
		// The index orders them; the table itself must say the same.
		keys, err := collect(v, scanText, "SELECT key FROM architecture NOT INDEXED ORDER BY seen DESC, key DESC")
		if err != nil {
			return nil, err
		}
		written, err := v.tally(list{kind: "architecture"})
		same := slices.EqualFunc(page, keys[:min(len(keys), max(limit, 0))], func(one emu.Architecture, key string) bool { return one.Key == key })
		if err == nil && (!same || int64(len(keys)) != written.entries) {
			err = dbfile.Damage{Table: "architecture", Row: "the list of all", Finding: "its index finds other rows than are there"}
		}
		return page, err
	})
}

func scanArchitecture(rows *sql.Rows) (one emu.Architecture, sum int64, err error) {
	var key, seen, document string
	if err = dbfile.Columns("architecture", rows, &key, &seen, &document, &sum); err != nil {
		return one, sum, err
	}
	if err = dbfile.Prove("architecture", sum, dbfile.Checksum("architecture", key, seen, document), key); err != nil {
		return one, sum, err
	}
	one, err = record.ParseArchitecture(document)
	return one, sum, err
}
