package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
	"github.com/tandem-tune/tandem/study/access"
)

// InsertToken adds a token; an id that is taken is a conflict.
func (s *Store) InsertToken(ctx context.Context, token access.Token) error {
	return s.writer.Do(ctx, func(session *session) error {
		// The position is part of the checksum, so it is not left to SQLite.
		position, err := session.number("SELECT coalesce(max(position), 0) + 1 FROM token")
		if err != nil {
			return err
		}
		err = session.exec("INSERT INTO token (position, id, name, scope, worker, hash, created, expires, used, study, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			dbfile.Row("token", position, token.ID, token.Name, string(token.Scope), token.Worker, token.Hash[:], record.FormatTime(token.Created),
				formatOptional(token.Expires), formatOptional(token.Used), token.Subject)...)
		if dbfile.Taken(err) {
			return record.TokenTaken(token.ID)
		}
		return err
	})
}

const selectToken = "SELECT position, id, name, scope, worker, hash, created, expires, used, study, checksum FROM token "

// Token finds a token by id. That there is none is not looked into, as anybody
// may ask: Open has checked that every token is found.
func (s *Store) Token(ctx context.Context, id string) (access.Token, error) {
	return look(ctx, s, func(v view) (access.Token, error) {
		found, err := collect(v, proven(scanToken), selectToken+"WHERE id = ?", id)
		is := func(one access.Token) bool { return one.ID == id }
		return only(found, err, is, func() error { return record.NoToken(id) })
	})
}

// Tokens lists all tokens, the oldest first.
func (s *Store) Tokens(ctx context.Context) ([]access.Token, error) {
	return look(ctx, s, func(v view) ([]access.Token, error) {
		return whole(v, scanToken, list{kind: "token"}, selectToken+"ORDER BY created, position")
	})
}

// intact holds for a token that is what was written: what is changed of another
// one must not make it look so.
const intact = " AND checksum = row_checksum('token', position, id, name, scope, worker, hash, created, expires, used, study)"

// BindToken makes a token the machine's that belongs to none.
func (s *Store) BindToken(ctx context.Context, id, worker string) error {
	return s.writer.Do(ctx, func(session *session) error {
		rows, err := session.affect(`UPDATE token
			SET worker = ?1, checksum = row_checksum('token', position, id, name, scope, ?1, hash, created, expires, used, study)
			WHERE id = ?2 AND worker IN ('', ?1)`+intact, worker, id)
		if err != nil || rows > 0 {
			return err
		}
		var present string
		err = session.row("SELECT worker FROM token WHERE id = ?", []any{id}, &present)
		if errors.Is(err, sql.ErrNoRows) {
			return record.NoToken(id)
		}
		if err != nil {
			return err
		}
		return record.TokenBound(id, present)
	})
}

// UseToken notes when a token was last used.
func (s *Store) UseToken(ctx context.Context, id string, at time.Time) error {
	return s.writer.Do(ctx, func(session *session) error {
		rows, err := session.affect(`UPDATE token
			SET used = ?1, checksum = row_checksum('token', position, id, name, scope, worker, hash, created, expires, ?1, study)
			WHERE id = ?2 AND coalesce(used, '') < ?1`+intact, record.FormatTime(at), id)
		if err != nil || rows > 0 {
			return err
		}
		known, err := session.number("SELECT count(*) FROM token WHERE id = ?", id)
		if err == nil && known == 0 {
			return record.NoToken(id)
		}
		return err
	})
}

// DeleteToken removes a token.
func (s *Store) DeleteToken(ctx context.Context, id string) error {
	return s.writer.Do(ctx, func(session *session) error {
		rows, err := session.affect("DELETE FROM token WHERE id = ?", id)
		if err == nil && rows == 0 {
			return record.NoToken(id)
		}
		return err
	})
}

func scanToken(rows *sql.Rows) (one access.Token, sum int64, err error) {
	var position int64
	var r record.TokenRow
	if err = dbfile.Columns("token", rows, &position, &one.ID, &one.Name, &r.Scope, &one.Worker, &r.Hash, &r.Created, &r.Expires, &r.Used, &one.Subject, &sum); err != nil {
		return one, sum, err
	}
	computed := dbfile.Checksum("token", position, one.ID, one.Name, r.Scope, one.Worker, r.Hash, r.Created, textOrNil(r.Expires), textOrNil(r.Used), one.Subject)
	if err = dbfile.Prove("token", sum, computed, one.ID); err != nil {
		return one, sum, err
	}
	if err = r.Fill(&one); err != nil {
		err = dbfile.Damage{Table: "token", Row: one.ID, Finding: err.Error()}
	}
	return one, sum, err
}
