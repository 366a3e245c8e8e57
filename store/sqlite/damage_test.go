package sqlite_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/store/storetest"
)

// filled makes a database of some pages, closed as it should be.
func filled(t *testing.T) (path string) {
	t.Helper()
	path = fresh(t)
	store := open(t, path)
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	for number := range 20 {
		storetest.Apply(t, store, large("s1", number))
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// scratch overwrites the file from the offset on.
func scratch(t *testing.T, path string, offset, count int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if count < 0 {
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		count = info.Size() - offset
	}
	if _, err := file.WriteAt(bytes.Repeat([]byte{0xA5}, int(count)), offset); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedDatabaseIsRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, path string){
		"its beginning": func(t *testing.T, path string) { scratch(t, path, 0, 100) },
		"its end, after a crash": func(t *testing.T, path string) {
			scratch(t, path, 200_000, -1)
			// The mark of a server that did not close its database.
			if err := os.WriteFile(path+".unclean", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filled(t)
			damage(t, path)
			for range 2 { // it stays refused
				_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
				if !problem.Is(err, problem.Unavailable) || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), "backup") {
					t.Errorf("the server says %v", err)
				}
			}
		})
	}
}

func TestDamageThatIsFoundLaterStopsTheStore(t *testing.T) {
	t.Parallel()
	path := filled(t)
	scratch(t, path, 200_000, -1)
	store := open(t, path)
	if _, err := store.Events(t.Context(), "s1", 0, 1000); !problem.Is(err, problem.Unavailable) {
		t.Fatalf("damaged events were read: %v", err)
	}
	if !storetest.Broken(store) {
		t.Fatal("the store goes on")
	}
	if err := store.Apply(t.Context(), storetest.NewStudy("s2")); !problem.Is(err, problem.Unavailable) || err.Error() != store.Err().Error() {
		t.Errorf("a change was answered %v", err)
	}
}

func TestDatabaseOfANewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	path := filled(t)
	execute(t, raw(t, path), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)")
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("the server says %v", err)
	}
}

func TestDatabaseOfAnotherProgramIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, statements := range map[string][]string{
		"with tables":             {"CREATE TABLE photo (id INTEGER)", "INSERT INTO photo VALUES (1)"},
		"with its own mark":       {"PRAGMA application_id = 252006674", "PRAGMA user_version = 3"},
		"with a table like ours":  {"CREATE TABLE study (id TEXT)"},
		"with its mark and table": {"PRAGMA application_id = 1", "CREATE TABLE trial (id TEXT)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := fresh(t)
			database := raw(t, path)
			execute(t, database, statements...)
			if err := database.Close(); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); !problem.Is(err, problem.Invalid) {
				t.Errorf("the server says %v", err)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed, or is gone: %v", err)
			}
			if _, err := os.Stat(path + ".unclean"); err == nil {
				t.Error("the mark of an open database was left behind")
			}
		})
	}
}
