package sqlite_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/store/storetest"
	"github.com/tandem-tune/tandem/store/storetest/model"
)

// open opens the store and closes it when the test ends.
func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store
}

// fresh is the path of a database that is not there yet.
func fresh(t *testing.T) string {
	t.Helper()
	return filepath.Join(quick(t), "tandem.db")
}

// raw opens the file past the store, as another program would.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	database, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	database.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	})
	return database
}

func execute(t *testing.T, database *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := database.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func TestSQLiteIsAStore(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	empty := taken(t, path) // its tables are made once for all stories
	storetest.Run(t, func(t *testing.T) model.Everything {
		path, err := empty.put(quick(t))
		if err != nil {
			t.Fatal(err)
		}
		return open(t, path)
	})
}

func TestReopenedStoreHasEverything(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	var want string
	for round := range 3 {
		store := open(t, path)
		if round == 0 {
			storetest.Fill(t, store)
			want = storetest.Picture(t, store)
		}
		if got := storetest.Picture(t, store); got != want {
			t.Errorf("opened %d times, the store is\n%s\nwant\n%s", round+1, got, want)
		}
		for range 2 { // a second time does nothing
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if left, err := filepath.Glob(path + "-*"); err != nil || len(left) > 0 {
			t.Errorf("a closed store left %v, %v: all of it should be in one file", left, err)
		}
	}
}

func TestClosedStoreRefusesEverything(t *testing.T) {
	t.Parallel()
	store := open(t, fresh(t))
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Apply":  func() error { return store.Apply(ctx, storetest.Step("s1", 0)) },
		"Study":  func() error { _, err := store.Study(ctx, "s1"); return err },
		"Trials": func() error { _, err := store.Trials(ctx, "s1"); return err },
		"Append": func() error { return store.AppendLog(ctx, "s1-0", 0, 0, "x") },
		"Purge":  func() error { _, err := store.PurgeReceipts(ctx, time.Now()); return err },
		"Tokens": func() error { _, err := store.Tokens(ctx); return err },
	} {
		if err := call(); !problem.Is(err, problem.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := store.Err(); err != nil {
		t.Errorf("a closed store is not a broken one: %v", err)
	}
}

func TestCloseKeepsWhatItAcknowledged(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	store := open(t, path)
	var acknowledged [16]int
	var group sync.WaitGroup
	var started atomic.Int64
	for writer := range acknowledged {
		group.Go(func() {
			id := fmt.Sprintf("s%d", writer)
			err := store.Apply(t.Context(), storetest.NewStudy(id))
			for ; err == nil; acknowledged[writer]++ {
				started.Add(1)
				err = store.Apply(t.Context(), storetest.Step(id, acknowledged[writer]))
			}
			acknowledged[writer]-- // the loop counted the one that was refused
			if !problem.Is(err, problem.Unavailable) {
				t.Errorf("writer %d was told %v", writer, err)
			}
		})
	}
	for started.Load() < 200 {
		time.Sleep(time.Millisecond)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	store = open(t, path)
	for writer, want := range acknowledged {
		if want < 0 {
			continue // not even its study was inserted in time
		}
		trials, err := store.Trials(t.Context(), fmt.Sprintf("s%d", writer))
		if err != nil || len(trials) != want {
			t.Errorf("writer %d: %d trials of %d acknowledged: %v", writer, len(trials), want, err)
		}
	}
}

func TestWhatPromisesStandOnIsOn(t *testing.T) {
	t.Parallel()
	store := open(t, fresh(t))
	for setting, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2" /* FULL */, "foreign_keys": "1", "wal_autocheckpoint": "0", "application_id": "1414415437",
	} {
		if got, err := store.Pragma(t.Context(), setting); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", setting, got, err, want)
		}
	}
}

func TestFilesBelongToTheOwnerAlone(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	store := open(t, path)
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 6 { // the database, its log and index, the lock, the mark, the last commit
		t.Errorf("files %v, %v", files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, %v", file, info.Mode(), err)
		}
	}
}

func TestAnyPathWillDo(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "a?b", "a#b", "a%20b", "a&mode=memory", "ünïcode", "a:b", "'quoted'"} {
		path := filepath.Join(t.TempDir(), name)
		storetest.Apply(t, open(t, path), storetest.NewStudy("s1"))
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}
