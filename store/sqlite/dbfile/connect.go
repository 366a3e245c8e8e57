// Package dbfile is the file of a SQLite database of ours: how it is opened, proven
// to be what was written, brought up to date and copied, and what its errors mean.
package dbfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

const (
	// readers is how many connections read at a time; a query beyond waits.
	readers = 4
	// Patience is how long the SQLite statements of the writer wait for others, in
	// milliseconds.
	Patience = 5000
	// application is the application_id the first migration sets.
	application = 0x544e444d
)

// Source names the database to the driver, with settings for each connection.
func Source(path string, settings url.Values) string {
	settings.Set("_busy_timeout", strconv.Itoa(Patience))
	settings.Set("_foreign_keys", "on")
	settings.Set("_stmt_cache_size", "64") // every statement we have, prepared once
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + settings.Encode()
}

// Writing names the database to the driver, for the connection that writes.
func Writing(path string) string {
	return Source(path, url.Values{
		"mode": {"rw"}, "_txlock": {"immediate"},
		"_synchronous": {"full"},
	})
}

// OpenWrites opens the one connection that writes, brings the schema up to
// date and returns it. A suspect database is checked before anything is
// written to it.
func OpenWrites(ctx context.Context, path string, suspect bool) (*sql.DB, error) {
	database := sql.OpenDB(Connector{Source: Writing(path)})
	database.SetMaxOpenConns(1)
	steps := []func() error{
		func() error { return Identify(ctx, database, path) },
		func() error {
			if suspect {
				return check(ctx, database, path)
			}
			return nil
		},
		func() error { return checkAcknowledged(ctx, database, path) },
		func() error { return MakeDurable(ctx, database, path) },
		func() error { return Migrate(ctx, database, path) },
		func() error { return checkLookups(ctx, database, path) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, errors.Join(err, database.Close())
		}
	}
	return database, nil
}

// OpenReads opens the connections that read, which cannot write.
func OpenReads(ctx context.Context, path string) (*sql.DB, error) {
	database := sql.OpenDB(Connector{Source: Source(path, url.Values{"mode": {"ro"}})})
	database.SetMaxOpenConns(readers)
	database.SetMaxIdleConns(readers)
	if err := database.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s for reading: %w", path, err), database.Close())
	}
	return database, nil
}

// Identify refuses a file that is not a database of ours.
func Identify(ctx context.Context, database *sql.DB, path string) error {
	var id, foreign int64
	err := database.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id)
	if err == nil {
		// Ours has no id yet if its first migration was interrupted.
		err = database.QueryRowContext(ctx,
			"SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'goose_db_version%' AND name NOT LIKE 'sqlite_%'").Scan(&foreign)
	}
	switch {
	case err != nil:
		return Unreadable(path, err)
	case id != application && (id != 0 || foreign > 0):
		return problem.New(problem.Invalid, "%s is a database of another program: choose another path", path)
	}
	return nil
}

// MakeDurable turns on what our promises stand on, and makes sure of it: a
// setting SQLite does not take is no error to it.
func MakeDurable(ctx context.Context, database *sql.DB, path string) error {
	for _, setting := range []struct{ pragma, want string }{
		{"journal_mode = wal", "wal"},
		{"synchronous", "2"}, // FULL
		{"foreign_keys", "1"},
		{"wal_autocheckpoint = 0", "0"}, // it swallows errors, so the writer does it
		{"auto_vacuum", "0"},            // as we make it: a header that says otherwise is damaged
		{"journal_size_limit = 67108864", "67108864"},
	} {
		var got string
		if err := database.QueryRowContext(ctx, "PRAGMA "+setting.pragma).Scan(&got); err != nil {
			return problem.New(problem.Unavailable, "set %s on %s: %w", setting.pragma, path, err)
		}
		if !strings.EqualFold(got, setting.want) {
			return problem.New(problem.Unavailable, "%s cannot be used safely: %s is %s and should be %s; put it on another file system",
				path, setting.pragma, got, setting.want)
		}
	}
	// On macOS a plain fsync does not reach the disk; elsewhere this does nothing.
	if _, err := database.ExecContext(ctx, "PRAGMA fullfsync = 1"); err != nil {
		return problem.New(problem.Unavailable, "set fullfsync on %s: %w", path, err)
	}
	return nil
}

// check looks for damage after a shutdown that was not clean.
func check(ctx context.Context, database *sql.DB, path string) error {
	return checkWith(ctx, database, path, "PRAGMA quick_check(10)")
}

// checkWith runs one of SQLite's own checks.
func checkWith(ctx context.Context, database *sql.DB, path, pragma string) error {
	rows, err := database.QueryContext(ctx, pragma)
	if err != nil {
		return Unreadable(path, err)
	}
	defer rows.Close()
	var faults []string
	for rows.Next() {
		var fault string
		if err := rows.Scan(&fault); err != nil {
			return Unreadable(path, err)
		}
		faults = append(faults, fault)
	}
	if err := rows.Err(); err != nil {
		return Unreadable(path, err)
	}
	if len(faults) == 1 && faults[0] == "ok" {
		return nil
	}
	return Damaged(path, strings.Join(faults, "; "))
}

// checkLookups makes sure of the rows whose absence is believed when they are
// asked for: every receipt and token that was written is there, and its index
// leads to it.
func checkLookups(ctx context.Context, database *sql.DB, path string) error {
	for kind, query := range map[string]string{
		"receipt": `SELECT count(*), coalesce(sum(checksum), 0),
			coalesce(sum(NOT EXISTS (SELECT 1 FROM receipt AS found WHERE found.key = receipt.key)), 0) FROM receipt NOT INDEXED`,
		"token": `SELECT count(*), coalesce(sum(checksum), 0),
			coalesce(sum(NOT EXISTS (SELECT 1 FROM token AS found WHERE found.id = token.id)), 0) FROM token NOT INDEXED`,
	} {
		var seen, written struct{ entries, total int64 }
		var lost int64
		err := database.QueryRowContext(ctx, query).Scan(&seen.entries, &seen.total, &lost)
		if err == nil {
			err = database.QueryRowContext(ctx, "SELECT coalesce(sum(entries), 0), coalesce(sum(total), 0) FROM tally WHERE kind = ?", kind).
				Scan(&written.entries, &written.total)
		}
		switch {
		case err != nil:
			return Unreadable(path, err)
		case seen != written:
			return Damaged(path, Damage{Table: kind, Row: "all rows", Finding: fmt.Sprintf("%d are there, and %d were written, or they are not the same", seen.entries, written.entries)}.Error())
		case lost > 0:
			return Damaged(path, Damage{Table: kind, Row: "the index", Finding: fmt.Sprintf("it does not lead to %d of %d rows", lost, seen.entries)}.Error())
		}
	}
	return nil
}

func Damaged(path, finding string) error {
	return problem.New(problem.Unavailable,
		`the database %[1]s is damaged, so it is not served: %[2]s.
What to do: check the disk, and make a new data folder from your last backup with "tandem restore BACKUP --data FOLDER"; "tandem verify" says all that is damaged in a folder.
Without a backup, keep a copy of %[1]s and %[1]s-wal first; then "sqlite3 %[1]s .recover | sqlite3 recovered.db" saves what can be read`,
		path, finding)
}
