package dbfile

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"os"

	"github.com/pressly/goose/v3"

	"github.com/tandem-tune/tandem/internal/problem"
)

//go:embed migrations/*.sql
var Migrations embed.FS

// FirstChecked is the first schema version that has a checksum.
const FirstChecked = 5

// Migrate brings the schema up to date, each step in a transaction, and
// refuses a schema this program is too old for. It keeps a copy of a database
// that it changes.
func Migrate(ctx context.Context, database *sql.DB, path string) error {
	provider, err := Migrator(database)
	if err != nil {
		return err
	}
	current, newest, err := provider.GetVersions(ctx)
	switch {
	case err != nil:
		return problem.New(problem.Unavailable, "read the schema version of %s: %w", path, err)
	case current > newest:
		return TooNew(path, current, newest)
	case current == newest:
		return checkSchema(ctx, database, path)
	case current > 0:
		if current >= FirstChecked { // else what somebody changed would pass as ours behind it
			if err := checkSchema(ctx, database, path); err != nil {
				return err
			}
		}
		if err := copyInto(ctx, database, olderPath(path, current)); err != nil {
			return problem.New(problem.Unavailable,
				"%s has schema version %d and is not brought to %d, because no copy of it could be made first: %w; make room beside it, then start again",
				path, current, newest, err)
		}
	}
	if _, err := provider.Up(ctx); err != nil {
		return problem.New(problem.Unavailable, "bring %s from schema version %d to %d: %w", path, current, newest, err)
	}
	if err := SealSchema(ctx, database); err != nil {
		return problem.New(problem.Unavailable, "complete the schema of %s: %w", path, err)
	}
	return nil
}

// SealSchema notes the schema as the one the migrations made.
func SealSchema(ctx context.Context, database *sql.DB) error {
	_, err := database.ExecContext(ctx, "UPDATE server SET schema_checksum = ("+SchemaChecksum+")")
	return err
}

func Migrator(database *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(Migrations, "migrations")
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, database, files,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return provider, nil
}

// olderPath is where the copy of a database is kept before its schema changes.
func olderPath(path string, version int64) string { return fmt.Sprintf("%s.schema-%d", path, version) }

// TooNew is the error of a database that a newer program wrote. It names the copy from
// before, if this program could open that.
func TooNew(path string, current, newest int64) error {
	copied := ""
	for version := newest; version > 0 && copied == ""; version-- {
		if _, err := os.Stat(olderPath(path, version)); err == nil {
			copied = fmt.Sprintf("; or go back to %s, which lacks what came later: put it as tandem.db into a new folder, with a copy of artifacts", olderPath(path, version))
		}
	}
	return problem.New(problem.Invalid,
		"the database %s has schema version %d, and this program knows versions up to %d: run the version of tandem that wrote it, or a newer one%s",
		path, current, newest, copied)
}

// SchemaChecksum is of all that the schema says.
const SchemaChecksum = `SELECT coalesce(sum(row_checksum(type, name, tbl_name, coalesce(sql, ''))), 0) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'`

// checkSchema refuses a schema that is not the one the migrations made: a flaw
// in the text of a trigger, say, would make the tallies wrong one day.
func checkSchema(ctx context.Context, database *sql.DB, path string) error {
	var computed, stored int64
	if err := database.QueryRowContext(ctx, SchemaChecksum).Scan(&computed); err != nil {
		return Unreadable(path, err)
	}
	if err := database.QueryRowContext(ctx, "SELECT schema_checksum FROM server").Scan(&stored); err != nil {
		return Unreadable(path, err)
	}
	if stored == 0 { // the last start ended just behind the migration
		_, err := database.ExecContext(ctx, "UPDATE server SET schema_checksum = ?", computed)
		return err
	}
	if computed != stored {
		return Damaged(path, "its schema is not the one that tandem made (tables, indexes and triggers are not to be changed by hand)")
	}
	return nil
}
