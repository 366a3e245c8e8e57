// Package sqlite is where everything survives: studies, trials, reports,
// events, logs and tokens in one SQLite file.
//
// The file belongs to one server at a time (owner.go). All writes go through
// one goroutine that commits them in groups (writer.go) with synchronous=FULL.
// Its one invariant: Apply returns nil only once the change survives a power
// loss, and after a failure of the disk or the file nothing is acknowledged
// any more (health.go). It decides nothing about studies and knows neither the
// service nor HTTP.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
)

var (
	_ journal.Store       = (*Store)(nil)
	_ journal.SharedStore = (*Store)(nil)
	_ journal.LogStore    = (*Store)(nil)
	_ access.Store        = (*Store)(nil)
)

// Options change how a file is opened.
type Options struct {
	// AllowNetworkFilesystem opens a file on NFS, SMB and their kin, whose
	// locks may not hold.
	AllowNetworkFilesystem bool
}

// Store is an open SQLite file. It is safe for concurrent use.
type Store struct {
	owner   *owner
	health  *dbfile.Health
	readers *sql.DB
	writer  *writer

	closing sync.Once
	closed  error // of the one time it was closed
}

// Open opens the file, makes it if there is none, and brings its schema up to
// date. It fails at once, with a problem.Error that says what to do, if another
// server has the file, if it is another program's, was written by a newer
// version, is damaged, or lies where its locks may not hold; or if the machine has
// no room for it or does not let it be written, which is told apart from damage.
func Open(ctx context.Context, path string, options Options) (*Store, error) {
	if !options.AllowNetworkFilesystem {
		if err := dbfile.CheckFilesystem(path); err != nil {
			return nil, dbfile.Explained(path, err)
		}
	}
	owner, err := acquire(path)
	if err != nil {
		return nil, dbfile.Explained(path, err)
	}
	s := &Store{owner: owner, health: dbfile.NewHealth(path)}
	if err := s.open(ctx, path); err != nil {
		return nil, errors.Join(dbfile.Explained(path, err), owner.release())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, path string) error {
	suspect, err := s.owner.prepare(path)
	if err != nil {
		return err
	}
	writing, err := dbfile.OpenWrites(ctx, path, suspect)
	if err != nil && !suspect {
		return errors.Join(err, s.owner.clean()) // nothing was written that a crash could have broken
	}
	if err != nil {
		return err
	}
	if s.writer, err = startWriter(ctx, writing, path, s.health); err != nil {
		return errors.Join(err, writing.Close())
	}
	if s.readers, err = dbfile.OpenReads(ctx, path); err != nil {
		s.writer.Stop()
		return errors.Join(err, s.writer.close())
	}
	return nil
}

// Close stops the writer behind what is queued, empties the log into the
// database and gives the file up. Calls after it are refused as unavailable.
func (s *Store) Close() error {
	s.closing.Do(func() { s.closed = s.close() })
	return s.closed
}

func (s *Store) close() error {
	s.writer.Stop()
	// The writing connection goes last, since only it can empty the log.
	err := errors.Join(s.readers.Close(), s.writer.close())
	if err == nil && s.Err() == nil {
		err = s.owner.clean()
	}
	return errors.Join(err, s.owner.release())
}

// Broken is closed when the store can no longer be trusted with a write.
func (s *Store) Broken() <-chan struct{} { return s.health.Broken() }

// Err is why the store is broken; nil while it is not.
func (s *Store) Err() error { return s.health.Err() }

// Full is why nothing can be stored for want of room; nil where the newest commit found some.
func (s *Store) Full() error { return s.health.Full() }
