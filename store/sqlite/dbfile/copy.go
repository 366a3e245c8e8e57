package dbfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/tandem-tune/tandem/internal/problem"
)

// copyInto writes the state that the database has now to a file, which appears
// complete and durable or not at all. Others go on reading and writing meanwhile.
func copyInto(ctx context.Context, database *sql.DB, to string) (err error) {
	// The empty file gives the copy its mode, which is 0600.
	file, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*.partial")
	if err != nil {
		return fmt.Errorf("make a copy of the database: %w", err)
	}
	partial := file.Name()
	defer func() {
		if err != nil {
			err = errors.Join(err, Remove(partial), Remove(partial+"-journal")) // which SQLite leaves
		}
	}()
	if err := file.Close(); err != nil {
		return fmt.Errorf("make a copy of the database: %w", err)
	}
	if _, err := database.ExecContext(ctx, "VACUUM INTO ?", partial); err != nil {
		return fmt.Errorf("copy the database to %s: %w", partial, err)
	}
	if err := SyncFile(partial); err != nil {
		return err
	}
	if err := os.Rename(partial, to); err != nil {
		return fmt.Errorf("name the copy of the database: %w", err)
	}
	return SyncFile(to)
}

// Copy writes the state that the database has now to a new file, durably. A
// server may have the database open and go on; nothing is locked for it.
func Copy(ctx context.Context, path, to string) error {
	if _, err := os.Stat(path); err != nil {
		return problem.New(problem.Invalid, "there is no database: %w", err)
	}
	database := sql.OpenDB(Connector{Source: Source(path, url.Values{"mode": {"ro"}})})
	err := Identify(ctx, database, path)
	if err == nil {
		err = Explained(to, copyInto(ctx, database, to))
	}
	return Explained(path, errors.Join(err, database.Close()))
}

func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SyncFile makes the file and its name durable.
func SyncFile(path string) error {
	for _, name := range []string{path, filepath.Dir(path)} {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("make %s durable: %w", path, err)
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return fmt.Errorf("make %s durable: %w", path, err)
		}
	}
	return nil
}
