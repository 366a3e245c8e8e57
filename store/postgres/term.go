package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

// term is the time in which a server owns the database: as long as its
// heartbeats arrive and no other server has taken over.
type term struct {
	database *Database
	health   *health
	number   int64 // 0: a guest's, which no owner notices

	mutex sync.Mutex // guards until
	until time.Time  // the term is over then, without a heartbeat
}

// sendHeartbeats renews the term at each interval, until the context ends or
// the term does.
func (t *term) sendHeartbeats(ctx context.Context) {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.health.Broken():
			return
		case <-ticker.C:
		}
		sent := time.Now()
		there, err := t.sendHeartbeat(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			_ = t.err() // which ends the term when it has been silent for too long
		case err == nil && !there:
			t.depose()
		case err == nil:
			t.extend(sent)
		}
	}
}

// sendHeartbeat renews the term once, and reports whether it still is the
// owner.
func (t *term) sendHeartbeat(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	tag, err := t.database.writes.Exec(ctx, "UPDATE pulse SET at = clock_timestamp() WHERE EXISTS (SELECT 1 FROM owner WHERE term = $1)", t.number)
	return tag.RowsAffected() > 0, err
}

// resign lets another server take over at once. If the write fails, the lease
// timeout has the same effect.
func (t *term) resign() {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	_, _ = t.database.writes.Exec(ctx, "UPDATE pulse SET at = '-infinity' WHERE EXISTS (SELECT 1 FROM owner WHERE term = $1)", t.number)
}

// depose ends the term: another server has taken over.
func (t *term) depose() error {
	return t.health.Break(problem.New(problem.Unavailable, "another server has taken the database over: ask again, and that one answers"))
}

// extend notes that the database had a heartbeat that was sent at the time.
func (t *term) extend(sent time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.until = sent.Add(leaseTimeout)
}

// err is why nothing may be written any more; nil while the term lasts. It ends
// the term if the database has had no heartbeat for so long that another server
// may have taken over.
func (t *term) err() error {
	if err := t.health.Err(); err != nil || t.number == 0 {
		return err
	}
	t.mutex.Lock()
	late := time.Since(t.until)
	t.mutex.Unlock()
	if late < 0 {
		return nil
	}
	return t.health.Break(problem.New(problem.Unavailable,
		"the database has not answered for %v, so another server may own it now: ask again", (late + leaseTimeout).Round(100*time.Millisecond)))
}
