package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/web/auth"
)

// InsertToken adds a token; an id that is taken is a conflict.
func (s *Store) InsertToken(ctx context.Context, token auth.Token) error {
	return s.writer.do(ctx, func(session *session) error {
		err := session.exec("INSERT INTO token (id, name, scope, hash, created, expires) VALUES (?, ?, ?, ?, ?, ?)",
			token.ID, token.Name, string(token.Scope), token.Hash[:], record.FormatTime(token.Created), formatOptional(token.Expires))
		if taken(err) {
			return record.TokenTaken(token.ID)
		}
		return err
	})
}

const selectToken = "SELECT id, name, scope, hash, created, expires FROM token "

// Token finds a token by id.
func (s *Store) Token(ctx context.Context, id string) (auth.Token, error) {
	found, err := collect(ctx, s, scanToken, selectToken+"WHERE id = ?", id)
	return only(found, err, record.NoToken(id))
}

// Tokens lists all tokens, the oldest first.
func (s *Store) Tokens(ctx context.Context) ([]auth.Token, error) {
	return collect(ctx, s, scanToken, selectToken+"ORDER BY created, position")
}

// DeleteToken removes a token.
func (s *Store) DeleteToken(ctx context.Context, id string) error {
	return s.writer.do(ctx, func(session *session) error {
		rows, err := session.affect("DELETE FROM token WHERE id = ?", id)
		if err == nil && rows == 0 {
			return record.NoToken(id)
		}
		return err
	})
}

func scanToken(row *sql.Rows) (auth.Token, error) {
	var one auth.Token
	var hash []byte
	var created string
	var expires sql.NullString
	err := row.Scan(&one.ID, &one.Name, &one.Scope, &hash, &created, &expires)
	if err != nil {
		return one, err
	}
	if copy(one.Hash[:], hash) != len(one.Hash) || len(hash) != len(one.Hash) {
		return one, fmt.Errorf("the stored hash of token %s is damaged", one.ID)
	}
	if one.Created, err = record.ParseTime(created); err != nil {
		return one, err
	}
	one.Expires, err = parseOptional(expires)
	return one, err
}
