package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mattn/go-sqlite3"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/study"
)

// maxGroup is how many changes share a commit at most.
const maxGroup = 256

// Statistics is what the writer has done since the store was opened.
type Statistics struct {
	// Changes were made durable, Refused were turned down for a reason of
	// their own (a conflict, a lost lease).
	Changes, Refused int64
	// Commits is how many transactions the changes took.
	Commits int64
	// Waiting is how many changes are queued or being written now.
	Waiting int64
	// Checkpoints is how often the log was copied into the database.
	Checkpoints int64
}

// operation is one change and where its outcome goes.
type operation struct {
	run     func(*session) error
	outcome *study.Outcome
}

// writer is the one goroutine that writes. While it waits for the disk, further
// changes queue; they share the next commit and its fsync.
type writer struct {
	database *sql.DB
	session  *session
	health   *health
	// acknowledged gets the number of each commit before its callers hear of it.
	acknowledged acknowledged
	checkpoints  checkpoints
	queue        chan operation
	ended        chan struct{}

	mutex   sync.RWMutex // guards stopped against sends on queue
	stopped bool

	changes, refused, commits, waiting atomic.Int64
}

func startWriter(ctx context.Context, database *sql.DB, path string, health *health) (*writer, error) {
	session, err := openSession(ctx, database)
	if err != nil {
		return nil, err
	}
	acknowledged, err := openAcknowledged(path)
	if err != nil {
		return nil, errors.Join(err, session.close())
	}
	w := &writer{
		database: database, session: session, health: health, acknowledged: acknowledged,
		queue: make(chan operation, maxGroup), ended: make(chan struct{}),
	}
	go w.loop()
	return w, nil
}

// do runs the change in the next group and returns once it is durable or
// refused.
func (w *writer) do(ctx context.Context, run func(*session) error) error {
	return w.submit(ctx, run).Wait()
}

// submit queues the change for the next group. Changes are made in the order
// in which they were queued.
func (w *writer) submit(ctx context.Context, run func(*session) error) *study.Outcome {
	one := operation{run: run, outcome: study.NewOutcome()}
	w.waiting.Add(1)
	if err := w.enqueue(ctx, one); err != nil {
		w.settle(one, err)
	}
	return one.outcome
}

func (w *writer) settle(one operation, err error) {
	w.waiting.Add(-1)
	one.outcome.Settle(err)
}

func (w *writer) enqueue(ctx context.Context, one operation) error {
	w.mutex.RLock()
	defer w.mutex.RUnlock()
	if w.stopped {
		return errClosed()
	}
	if ctx.Err() == nil {
		select {
		case w.queue <- one:
			return nil
		case <-ctx.Done():
		}
	}
	return problem.New(problem.Unavailable, "the caller gave up: %w", ctx.Err())
}

// stop ends the writer behind what is queued. Further calls do nothing.
func (w *writer) stop() {
	w.mutex.Lock()
	already := w.stopped
	w.stopped = true
	w.mutex.Unlock()
	if !already {
		close(w.queue)
	}
	<-w.ended
}

// close empties the log into the database and closes the stopped writer's
// connection.
func (w *writer) close() error {
	var err error
	if w.health.Err() == nil {
		err = w.health.explain(w.session.empty())
	}
	return errors.Join(err, w.session.close(), w.database.Close(), w.acknowledged.close())
}

func (w *writer) loop() {
	defer close(w.ended)
	for first := range w.queue {
		w.commit(w.gather(first))
		if w.health.Err() == nil {
			// The changes are durable already. Whatever keeps the log from
			// being copied and is not fatal will be met again.
			_ = w.health.explain(w.checkpoints.run(w.session))
		}
	}
}

// gather takes what is queued, and lets whoever is ready to run hand in more as
// long as more comes of it. It waits for nothing: when nobody is ready, the
// group is complete.
func (w *writer) gather(first operation) []operation {
	group := []operation{first}
	for before := 0; len(group) > before && len(group) < maxGroup; {
		before = len(group)
		runtime.Gosched()
		group = w.take(group)
	}
	return group
}

// take adds what is queued to the group.
func (w *writer) take(group []operation) []operation {
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

// commit runs a group in one transaction and answers it. A change that is
// refused is rolled back alone; a failure of the transaction fails them all.
func (w *writer) commit(group []operation) {
	err := w.health.Err()
	var outcomes []error
	if err == nil {
		outcomes, err = w.session.transact(group)
		err = w.judge(err)
	}
	if err == nil {
		w.acknowledged.write(w.session.commits)
	}
	for i, one := range group {
		if err != nil {
			w.settle(one, err)
			continue
		}
		if outcomes[i] == nil {
			w.changes.Add(1)
		} else {
			w.refused.Add(1)
		}
		w.settle(one, w.health.explain(outcomes[i]))
	}
	if err == nil {
		w.commits.Add(1)
	}
}

// judge explains a transaction's failure. One that is unknown to us, or after
// which the transaction is still open, is fatal.
func (w *writer) judge(err error) error {
	var fault sqlite3.Error
	var stuck stuckError
	if err != nil && (errors.As(err, &stuck) || !errors.As(err, &fault)) {
		return w.health.fail(err)
	}
	return w.health.explain(err)
}

// Statistics returns what the writer has done so far.
func (s *Store) Statistics() Statistics {
	w := s.writer
	return Statistics{
		Changes: w.changes.Load(), Refused: w.refused.Load(), Commits: w.commits.Load(),
		Waiting: w.waiting.Load(), Checkpoints: w.checkpoints.done.Load(),
	}
}
