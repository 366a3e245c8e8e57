// Package sqlite is where everything survives: studies, trials, reports,
// events, logs and tokens in one SQLite file.
//
// The file belongs to one server at a time (owner.go). All writes go through
// one goroutine that commits them in groups (writer.go) with synchronous=FULL,
// so that an acknowledged change survives a power loss. Its invariant: Apply
// returns nil only after the commit; after a disk error it acknowledges nothing
// more. The package decides nothing about studies.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	_ "github.com/mattn/go-sqlite3" // registers the driver

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/web/auth"
)

// The interfaces this package implements.
var (
	_ study.Store    = (*Store)(nil)
	_ study.LogStore = (*Store)(nil)
	_ auth.Store     = (*Store)(nil)
)

// DefaultLogBytes is how much of a trial's log is kept.
const DefaultLogBytes = 1 << 20

// Options change how a file is opened.
type Options struct {
	// AllowNetworkFilesystem opens a file on NFS or SMB, whose locks may not hold.
	AllowNetworkFilesystem bool
	// LogBytes bounds the log kept of one trial; 0 means [DefaultLogBytes].
	LogBytes int64
}

// Store is an open SQLite file. It is safe for concurrent use.
type Store struct {
	owner    *owner
	marker   string
	readers  *sql.DB
	writer   *writer
	logBytes int64

	brokenOnce sync.Once
	broken     chan struct{}
	brokenErr  error // written before broken is closed
}

// Open opens the file, makes it if there is none, and brings its schema up to
// date. It fails at once if another server has the file, if the file was
// written by a newer version, or if it is damaged.
func Open(ctx context.Context, path string, options Options) (*Store, error) {
	if strings.ContainsAny(path, "?#") {
		return nil, problem.New(problem.Invalid, "the path %q must not contain ? or #", path)
	}
	owner, err := acquire(path, options.AllowNetworkFilesystem)
	if err != nil {
		return nil, err
	}
	s := &Store{owner: owner, marker: path + ".unclean", broken: make(chan struct{}), logBytes: options.LogBytes}
	if s.logBytes <= 0 {
		s.logBytes = DefaultLogBytes
	}
	if err := s.open(ctx, path); err != nil {
		return nil, errors.Join(err, owner.release())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, path string) error {
	writing, err := sql.Open("sqlite3", source(path, "_txlock=immediate"))
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	writing.SetMaxOpenConns(1)
	if err := s.prepare(ctx, path, writing); err != nil {
		return errors.Join(err, writing.Close())
	}
	if s.writer, err = startWriter(writing, s.fail); err != nil {
		return errors.Join(err, writing.Close())
	}
	if s.readers, err = sql.Open("sqlite3", source(path, "_query_only=true")); err != nil {
		return errors.Join(err, s.writer.stop())
	}
	s.readers.SetMaxOpenConns(4)
	return nil
}

// prepare checks the file and brings its schema up to date.
func (s *Store) prepare(ctx context.Context, path string, db *sql.DB) error {
	if _, err := os.Stat(s.marker); err == nil {
		if err := check(ctx, path, db); err != nil {
			return err
		}
	}
	if err := migrate(ctx, db); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("protect %s: %w", path, err)
	}
	return os.WriteFile(s.marker, []byte("removed by a clean stop; its presence makes the next start check the file\n"), 0o600)
}

// check looks for damage after a stop that was not clean.
func check(ctx context.Context, path string, db *sql.DB) error {
	var verdict string
	err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict)
	if err == nil && verdict == "ok" {
		return nil
	}
	if err != nil {
		verdict = err.Error()
	}
	return problem.New(problem.Unavailable,
		"the database %s is damaged (%s): restore a backup of it, or move it away to start empty", path, verdict)
}

// source is a connection string with what every connection needs.
func source(path, extra string) string {
	escaped := (&url.URL{Path: path}).EscapedPath()
	return "file:" + escaped + "?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=true&_busy_timeout=5000&" + extra
}

// Close stops the writer, after what is queued, and gives the file up.
func (s *Store) Close() error {
	err := errors.Join(s.writer.stop(), s.readers.Close())
	if s.Err() == nil && err == nil {
		err = os.Remove(s.marker)
	}
	return errors.Join(err, s.owner.release())
}

// Broken is closed when the store can no longer be trusted with a write.
func (s *Store) Broken() <-chan struct{} { return s.broken }

// Err is why the store is broken; nil while it is not.
func (s *Store) Err() error {
	select {
	case <-s.broken:
		return s.brokenErr
	default:
		return nil
	}
}

func (s *Store) fail(err error) {
	s.brokenOnce.Do(func() {
		s.brokenErr = err
		close(s.broken)
	})
}

// Backup writes a consistent copy of the database to a new file.
func (s *Store) Backup(ctx context.Context, path string) error {
	if _, err := s.readers.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	return nil
}
