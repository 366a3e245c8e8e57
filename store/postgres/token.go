package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/web/auth"
)

// InsertToken adds a token; an id that is taken is a conflict.
func (s *Store) InsertToken(ctx context.Context, token auth.Token) error {
	return s.writer.Do(ctx, func(run *session) error {
		run.do(unless(record.TokenTaken(token.ID), nil),
			"INSERT INTO token (id, name, scope, hash, created, expires) VALUES ($1, $2, $3, $4, $5, $6)",
			token.ID, token.Name, string(token.Scope), token.Hash[:], record.FormatTime(token.Created), formatOptional(token.Expires))
		return nil
	})
}

const selectToken = "SELECT id, name, scope, hash, created, expires FROM token "

// Token finds a token by id.
func (s *Store) Token(ctx context.Context, id string) (auth.Token, error) {
	found, err := collect(ctx, s, scanToken, selectToken+"WHERE id = $1", id)
	return only(found, err, record.NoToken(id))
}

// Tokens lists all tokens, the oldest first.
func (s *Store) Tokens(ctx context.Context) ([]auth.Token, error) {
	return collect(ctx, s, scanToken, selectToken+"ORDER BY created, position")
}

// DeleteToken removes a token.
func (s *Store) DeleteToken(ctx context.Context, id string) error {
	return s.writer.Do(ctx, func(run *session) error {
		run.do(touching(func() error { return record.NoToken(id) }), "DELETE FROM token WHERE id = $1", id)
		return nil
	})
}

func scanToken(row pgx.CollectableRow) (auth.Token, error) {
	var one auth.Token
	var hash []byte
	var scope, created string
	var expires *string
	err := row.Scan(&one.ID, &one.Name, &scope, &hash, &created, &expires)
	if err != nil {
		return one, err
	}
	one.Scope = auth.Scope(scope)
	if copy(one.Hash[:], hash) != len(one.Hash) || len(hash) != len(one.Hash) {
		return one, fmt.Errorf("the stored hash of token %s is damaged", one.ID)
	}
	if one.Created, err = record.ParseTime(created); err != nil {
		return one, err
	}
	one.Expires, err = parseOptional(expires)
	return one, err
}
