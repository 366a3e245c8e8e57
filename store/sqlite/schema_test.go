package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/store/storetest"
)

// earlier are the schema versions that databases of earlier servers may have.
func earlier(t *testing.T) []int64 {
	t.Helper()
	versions, err := sqlite.Versions()
	if err != nil || len(versions) < 4 {
		t.Fatalf("the versions are %v: %v", versions, err)
	}
	return versions[:len(versions)-1]
}

// written is the last version of which testdata has rows: schema-N.sql has those
// of the tables that came with version N, as servers of that version wrote them,
// and schema-N.json all that a store shows then.
const written = 3

// of makes a database as a server with the schema wrote it, with rows in all
// tables. From the first version with checksums on, those rows are brought up to
// the version.
func of(t *testing.T, version int64) (path string) {
	t.Helper()
	path = fresh(t)
	if err := sqlite.MakeOld(t.Context(), path, min(version, written)); err != nil {
		t.Fatal(err)
	}
	database := raw(t, path)
	for older := range min(version, written) {
		rows, err := os.ReadFile(fmt.Sprintf("testdata/schema-%d.sql", older+1))
		if err != nil {
			t.Fatal(err)
		}
		execute(t, database, string(rows))
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.MakeOld(t.Context(), path, version); err != nil {
		t.Fatal(err)
	}
	return path
}

// golden is everything a store shows of such a database.
func golden(t *testing.T, version int64) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("testdata/schema-%d.json", min(version, written)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// newest is the newest schema version.
func newest(t *testing.T) int64 {
	t.Helper()
	versions, err := sqlite.Versions()
	if err != nil {
		t.Fatal(err)
	}
	return versions[len(versions)-1]
}

func TestDatabasesOfEarlierVersionsAreBroughtUpToDate(t *testing.T) {
	t.Parallel()
	for _, version := range earlier(t) {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			t.Parallel()
			path := of(t, version)
			want := golden(t, version)
			for range 2 { // the second time nothing is left to do
				store := open(t, path)
				if got := storetest.Picture(t, store); got != want {
					t.Errorf("the store shows\n%s\nwant\n%s", got, want)
				}
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if contents, err := sqlite.Verify(t.Context(), path); err != nil || contents.Schema != newest(t) || contents.Rows["report"] != 4 {
				t.Errorf("the database has %+v, %v", contents, err)
			}
			store := open(t, path) // it can be written to
			storetest.Apply(t, store, storetest.NewStudy("s9"))
			storetest.Apply(t, store, storetest.Step("s9", 0))
			if _, err := storetest.Look(t.Context(), store); err != nil {
				t.Error(err)
			}
			before := fmt.Sprintf("%s.schema-%d", path, version)
			contents, err := sqlite.Verify(t.Context(), before)
			if err != nil || contents.Schema != version || contents.Rows["report"] != 4 {
				t.Errorf("the copy from before has %+v, %v", contents, err)
			}
			if info, err := os.Stat(before); err != nil || info.Mode() != 0o600 {
				t.Errorf("the copy from before: %v, %v", info, err)
			}
		})
	}
}

// A row that was damaged before a migration is not made to look right by it.
func TestMigrationsKeepDamage(t *testing.T) {
	t.Parallel()
	for table, change := range map[string]string{"study": "UPDATE study SET reason = 'another'", "token": "UPDATE token SET scope = 'admin'"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			path := of(t, 5)
			database := raw(t, path)
			execute(t, database, change)
			if err := database.Close(); err != nil {
				t.Fatal(err)
			}
			if err := sqlite.MakeOld(t.Context(), path, newest(t)); err != nil {
				t.Fatal(err)
			}
			if _, err := sqlite.Verify(t.Context(), path); err == nil || !strings.Contains(err.Error(), "table "+table) {
				t.Errorf("the damage is told as %v", err)
			}
		})
	}
}

// Nor is a schema that was changed by hand.
func TestMigrationsRefuseAnotherSchema(t *testing.T) {
	t.Parallel()
	path := of(t, 5)
	database := raw(t, path)
	execute(t, database, "DROP TRIGGER token_updated")
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it stays refused
		_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if !problem.Is(err, problem.Unavailable) || !strings.Contains(err.Error(), "its schema is not the one that tandem made") {
			t.Errorf("the server says %v", err)
		}
	}
	if left, err := filepath.Glob(path + ".schema-*"); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// What a newer program wrote is refused, with the way back if a copy from before is there.
func TestANewerDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	path := of(t, newest(t)-1)
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	database := raw(t, path)
	execute(t, database, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (1000, 1)")
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf("%s.schema-%d", path, newest(t)-1)
	for _, back := range []bool{true, false} {
		_, opened := sqlite.Open(t.Context(), path, sqlite.Options{})
		_, verified := sqlite.Verify(t.Context(), path)
		for _, err := range []error{opened, verified} {
			if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), fmt.Sprintf("schema version 1000, and this program knows versions up to %d", newest(t))) || strings.Contains(err.Error(), before) != back {
				t.Errorf("the program says %v", err)
			}
		}
		if err := os.Remove(before); err != nil && back {
			t.Fatal(err)
		}
	}
}

func TestNewDatabaseLeavesNoCopy(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	open(t, path)
	if left, err := filepath.Glob(path + ".schema-*"); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// A server is killed at each statement of a migration: the database then has
// the schema of before or of one of the steps, whole, and the next start ends
// what was begun.
func TestMigrationKilledAtEachStatement(t *testing.T) {
	t.Parallel()
	schemas := map[string]int64{}
	for _, version := range append(earlier(t), newest(t)) {
		path := fresh(t)
		if err := sqlite.MakeOld(t.Context(), path, version); err != nil {
			t.Fatal(err)
		}
		schemas[schemaOf(t, path)] = version
	}
	template := of(t, 1)
	data, err := os.ReadFile(template)
	if err != nil {
		t.Fatal(err)
	}
	want := golden(t, 1)
	met := map[int64]int{}
	for at := 1; ; at++ {
		dir := quick(t)
		path := filepath.Join(dir, "tandem.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		server := start(t, "migrating", path, fmt.Sprintf("%s=%d", childRound, at))
		said := server.acknowledged(t, map[string][]int{}, 1<<30)
		err := server.command.Wait()
		if len(said) > 0 {
			t.Fatalf("killed at statement %d: %q", at, said)
		}
		version, whole := schemas[schemaOf(t, path)]
		if !whole {
			t.Fatalf("killed at statement %d, the schema is none of ours:\n%s", at, schemaOf(t, path))
		}
		met[version]++
		store := open(t, path)
		if got := storetest.Picture(t, store); got != want {
			t.Fatalf("killed at statement %d, the store shows\n%s\nwant\n%s", at, got, want)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil { // they may share a small memory
			t.Fatal(err)
		}
		if err == nil { // it was not killed any more: that were all statements
			t.Logf("killed at %d statements, with these schemas left: %v", at-1, met)
			if at < 60 || len(met) != len(schemas) {
				t.Errorf("too few statements (%d) or schemas (%v) were met", at, met)
			}
			return
		}
	}
}

// schemaOf is all that the database's schema says.
func schemaOf(t *testing.T, path string) string {
	t.Helper()
	rows, err := raw(t, path).QueryContext(t.Context(),
		"SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// childMigrates brings the database up to date and is killed at a statement.
func childMigrates() error {
	var at int64
	if _, err := fmt.Sscan(os.Getenv(childRound), &at); err != nil {
		return err
	}
	return sqlite.Migrate(context.Background(), os.Getenv(childPath), func(statement int64) {
		if statement == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it arrives
		}
	})
}
