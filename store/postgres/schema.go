package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/tandem-tune/tandem/internal/problem"
)

//go:embed migrations/*.sql
var migrations embed.FS

// The lock of the migrations: every second a look, for a minute.
const lockProbes = 60

// migrate brings the schema up to date, each step in a transaction, and
// refuses a schema this program is too old for. Servers that start at the same
// time do so one after the other.
func (d *Database) migrate(ctx context.Context) (err error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, lockProbes))
	if err != nil {
		return err
	}
	database := stdlib.OpenDBFromPool(d.writes)
	defer func() { err = errors.Join(err, database.Close()) }()
	provider, err := goose.NewProvider(goose.DialectPostgres, database, files,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()), goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	current, newest, err := provider.GetVersions(ctx)
	if err != nil {
		return problem.New(problem.Unavailable, "read the schema version of the database at %s: %w", d.Place(), err)
	}
	if current > newest {
		return problem.New(problem.Invalid,
			"the database at %s has schema version %d, and this program knows versions up to %d: run the version of tandem that wrote it, or a newer one",
			d.Place(), current, newest)
	}
	if _, err := provider.Up(ctx); err != nil {
		return problem.New(problem.Unavailable,
			"bring the database at %s from schema version %d to %d (its user must be allowed to create tables in it): %w", d.Place(), current, newest, err)
	}
	return nil
}
