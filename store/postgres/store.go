package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/store/group"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
)

var (
	_ journal.Store       = (*Store)(nil)
	_ journal.SharedStore = (*Store)(nil)
	_ journal.LogStore    = (*Store)(nil)
	_ access.Store        = (*Store)(nil)
)

// Store is a term of a server that owns the database. It is safe for concurrent
// use.
type Store struct {
	database *Database
	health   *health
	term     *term
	writer   *group.Writer[change]
	// owner is what the row says of this server.
	owner Owner
	// written counts the transactions of the term. Only the writer uses it.
	written int64

	closing        sync.Once
	closed         chan struct{}
	stopHeartbeats chan struct{} // closed to end the heartbeats
	heartbeats     sync.WaitGroup
}

// beginTerm begins a term, of which the database had a heartbeat that was sent at
// the time.
func (d *Database) beginTerm(owner Owner, sent time.Time) *Store {
	health := newHealth()
	s := &Store{
		database: d, health: health, term: &term{database: d, health: health, number: owner.Term, until: sent.Add(leaseTimeout)}, owner: owner,
		closed: make(chan struct{}), stopHeartbeats: make(chan struct{}),
	}
	s.writer = group.Start(s.commit, nil)
	ctx, cancel := context.WithCancel(context.Background())
	s.heartbeats.Go(func() { s.term.sendHeartbeats(ctx) })
	s.heartbeats.Go(func() {
		<-s.stopHeartbeats
		cancel()
	})
	return s
}

// Guest returns the store of tokens beside an owner that may be at work: for
// commands that make the first token, or another one when the last was lost.
// close ends its use.
func (d *Database) Guest() (tokens access.Store, close func()) {
	health := newHealth()
	s := &Store{database: d, health: health, term: &term{database: d, health: health}, closed: make(chan struct{})}
	s.writer = group.Start(s.commit, nil)
	return s, s.writer.Stop
}

// Owner is what the database says of this server.
func (s *Store) Owner() Owner { return s.owner }

// Broken is closed when the store can no longer be trusted with a write.
func (s *Store) Broken() <-chan struct{} { return s.health.Broken() }

// Err is why the store is broken; nil while it is not.
func (s *Store) Err() error { return s.term.err() }

// Full is why nothing can be stored for want of room; nil where the newest commit found some.
func (s *Store) Full() error { return s.health.Full() }

// Close stops the writer behind what is queued and ends the term, so that
// another server can take over at once. Calls after it are refused as
// unavailable. The database stays open.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.writer.Stop()
		close(s.closed)
		close(s.stopHeartbeats)
		s.heartbeats.Wait()
		s.term.resign()
	})
	return nil
}
