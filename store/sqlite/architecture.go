package sqlite

import (
	"context"
	"database/sql"

	"github.com/tandem-tune/tandem/edge"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study"
)

func (e encoded) writeArchitectures(s *session) error {
	for i, one := range e.change.Architectures {
		if err := s.exec("INSERT OR REPLACE INTO architecture (key, seen, document) VALUES (?, ?, ?)",
			one.Key, record.FormatTime(one.Seen), e.architectures[i]); err != nil {
			return err
		}
	}
	if len(e.architectures) == 0 {
		return nil
	}
	return s.exec("DELETE FROM architecture WHERE key IN (SELECT key FROM architecture ORDER BY seen DESC, key DESC LIMIT -1 OFFSET ?)", study.MaxArchitectures)
}

// Architecture returns the architecture with the key.
func (s *Store) Architecture(ctx context.Context, key string) (edge.Architecture, error) {
	found, err := collect(ctx, s, scanArchitecture, "SELECT document FROM architecture WHERE key = ?", key)
	return only(found, err, record.NoArchitecture(key))
}

// Architectures returns up to limit of them, the newest first.
func (s *Store) Architectures(ctx context.Context, limit int) ([]edge.Architecture, error) {
	return collect(ctx, s, scanArchitecture, "SELECT document FROM architecture ORDER BY seen DESC, key DESC LIMIT max(?, 0)", limit)
}

func scanArchitecture(row *sql.Rows) (edge.Architecture, error) {
	document, err := scanText(row)
	if err != nil {
		return edge.Architecture{}, err
	}
	return record.ParseArchitecture(document)
}
