package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/access"
)

// InsertToken adds a token; an id that is taken is a conflict.
func (s *Store) InsertToken(ctx context.Context, token access.Token) error {
	return s.writer.Do(ctx, func(run *session) error {
		run.do(unless(record.TokenTaken(token.ID), nil),
			"INSERT INTO token (id, name, scope, worker, hash, created, expires, used, study) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
			token.ID, token.Name, string(token.Scope), token.Worker, token.Hash[:], record.FormatTime(token.Created), formatOptional(token.Expires), formatOptional(token.Used), token.Subject)
		return nil
	})
}

const selectToken = "SELECT id, name, scope, worker, hash, created, expires, used, study FROM token "

// Token finds a token by id.
func (s *Store) Token(ctx context.Context, id string) (access.Token, error) {
	found, err := collect(ctx, s, scanToken, selectToken+"WHERE id = $1", id)
	return only(found, err, record.NoToken(id))
}

// Tokens lists all tokens, the oldest first.
func (s *Store) Tokens(ctx context.Context) ([]access.Token, error) {
	return collect(ctx, s, scanToken, selectToken+"ORDER BY created, position")
}

// BindToken makes a token the machine's that belongs to none.
func (s *Store) BindToken(ctx context.Context, id, worker string) error {
	return s.writer.Do(ctx, func(run *session) error {
		run.do(func(results pgx.BatchResults) error {
			var present *string
			var written bool
			switch err := results.QueryRow().Scan(&present, &written); {
			case err != nil:
				return err
			case present == nil:
				return record.NoToken(id)
			case !written:
				return record.TokenBound(id, *present)
			}
			return nil
		}, `WITH written AS (UPDATE token SET worker = $1 WHERE id = $2 AND worker IN ('', $1) RETURNING 1)
			SELECT (SELECT worker FROM token WHERE id = $2), EXISTS (SELECT 1 FROM written)`, worker, id)
		return nil
	})
}

// UseToken notes when a token was last used.
func (s *Store) UseToken(ctx context.Context, id string, at time.Time) error {
	return s.writer.Do(ctx, func(run *session) error {
		run.do(touching(func() error { return record.NoToken(id) }),
			"UPDATE token SET used = greatest(coalesce(used, ''), $1) WHERE id = $2", record.FormatTime(at), id)
		return nil
	})
}

// DeleteToken removes a token.
func (s *Store) DeleteToken(ctx context.Context, id string) error {
	return s.writer.Do(ctx, func(run *session) error {
		run.do(touching(func() error { return record.NoToken(id) }), "DELETE FROM token WHERE id = $1", id)
		return nil
	})
}

func scanToken(row pgx.CollectableRow) (access.Token, error) {
	var one access.Token
	var r record.TokenRow
	err := row.Scan(&one.ID, &one.Name, &r.Scope, &one.Worker, &r.Hash, &r.Created, &r.Expires, &r.Used, &one.Subject)
	if err != nil {
		return one, err
	}
	err = r.Fill(&one)
	return one, err
}
