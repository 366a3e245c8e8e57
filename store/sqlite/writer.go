package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"github.com/mattn/go-sqlite3"

	"github.com/tandem-tune/tandem/store/group"
	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
)

// change is something to write, in a transaction it shares with others.
type change func(*session) error

// writer is the one goroutine that writes. While it waits for the disk, further
// changes queue; they share the next commit and its fsync.
type writer struct {
	*group.Writer[change]
	database *sql.DB
	session  *session
	health   *dbfile.Health
	// acknowledged gets the number of each commit before its callers hear of it.
	acknowledged dbfile.Acknowledged
	checkpoints  checkpoints

	changes, refused, commits atomic.Int64
}

func startWriter(ctx context.Context, database *sql.DB, path string, health *dbfile.Health) (*writer, error) {
	session, err := openSession(ctx, database)
	if err != nil {
		return nil, err
	}
	acknowledged, err := dbfile.OpenAcknowledged(path)
	if err != nil {
		return nil, errors.Join(err, session.close())
	}
	w := &writer{database: database, session: session, health: health, acknowledged: acknowledged}
	w.Writer = group.Start(w.commit, w.copyLog)
	return w, nil
}

// close empties the log into the database and closes the stopped writer's
// connection.
func (w *writer) close() error {
	var err error
	if w.health.Err() == nil {
		err = w.health.Explain(w.session.empty())
	}
	return errors.Join(err, w.session.close(), w.database.Close(), w.acknowledged.Close())
}

// commit runs a group in one transaction and returns the outcome of each. A
// change that is refused is rolled back alone; a failure of the transaction
// fails them all.
func (w *writer) commit(group []change) []error {
	outcomes := make([]error, len(group))
	err := w.health.Err()
	if err == nil {
		outcomes, err = w.session.transact(group)
		err = w.judge(err)
	}
	if err != nil {
		outcomes = make([]error, len(group))
		for i := range outcomes {
			outcomes[i] = err
		}
		return w.health.Committed(outcomes)
	}
	w.acknowledged.Write(w.session.commits)
	for i, refusal := range outcomes {
		if refusal == nil {
			w.changes.Add(1)
		} else {
			w.refused.Add(1)
		}
		outcomes[i] = w.health.Explain(refusal)
	}
	w.commits.Add(1)
	return w.health.Committed(outcomes)
}

// copyLog copies the log into the database when it is time, behind a group
// whose callers have been answered.
func (w *writer) copyLog() {
	if w.health.Err() == nil {
		// The changes are durable already. Whatever keeps the log from being
		// copied and is not fatal will be met again.
		_ = w.health.Explain(w.checkpoints.run(w.session))
	}
}

// judge explains a transaction's failure. One that is unknown to us, or after
// which the transaction is still open, is fatal.
func (w *writer) judge(err error) error {
	var fault sqlite3.Error
	var stuck stuckError
	if err != nil && (errors.As(err, &stuck) || !errors.As(err, &fault)) {
		return w.health.Fail(err)
	}
	return w.health.Explain(err)
}
