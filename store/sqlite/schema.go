package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/tandem-tune/tandem/problem"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date, each step in a transaction, and
// refuses a schema this program is too old for.
func migrate(ctx context.Context, database *sql.DB, path string) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, database, files,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	current, newest, err := provider.GetVersions(ctx)
	if err != nil {
		return problem.New(problem.Unavailable, "read the schema version of %s: %w", path, err)
	}
	if current > newest {
		return problem.New(problem.Invalid,
			"the database %s has schema version %d, and this program knows versions up to %d: run the version of tandem that wrote it, or a newer one",
			path, current, newest)
	}
	if _, err := provider.Up(ctx); err != nil {
		return problem.New(problem.Unavailable, "bring %s from schema version %d to %d: %w", path, current, newest, err)
	}
	return nil
}
