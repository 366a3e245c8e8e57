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
	_ journal.Store    = (*Store)(nil)
	_ journal.LogStore = (*Store)(nil)
	_ access.Store     = (*Store)(nil)
)

// Store is a term of a server that owns the database. It is safe for concurrent
// use.
type Store struct {
	database *Database
	health   *health
	writer   *group.Writer[change]
	// term is the number of the term; 0: a guest's, which no owner notices.
	term int64
	// owner is what the row says of this server.
	owner Owner
	// written counts the transactions of the term. Only the writer uses it.
	written int64

	mutex sync.Mutex // guards until
	until time.Time  // the term is over then, without a heartbeat

	closing        sync.Once
	closed         chan struct{}
	stopHeartbeats chan struct{} // closed to end the heartbeats
	heartbeats     sync.WaitGroup
}

// beginTerm begins a term, of which the database had a heartbeat that was sent at
// the time.
func (d *Database) beginTerm(owner Owner, sent time.Time) *Store {
	s := &Store{
		database: d, health: newHealth(), term: owner.Term, owner: owner, until: sent.Add(leaseTimeout),
		closed: make(chan struct{}), stopHeartbeats: make(chan struct{}),
	}
	s.writer = group.Start(s.commit, nil)
	ctx, cancel := context.WithCancel(context.Background())
	s.heartbeats.Go(func() { s.sendHeartbeats(ctx) })
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
	s := &Store{database: d, health: newHealth(), closed: make(chan struct{})}
	s.writer = group.Start(s.commit, nil)
	return s, s.writer.Stop
}

// Owner is what the database says of this server.
func (s *Store) Owner() Owner { return s.owner }

// Broken is closed when the store can no longer be trusted with a write.
func (s *Store) Broken() <-chan struct{} { return s.health.broken }

// Err is why the store is broken; nil while it is not.
func (s *Store) Err() error {
	if err := s.health.Err(); err != nil {
		return err
	}
	return s.checkTerm()
}

// Close stops the writer behind what is queued and ends the term, so that
// another server can take over at once. Calls after it are refused as
// unavailable. The database stays open.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.writer.Stop()
		close(s.closed)
		close(s.stopHeartbeats)
		s.heartbeats.Wait()
		s.resign()
	})
	return nil
}
