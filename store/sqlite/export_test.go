package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"

	"github.com/pressly/goose/v3"
)

// MakeOld makes a database with the schema as it was at the version.
func MakeOld(ctx context.Context, path string, version int64) (err error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	database, err := sql.Open("sqlite3", path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close(), os.Chmod(path, 0o600)) }()
	provider, err := goose.NewProvider(goose.DialectSQLite3, database, files,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = provider.UpTo(ctx, version)
	return err
}

// RefuseNetwork is what Open says of a folder on the file system with the number.
func RefuseNetwork(number uint32) error { return refuseNetwork("/data", number, true) }

// Pragma reads or sets a setting of the connection that writes.
func (s *Store) Pragma(ctx context.Context, setting string) (value string, err error) {
	err = s.writer.do(ctx, func(session *session) error {
		return session.row("PRAGMA "+setting, nil, &value)
	})
	return value, err
}

// Statement writes what no caller can, in a group with what the callers write.
func (s *Store) Statement(ctx context.Context, query string) error {
	return s.writer.do(ctx, func(session *session) error { return session.exec(query) })
}
