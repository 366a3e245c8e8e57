package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"

	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
)

// session is the connection that writes. Only the writer's goroutine uses it.
type session struct {
	connection *sql.Conn
	// server counts the servers that have opened this file; ours is the
	// newest as long as the file says the same.
	server int64
	// commits is the number of the transaction that is open, or was the last.
	commits int64
}

func openSession(ctx context.Context, database *sql.DB) (*session, error) {
	connection, err := database.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the connection that writes: %w", err)
	}
	s := &session{connection: connection}
	if err := s.takeOver(); err != nil {
		return nil, errors.Join(problem.New(problem.Unavailable, "take the database over: %w", err), connection.Close())
	}
	return s, nil
}

// takeOver makes this server the newest that has opened the file. The row comes back
// before it is written: only the end of a transaction of its own says whether it was.
func (s *session) takeOver() (err error) {
	if err := s.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if s.server, err = s.number("UPDATE server SET epoch = epoch + 1 RETURNING epoch"); err != nil {
		return err
	}
	return s.exec("COMMIT")
}

// stuckError is a transaction that could not be rolled back.
type stuckError struct{ error }

// transact runs the operations in one transaction and returns each one's own
// refusal. When it returns an error, nothing of them was written.
func (s *session) transact(group []change) ([]error, error) {
	outcomes, err := s.run(group)
	if err == nil {
		err = failpoint.Here(failpoint.StoreCommitting)
	}
	if err == nil {
		err = s.exec("COMMIT")
	}
	if err == nil {
		err = failpoint.Here(failpoint.StoreCommitted)
	}
	if err == nil {
		return outcomes, nil
	}
	// After some errors SQLite has ended the transaction itself.
	open, stateErr := s.inTransaction()
	if stateErr == nil && open {
		stateErr = s.exec("ROLLBACK")
	}
	if stateErr != nil {
		return nil, stuckError{errors.Join(err, stateErr)}
	}
	return nil, err
}

// run first makes the group as if nothing in it could be refused, which is
// nearly always so; else each change once more, by itself.
func (s *session) run(group []change) ([]error, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	for _, one := range group {
		if err := one(s); broken(err) {
			return nil, err
		} else if err != nil {
			return s.apart(group)
		}
	}
	return make([]error, len(group)), nil
}

// apart runs each change of the group in a savepoint of its own, from the start.
func (s *session) apart(group []change) ([]error, error) {
	if err := s.exec("ROLLBACK"); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	outcomes := make([]error, len(group))
	for i, one := range group {
		var err error
		if outcomes[i], err = s.attempt(one); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// begin begins a transaction and numbers it, unless the file has got another
// server.
func (s *session) begin() error {
	if err := s.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := s.row("UPDATE server SET commits = commits + 1 WHERE epoch = ? RETURNING commits", []any{s.server}, &s.commits)
	if errors.Is(err, sql.ErrNoRows) {
		return errors.New("another server has opened it, although this one still ran")
	}
	return err
}

// attempt runs one change inside a savepoint. The first error is the change's
// own, after which the others go on; the second one ends the transaction.
func (s *session) attempt(run func(*session) error) (refused, fault error) {
	if err := s.exec("SAVEPOINT change"); err != nil {
		return nil, err
	}
	refused = run(s)
	if broken(refused) {
		return nil, refused
	}
	if refused != nil {
		if err := s.exec("ROLLBACK TO change"); err != nil {
			return nil, err
		}
	}
	return refused, s.exec("RELEASE change")
}

// broken reports whether an error is the database's, not the change's.
func broken(err error) bool {
	var driver sqlite3.Error
	return errors.As(err, &driver) && dbfile.Weigh(driver) != dbfile.Defect
}

// exec runs a statement; the driver keeps it prepared.
func (s *session) exec(query string, args ...any) error {
	_, err := s.connection.ExecContext(context.Background(), query, args...)
	return err
}

// affect runs a statement and returns how many rows it changed.
func (s *session) affect(query string, args ...any) (int64, error) {
	result, err := s.connection.ExecContext(context.Background(), query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row reads one row; sql.ErrNoRows if there is none.
func (s *session) row(query string, args []any, into ...any) error {
	return s.connection.QueryRowContext(context.Background(), query, args...).Scan(into...)
}

// number reads one integer.
func (s *session) number(query string, args ...any) (int64, error) {
	var number int64
	err := s.row(query, args, &number)
	return number, err
}

func (s *session) inTransaction() (open bool, err error) {
	err = s.connection.Raw(func(driver any) error {
		connection, ok := driver.(*sqlite3.SQLiteConn)
		if !ok {
			return fmt.Errorf("the driver's connection is a %T", driver)
		}
		open = !connection.AutoCommit()
		return nil
	})
	return open, err
}

func (s *session) close() error { return s.connection.Close() }
