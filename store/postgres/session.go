package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/record"
)

// session is one transaction that writes. Statements are gathered and sent
// together, and what their results mean is looked at then: a group of changes
// costs a few round trips, however many statements it has.
type session struct {
	ctx        context.Context
	connection *pgx.Conn
	batch      *pgx.Batch
	judges     []judge // of the statements in the batch
}

// judge takes the result of one statement and says what is wrong with it.
type judge func(pgx.BatchResults) error

// most is about how many statements are sent together at most.
const most = 500

// do adds a statement to those that are sent next.
func (s *session) do(judge judge, query string, args ...any) {
	s.batch.Queue(query, texts(args)...)
	s.judges = append(s.judges, judge)
}

// drop forgets what was not sent.
func (s *session) drop() { s.batch, s.judges = &pgx.Batch{}, nil }

// flush sends the statements and judges their results. Behind an error the
// transaction can only be rolled back.
func (s *session) flush() error {
	if len(s.judges) == 0 {
		return nil
	}
	batch, judges := s.batch, s.judges
	s.drop()
	results := s.connection.SendBatch(s.ctx, batch)
	for _, judge := range judges {
		if err := judge(results); err != nil {
			_ = results.Close() // it says the same once more, or what came of it
			return err
		}
	}
	return results.Close()
}

// row sends what is gathered and then reads one row; pgx.ErrNoRows if there is
// none.
func (s *session) row(query string, args []any, into ...any) error {
	if err := s.flush(); err != nil {
		return err
	}
	return s.connection.QueryRow(s.ctx, query, texts(args)...).Scan(into...)
}

// group runs the changes behind the fence: first as if nothing in them could be
// refused, which is nearly always so; else each once more, by itself. outcomes
// gets the refusal of each.
func (s *session) group(group []change, outcomes []error, fence func(*session)) error {
	err := s.together(group, fence)
	if err == nil || broken(err) {
		return err
	}
	s.drop()
	if _, err := s.connection.Exec(s.ctx, "rollback"); err != nil {
		return err
	}
	s.do(fine, "begin")
	fence(s)
	if err := s.flush(); err != nil {
		return err
	}
	for i, one := range group {
		if outcomes[i], err = s.attempt(one); err != nil {
			return err
		}
	}
	return s.flush()
}

func (s *session) together(group []change, fence func(*session)) error {
	s.do(fine, "begin")
	fence(s)
	for _, one := range group {
		if err := one(s); err != nil {
			return err
		}
		if len(s.judges) > most {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return s.flush()
}

// attempt runs one change inside a savepoint. The first error is the change's
// own, after which the others go on; the second one ends the transaction.
func (s *session) attempt(one change) (own, fault error) {
	s.do(fine, "savepoint change")
	own = one(s)
	if own == nil {
		own = s.flush()
	}
	switch {
	case own == nil:
		s.do(fine, "release savepoint change")
		return nil, nil
	case broken(own):
		return nil, own
	}
	s.drop()
	s.do(fine, "rollback to savepoint change")
	return own, s.flush()
}

// rollback gives the transaction up. If that fails, the connection is closed,
// which has the same effect.
func (s *session) rollback() {
	if s.connection.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pingTime)
	defer cancel()
	if _, err := s.connection.Exec(ctx, "rollback"); err != nil {
		_ = s.connection.Close(ctx)
	}
}

// broken reports whether an error is the transaction's, not the change's.
func broken(err error) bool {
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return false
	}
	var fault *pgconn.PgError
	return !errors.As(err, &fault) || weigh(fault) != defect
}

// fine takes any result but an error.
func fine(results pgx.BatchResults) error {
	_, err := results.Exec()
	return err
}

// unless says what it means that a row is there already, or that the one it
// belongs to is not; nil: that this cannot be.
func unless(there, missing error) judge {
	return func(results pgx.BatchResults) error {
		_, err := results.Exec()
		switch {
		case there != nil && taken(err):
			return there
		case missing != nil && orphan(err):
			return missing
		}
		return err
	}
}

// touching says what it means that no row was changed.
func touching(missing func() error) judge {
	return func(results pgx.BatchResults) error {
		tag, err := results.Exec()
		if err == nil && tag.RowsAffected() == 0 {
			return missing()
		}
		return err
	}
}

// texts is the arguments with their texts as PostgreSQL can hold them: it
// refuses bytes that are no UTF-8, and NUL.
func texts(args []any) []any {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = record.Text(text)
		}
	}
	return args
}
