package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/mattn/go-sqlite3"

	"github.com/tandem-tune/tandem/problem"
)

// maxGroup is how many changes share a commit at most.
const maxGroup = 256

// operation is one change and where its outcome goes.
type operation struct {
	run  func(*session) error
	done chan error
}

// writer is the one goroutine that writes. While it waits for the disk, further
// changes queue; they share the next commit and its fsync.
type writer struct {
	db      *sql.DB
	session *session
	queue   chan operation
	ended   chan struct{}
	fail    func(error)

	mutex   sync.RWMutex // guards stopped against sends on queue
	stopped bool
	failure error // set by the writer's goroutine only
}

func startWriter(db *sql.DB, fail func(error)) (*writer, error) {
	connection, err := db.Conn(context.Background())
	if err != nil {
		return nil, fmt.Errorf("open the writing connection: %w", err)
	}
	w := &writer{
		db: db, session: &session{connection: connection, statements: make(map[string]*sql.Stmt)},
		queue: make(chan operation, maxGroup), ended: make(chan struct{}), fail: fail,
	}
	go w.loop()
	return w, nil
}

// do runs the change in the next group and returns once it is durable or
// refused.
func (w *writer) do(ctx context.Context, run func(*session) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	one := operation{run: run, done: make(chan error, 1)}
	w.mutex.RLock()
	if w.stopped {
		w.mutex.RUnlock()
		return problem.New(problem.Unavailable, "the store is closed")
	}
	w.queue <- one
	w.mutex.RUnlock()
	return <-one.done
}

// stop ends the writer behind what is queued.
func (w *writer) stop() error {
	w.mutex.Lock()
	already := w.stopped
	w.stopped = true
	w.mutex.Unlock()
	if already {
		return nil
	}
	close(w.queue)
	<-w.ended
	return errors.Join(w.session.close(), w.db.Close())
}

func (w *writer) loop() {
	defer close(w.ended)
	for first := range w.queue {
		w.commit(w.gather(first))
	}
}

// gather takes what is queued already; it waits for nothing.
func (w *writer) gather(first operation) []operation {
	group := []operation{first}
	for len(group) < maxGroup {
		select {
		case next, open := <-w.queue:
			if !open {
				return group
			}
			group = append(group, next)
		default:
			return group
		}
	}
	return group
}

// commit runs a group in one transaction. A change that is refused is rolled
// back alone; a fault of the disk or the file fails the whole group.
func (w *writer) commit(group []operation) {
	outcomes, err := w.transact(group)
	if err != nil && w.failure == nil && fatal(err) {
		w.failure = problem.New(problem.Unavailable, "the database failed: %w", err)
		w.fail(w.failure)
	}
	for i, one := range group {
		switch {
		case err == nil:
			one.done <- outcomes[i]
		case w.failure != nil:
			one.done <- w.failure
		default:
			one.done <- problem.New(problem.Unavailable, "the database cannot be written now: %w", err)
		}
	}
}

func (w *writer) transact(group []operation) ([]error, error) {
	if w.failure != nil {
		return nil, w.failure
	}
	if err := w.session.exec("BEGIN IMMEDIATE"); err != nil {
		return nil, err
	}
	outcomes := make([]error, len(group))
	for i, one := range group {
		var err error
		if outcomes[i], err = w.session.attempt(one.run); err != nil {
			return nil, errors.Join(err, w.session.exec("ROLLBACK"))
		}
	}
	if err := w.session.exec("COMMIT"); err != nil {
		// SQLite may have ended the transaction itself; then this says so.
		return nil, errors.Join(err, w.session.exec("ROLLBACK"))
	}
	return outcomes, nil
}

// fatal reports whether the error means that the file can no longer be trusted
// with a write. A full disk or a long lock is not: the change is refused, and
// a later one may succeed.
func fatal(err error) bool {
	var fault sqlite3.Error
	if !errors.As(err, &fault) {
		return true
	}
	switch fault.Code {
	case sqlite3.ErrFull, sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrNomem:
		return false
	}
	return true
}

// session is the writing connection with its prepared statements.
type session struct {
	connection *sql.Conn
	statements map[string]*sql.Stmt
}

// attempt runs a change inside a savepoint. The first error is the change's own
// refusal, the second one a fault.
func (s *session) attempt(run func(*session) error) (refused, fault error) {
	if err := s.exec("SAVEPOINT change"); err != nil {
		return nil, err
	}
	refused = run(s)
	if refused != nil {
		var known *problem.Error
		if !errors.As(refused, &known) {
			return nil, refused
		}
		if err := s.exec("ROLLBACK TO change"); err != nil {
			return nil, err
		}
	}
	return refused, s.exec("RELEASE change")
}

// exec runs a statement, preparing it the first time.
func (s *session) exec(query string, args ...any) error {
	_, err := s.affect(query, args...)
	return err
}

// affect runs a statement and returns how many rows it changed.
func (s *session) affect(query string, args ...any) (int64, error) {
	statement, err := s.statement(query)
	if err != nil {
		return 0, err
	}
	result, err := statement.Exec(args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s *session) statement(query string) (*sql.Stmt, error) {
	if statement, ok := s.statements[query]; ok {
		return statement, nil
	}
	statement, err := s.connection.PrepareContext(context.Background(), query)
	if err == nil {
		s.statements[query] = statement
	}
	return statement, err
}

func (s *session) close() error {
	var failures []error
	for _, statement := range s.statements {
		failures = append(failures, statement.Close())
	}
	return errors.Join(append(failures, s.connection.Close())...)
}

// taken reports whether the error is a broken UNIQUE or PRIMARY KEY rule.
func taken(err error) bool {
	var fault sqlite3.Error
	return errors.As(err, &fault) &&
		(fault.ExtendedCode == sqlite3.ErrConstraintUnique || fault.ExtendedCode == sqlite3.ErrConstraintPrimaryKey)
}

// orphaned reports whether the error is a broken FOREIGN KEY rule.
func orphaned(err error) bool {
	var fault sqlite3.Error
	return errors.As(err, &fault) && fault.ExtendedCode == sqlite3.ErrConstraintForeignKey
}
