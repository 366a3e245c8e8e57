package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/internal/problem"
)

// change is something to write, in a transaction it shares with others.
type change func(*session) error

// doubtPause is how long to wait before another look at an outcome in doubt.
const doubtPause = 100 * time.Millisecond

// commit makes a group durable in one transaction and returns the outcome of
// each change. A change that is refused is rolled back alone; a failure of the
// transaction fails them all.
func (s *Store) commit(group []change) []error {
	outcomes := make([]error, len(group))
	err := s.Err()
	if err == nil {
		outcomes, err = s.transact(group, outcomes)
		if lost(err) { // a connection of the pool was dead: nothing was committed
			outcomes, err = s.transact(group, make([]error, len(group)))
		}
		err = s.health.explain(err)
	}
	for i := range group {
		if err != nil {
			outcomes[i] = err
		} else {
			outcomes[i] = s.health.explain(outcomes[i])
		}
	}
	return s.health.Committed(outcomes)
}

// transact runs the group in one transaction and fills in each change's own
// refusal. When it returns an error, nothing of them was written; one that
// lost says nothing of the kind was sent to be committed.
func (s *Store) transact(group []change, outcomes []error) ([]error, error) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	connection, err := s.database.writes.Acquire(ctx)
	if err != nil {
		return outcomes, late(ctx, err)
	}
	defer connection.Release() // it is closed there unless its transaction has ended
	s.written++
	number := s.written
	run := session{ctx: ctx, connection: connection.Conn(), batch: &pgx.Batch{}}
	if err = run.group(group, outcomes, s.fence(number)); err == nil {
		err = failpoint.Here(failpoint.StoreCommitting)
	}
	if err != nil {
		run.rollback()
		return outcomes, late(ctx, err)
	}
	tag, err := run.connection.Exec(ctx, "commit")
	if err == nil {
		err = failpoint.Here(failpoint.StoreCommitted) // an error there is an answer that was lost
	}
	switch {
	case err == nil && tag.String() == "COMMIT":
		return outcomes, nil
	case err == nil:
		return outcomes, problem.New(problem.Internal, "the database answered %q to a commit", tag)
	case refused(err):
		return outcomes, late(ctx, err)
	}
	return outcomes, s.settle(number, err)
}

// late says in other words that our own patience ended, which is nothing the
// caller did.
func late(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return problem.New(problem.Unavailable, "the database did not answer in time: %v; try again", err)
	}
	return err
}

// fence is the statement by which a transaction makes sure of the term, and by
// which its outcome can be looked up. A guest has none.
func (s *Store) fence(number int64) func(*session) {
	return func(run *session) {
		if s.term.number == 0 {
			return
		}
		run.do(touching(s.term.depose), "UPDATE owner SET written = $1 WHERE term = $2", number, s.term.number)
	}
}

// refused reports whether a commit failed for sure.
func refused(err error) bool {
	var fault *pgconn.PgError
	return errors.As(err, &fault) && fault.SeverityUnlocalized == "ERROR"
}

// settle finds out what became of a commit that was not answered: it looks
// whether the transaction's number is in the owner's row, on another
// connection. It ends with the term, at the latest.
func (s *Store) settle(number int64, cause error) error {
	if s.term.number == 0 {
		return problem.New(problem.Unavailable, "the database did not say whether this was stored (%v): look before you try again", cause)
	}
	for {
		written, err := s.newest()
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return s.term.depose()
		case err == nil && written == number:
			return nil
		case err == nil:
			return problem.New(problem.Unavailable, "the database was lost before this was stored (%v): try again", cause)
		}
		if err := s.Err(); err != nil {
			return err
		}
		time.Sleep(doubtPause)
	}
}

// newest is the number of the term's newest transaction. It waits for one that
// is still about to end.
func (s *Store) newest() (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	var written int64
	err := s.database.writes.QueryRow(ctx, "SELECT written FROM owner WHERE term = $1 FOR UPDATE", s.term.number).Scan(&written)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("look what became of a commit: %w", err)
	}
	return written, err
}
