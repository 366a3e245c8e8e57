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

// migrate brings the schema up to date, each step in a transaction of its own.
func migrate(ctx context.Context, db *sql.DB) error {
	folder, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, folder)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	present, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	sources := provider.ListSources()
	if newest := sources[len(sources)-1].Version; present > newest {
		return problem.New(problem.Unavailable,
			"the database has schema version %d and this tandem knows %d: it was written by a newer version, use that one", present, newest)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema: %w", err)
	}
	return nil
}
