package sqlite

import (
	"context"
	"database/sql"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/web/auth"
)

// InsertToken adds a token; an id that is taken is a conflict.
func (s *Store) InsertToken(ctx context.Context, token auth.Token) error {
	return s.writer.do(ctx, func(session *session) error {
		err := session.exec("INSERT INTO token (id, name, scope, hash, created, expires) VALUES (?, ?, ?, ?, ?, ?)",
			token.ID, token.Name, string(token.Scope), token.Hash[:], token.Created.UnixNano(), nanoseconds(token.Expires))
		return refusal(err, "the token id", token.ID)
	})
}

const tokenColumns = "SELECT id, name, scope, hash, created, expires FROM token "

// Token finds a token by id.
func (s *Store) Token(ctx context.Context, id string) (auth.Token, error) {
	found, err := collect(ctx, s, scanToken, tokenColumns+"WHERE id = ?", id)
	return only(found, err, "there is no token %q", id)
}

// Tokens lists all tokens, the oldest first.
func (s *Store) Tokens(ctx context.Context) ([]auth.Token, error) {
	return collect(ctx, s, scanToken, tokenColumns+"ORDER BY created, id")
}

// DeleteToken removes a token.
func (s *Store) DeleteToken(ctx context.Context, id string) error {
	return s.writer.do(ctx, func(session *session) error {
		rows, err := session.affect("DELETE FROM token WHERE id = ?", id)
		if err == nil && rows == 0 {
			return problem.New(problem.NotFound, "there is no token %q", id)
		}
		return err
	})
}

func scanToken(row *sql.Rows) (auth.Token, error) {
	var one auth.Token
	var hash []byte
	var created int64
	var expires sql.NullInt64
	err := row.Scan(&one.ID, &one.Name, &one.Scope, &hash, &created, &expires)
	copy(one.Hash[:], hash)
	one.Created, one.Expires = moment(created), optional(expires)
	return one, err
}
