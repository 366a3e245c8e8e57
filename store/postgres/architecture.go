package postgres

import (
	"context"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
)

func (e encoded) writeArchitectures(s *session) {
	for i, one := range e.change.Architectures {
		s.do(fine, `INSERT INTO architecture (key, seen, document) VALUES ($1, $2, $3)
			ON CONFLICT (key) DO UPDATE SET seen = excluded.seen, document = excluded.document`,
			one.Key, record.FormatTime(one.Seen), e.documents.Architectures[i])
	}
	if len(e.change.Architectures) > 0 {
		s.do(fine, "DELETE FROM architecture WHERE key IN (SELECT key FROM architecture ORDER BY seen DESC, key DESC OFFSET $1)", journal.MaxArchitectures)
	}
}

// Architecture returns the architecture with the key.
func (s *Store) Architecture(ctx context.Context, key string) (emu.Architecture, error) {
	found, err := collect(ctx, s, scanDocument(record.ParseArchitecture), "SELECT document FROM architecture WHERE key = $1", key)
	return only(found, err, record.NoArchitecture(key))
}

// Architectures returns up to limit of them, the newest first.
func (s *Store) Architectures(ctx context.Context, limit int) ([]emu.Architecture, error) {
	return collect(ctx, s, scanDocument(record.ParseArchitecture), "SELECT document FROM architecture ORDER BY seen DESC, key DESC LIMIT $1", max(limit, 0))
}
