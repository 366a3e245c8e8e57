package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"sync/atomic"

	"github.com/mattn/go-sqlite3"
	"github.com/pressly/goose/v3"

	"github.com/tandem-tune/tandem/store/sqlite/dbfile"
)

// Versions returns the numbers of all schema versions, in order.
func Versions() ([]int64, error) {
	files, err := dbfile.Migrations.ReadDir("migrations")
	if err != nil {
		return nil, err
	}
	var versions []int64
	for _, file := range files {
		version, err := goose.NumericComponent(file.Name())
		if err != nil {
			return nil, err
		}
		versions = append(versions, version)
	}
	return versions, nil
}

// MakeOld makes a database with the schema as it was at the version, or brings
// an older one up to that.
func MakeOld(ctx context.Context, path string, version int64) (err error) {
	database := sql.OpenDB(dbfile.Connector{Source: path})
	defer func() { err = errors.Join(err, database.Close(), os.Chmod(path, 0o600)) }()
	provider, err := dbfile.Migrator(database)
	if err != nil {
		return err
	}
	if _, err = provider.UpTo(ctx, version); err != nil || version < dbfile.FirstChecked {
		return err
	}
	return dbfile.SealSchema(ctx, database)
}

// RefuseNetwork is what Open says of a folder on the file system with the number.
func RefuseNetwork(number uint32) error { return dbfile.RefuseNetwork("/data", number) }

// Pragma reads or sets a setting of the connection that writes.
func (s *Store) Pragma(ctx context.Context, setting string) (value string, err error) {
	err = s.writer.Do(ctx, func(session *session) error {
		return session.row("PRAGMA "+setting, nil, &value)
	})
	return value, err
}

// Careless makes commits that do not wait for the disk. It is for a store that
// nobody writes to yet.
func (s *Store) Careless() error { return s.writer.session.exec("PRAGMA synchronous = NORMAL") }

// Statement writes what no caller can, in a group with what the callers write.
func (s *Store) Statement(ctx context.Context, query string) error {
	return s.writer.Do(ctx, func(session *session) error { return session.exec(query) })
}

// Migrate brings a database up to date, and calls before each statement with
// its number, from 1.
func Migrate(ctx context.Context, path string, before func(statement int64)) (err error) {
	database := sql.OpenDB(counting{dbfile.Connector{Source: dbfile.Writing(path)}, new(atomic.Int64), before})
	database.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, database.Close()) }()
	if err := dbfile.MakeDurable(ctx, database, path); err != nil {
		return err
	}
	return dbfile.Migrate(ctx, database, path)
}

// counting opens connections that count their statements.
type counting struct {
	dbfile.Connector
	count  *atomic.Int64
	before func(int64)
}

func (c counting) Connect(ctx context.Context) (driver.Conn, error) {
	connection, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return countingConnection{connection.(*sqlite3.SQLiteConn), c}, nil
}

type countingConnection struct {
	*sqlite3.SQLiteConn
	counting
}

func (c countingConnection) next() { c.before(c.count.Add(1)) }

func (c countingConnection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.next()
	return c.SQLiteConn.ExecContext(ctx, query, args)
}

func (c countingConnection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.next()
	return c.SQLiteConn.QueryContext(ctx, query, args)
}

func (c countingConnection) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	c.next()
	tx, err := c.SQLiteConn.BeginTx(ctx, options)
	return countingTx{tx, c}, err
}

type countingTx struct {
	driver.Tx
	connection countingConnection
}

func (t countingTx) Commit() error {
	t.connection.next()
	defer t.connection.next() // just behind it
	return t.Tx.Commit()
}

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

// Statistics returns what the writer has done so far.
func (s *Store) Statistics() Statistics {
	w := s.writer
	return Statistics{
		Changes: w.changes.Load(), Refused: w.refused.Load(), Commits: w.commits.Load(),
		Waiting: w.Waiting(), Checkpoints: w.checkpoints.done.Load(),
	}
}
