package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/store/storetest"
	"github.com/tandem-tune/tandem/study/journal"
)

// files are the contents of a data folder's files, by name.
type files map[string][]byte

// quick is a folder on a disk that need not be waited for, if there is a large
// one: for tests of what is in files, and not of when it gets there.
func quick(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	var room syscall.Statfs_t
	if err := syscall.Statfs(memory, &room); err != nil || int64(room.Bavail)*room.Bsize < 1<<30 {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "tandem-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// taken copies the files of a store, as a kill at this moment would leave them.
func taken(t *testing.T, path string) files {
	t.Helper()
	found := files{}
	for _, suffix := range []string{"", "-wal", ".acknowledged", ".unclean"} {
		data, err := os.ReadFile(path + suffix)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		found[suffix] = data
	}
	return found
}

// put writes the files to a folder of their own and returns the database's path.
func (f files) put(dir string) (string, error) {
	path := filepath.Join(dir, "tandem.db")
	for suffix, data := range f {
		if err := os.WriteFile(path+suffix, data, 0o600); err != nil {
			return "", err
		}
	}
	return path, nil
}

// answers are everything the store answers: to lists, and to questions for
// single things that are in them.
func answers(ctx context.Context, store *sqlite.Store) (string, error) {
	all, err := storetest.Look(ctx, store)
	if err != nil {
		return "", err
	}
	studies, err := store.Studies(ctx)
	if err != nil {
		return "", err
	}
	for _, one := range studies {
		named, err := store.Study(ctx, one.Definition.Name)
		if err != nil {
			return "", err
		}
		trials, err := store.Trials(ctx, one.ID)
		if err != nil {
			return "", err
		}
		all += named.ID
		for _, t := range trials {
			found, err := store.Trial(ctx, t.ID)
			if err != nil {
				return "", err
			}
			all += fmt.Sprint(found.State, found.Results, found.Checkpoint)
		}
		// Page by page, as those who follow the events do.
		for after := int64(0); ; {
			page, err := store.Events(ctx, one.ID, after, 3)
			if err != nil {
				return "", err
			}
			if len(page) == 0 {
				break
			}
			after = page[len(page)-1].Sequence
			all += fmt.Sprint(page)
		}
	}
	tokens, err := store.Tokens(ctx)
	if err != nil {
		return "", err
	}
	for _, one := range tokens {
		found, err := store.Token(ctx, one.ID)
		if err != nil {
			return "", err
		}
		all += fmt.Sprint(found)
	}
	architectures, err := store.Architectures(ctx, 1)
	if err != nil {
		return "", err
	}
	quotas, err := store.PoolEntries(ctx, "quota")
	if err != nil {
		return "", err
	}
	return all + fmt.Sprint(architectures, quotas), nil
}

// wellFilled makes a store with something of everything, over many pages.
func wellFilled(t *testing.T) (*sqlite.Store, string) {
	t.Helper()
	path := fresh(t)
	store := open(t, path)
	storetest.Fill(t, store)
	storetest.Apply(t, store, storetest.NewStudy("s3"))
	for number := range 60 {
		storetest.Apply(t, store, storetest.Step("s3", number))
	}
	for number := range 20 {
		if err := store.AppendLog(t.Context(), "s3-0", 0, int64(number*500), string(bytes.Repeat([]byte{byte('a' + number)}, 500))); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Apply(t, store, journal.Change{Delete: "s2"}) // leaves free pages behind
	return store, path
}

// A file that was damaged while no server ran: a read gives the answer that was
// given before, or an error, and never anything else.
func TestDamageIsNeverServed(t *testing.T) {
	t.Parallel()
	store, path := wellFilled(t)
	want, err := answers(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	killed := taken(t, path) // most of it is in the log
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	closed := taken(t, path)
	if len(killed["-wal"]) < 100_000 || len(closed[""]) < 100_000 || len(closed["-wal"]) > 0 {
		t.Fatalf("a log of %d bytes and a database of %d are too small for this test", len(killed["-wal"]), len(closed[""]))
	}
	kinds := []struct {
		name   string
		from   files
		suffix string
		count  int
		damage func(random *rand.Rand, number int, data []byte) []byte
	}{
		{"a bit of the database", closed, "", effort.Times(t, 50), flip},
		{"a bit of the log", killed, "-wal", effort.Times(t, 20), flip},
		{"the database cut off", closed, "", effort.Times(t, 20), cut},
		{"the log cut off", killed, "-wal", effort.Times(t, 10), cut},
		{"a page of zeros", closed, "", len(closed[""]) / 4096, zeroPage},
		{"a page of the log of zeros", killed, "-wal", effort.Times(t, 10), zeroPage},
	}
	for i, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(2026, uint64(i)))
			refused, same := 0, 0
			for number := range kind.count {
				damaged := maps.Clone(kind.from)
				damaged[kind.suffix] = kind.damage(random, number, bytes.Clone(damaged[kind.suffix]))
				switch got, err := reopened(t, damaged); {
				case err != nil:
					refused++
				case got == want:
					same++
				default:
					t.Errorf("damage %d changed the answers, and nobody was told", number)
				}
			}
			t.Logf("%d refused, %d without a difference", refused, same)
			if refused == 0 {
				t.Error("nothing was refused, so nothing was tested")
			}
		})
	}
}

func flip(random *rand.Rand, _ int, data []byte) []byte {
	data[random.IntN(len(data))] ^= 1 << random.IntN(8)
	return data
}

func cut(random *rand.Rand, number int, data []byte) []byte {
	switch number {
	case 0:
		return nil
	case 1:
		return data[:len(data)-1]
	}
	return data[:random.IntN(len(data))]
}

func zeroPage(random *rand.Rand, number int, data []byte) []byte {
	at := number * 4096
	if at >= len(data) {
		at = random.IntN(len(data)) &^ 4095
	}
	clear(data[at:min(at+4096, len(data))])
	return data
}

// reopened are the answers of a server that is started on the files.
func reopened(t *testing.T, f files) (_ string, err error) {
	t.Helper()
	dir := quick(t)
	defer os.RemoveAll(dir) //nolint:errcheck // it is removed at the test's end at the latest
	path, err := f.put(dir)
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		return "", err
	}
	got, err := answers(t.Context(), store)
	if err == nil {
		err = store.Close()
	} else {
		_ = store.Close() // it was refused already
	}
	return got, err
}

// damageOf changes a closed database by SQL, past the triggers that would keep
// the tallies in step.
func damageOf(t *testing.T, path string, statements ...string) {
	t.Helper()
	database := raw(t, path)
	rows, err := database.QueryContext(t.Context(), "SELECT 'DROP TRIGGER ' || name FROM sqlite_schema WHERE type = 'trigger'")
	if err != nil {
		t.Fatal(err)
	}
	var drops []string
	for rows.Next() {
		var drop string
		if err := rows.Scan(&drop); err != nil {
			t.Fatal(err)
		}
		drops = append(drops, drop)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	execute(t, database, slices.Concat([]string{"PRAGMA foreign_keys = OFF"}, drops, statements, []string{"UPDATE server SET schema_checksum = 0"})...)
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
}

// What a read is refused for names the file, the table and the row, and says
// what to do.
func TestDamagedRowsAreNamed(t *testing.T) {
	t.Parallel()
	store, path := wellFilled(t)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	whole := taken(t, path)
	ctx := t.Context()
	reports := func(s *sqlite.Store) error { _, err := s.Reports(ctx, "s3-7"); return err }
	trials := func(s *sqlite.Store) error { _, err := s.Trials(ctx, "s3"); return err }
	trial := func(s *sqlite.Store) error { _, err := s.Trial(ctx, "s3-7"); return err }
	events := func(s *sqlite.Store) error { _, err := s.Events(ctx, "s3", 0, math.MaxInt32); return err }
	studies := func(s *sqlite.Store) error { _, err := s.Studies(ctx); return err }
	for name, one := range map[string]struct {
		statement string
		read      func(*sqlite.Store) error // nil where the start is refused
		names     []string
	}{
		"a better result": {
			`UPDATE report SET document = replace(document, '"loss":1', '"loss":0') WHERE trial = 's3-7'`,
			reports, []string{"table report", "epoch 1", "trial s3-7", "checksum"},
		},
		"a report is gone":    {"DELETE FROM report WHERE trial = 's3-7'", reports, []string{"table report", `"s3-7"`, "0 rows", "1 were written"}},
		"a trial is gone":     {"DELETE FROM trial WHERE id = 's3-7'", trials, []string{"table trial", `"s3"`, "59 rows", "60 were written"}},
		"one trial is gone":   {"DELETE FROM trial WHERE id = 's3-7'", trial, []string{"table trial"}},
		"another trial state": {"UPDATE trial SET state = 'done' WHERE id = 's3-7'", trial, []string{"table trial", "s3-7"}},
		"an older trial": {
			"UPDATE tally SET total = total - 5 WHERE kind = 'trial' AND owner = 's3'", trials, []string{"table trial", "newest version"},
		},
		"an event in between": {"DELETE FROM event WHERE study = 's3' AND sequence = 9", events, []string{"table event", "59 rows"}},
		"the last event":      {"DELETE FROM event WHERE study = 's3' AND sequence = 60", events, []string{"table event", "59 rows"}},
		"a study is gone":     {"DELETE FROM study WHERE id = 's1'", studies, []string{"table study"}},
		"a study's status":    {"UPDATE study SET status = 'completed' WHERE id = 's1'", studies, []string{"table study", "s1"}},
		"a study's space":     {"UPDATE study SET definition = replace(definition, 'name', 'nane') WHERE id = 's1'", studies, []string{"table study", "s1"}},
		"a study's order":     {"UPDATE study SET position = 99 WHERE id = 's1'", studies, []string{"table study", "s1"}},
		"a token is gone":     {"DELETE FROM token WHERE id = 't1'", nil, []string{"table token"}},
		"a receipt is gone":   {"DELETE FROM receipt", nil, []string{"table receipt"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := whole.put(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			damageOf(t, path, one.statement)
			_, verified := sqlite.Verify(ctx, path)
			store, refused := sqlite.Open(ctx, path, sqlite.Options{})
			if refused == nil {
				defer store.Close() //nolint:errcheck // it is broken, and says so
				if one.read == nil {
					t.Fatal("the server starts")
				}
				refused = one.read(store)
				if !storetest.Broken(store) {
					t.Error("the store goes on")
				}
			}
			for what, err := range map[string]error{"the server": refused, "verify": verified} {
				if !problem.Is(err, problem.Unavailable) || !containsAll(err.Error(), path, "damaged", "tandem restore") {
					t.Errorf("%s says %v", what, err)
				}
			}
			if !containsAll(refused.Error(), one.names...) {
				t.Errorf("the server says %v, want %q in it", refused, one.names)
			}
		})
	}
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !bytes.Contains([]byte(text), []byte(part)) })
}

// SQLite takes an empty file for a new database and a damaged log for one that
// ends earlier. The number of the last acknowledged commit knows better.
func TestLostCommitsAreNoticed(t *testing.T) {
	t.Parallel()
	store, path := wellFilled(t)
	killed := taken(t, path)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(files){
		"an empty database": func(f files) { f[""], f["-wal"] = nil, nil },
		"no log":            func(f files) { delete(f, "-wal") },
		"a log without its last page": func(f files) {
			f["-wal"] = f["-wal"][:len(f["-wal"])-4096]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := maps.Clone(killed)
			change(changed)
			if _, err := reopened(t, changed); !problem.Is(err, problem.Unavailable) || !containsAll(err.Error(), "acknowledged", "restore", ".acknowledged") {
				t.Errorf("the server says %v", err)
			}
			delete(changed, ".acknowledged") // as the message says, if it was meant so
			if _, err := reopened(t, changed); err != nil && containsAll(err.Error(), "acknowledged") {
				t.Errorf("the server says %v", err)
			}
		})
	}
	for name, text := range map[string]string{"torn": "0000000000", "of zeros": string(make([]byte, 30)), "no longer right": "99999999999999999999 00000000\n"} {
		changed := maps.Clone(killed)
		changed[".acknowledged"] = []byte(text)
		if _, err := reopened(t, changed); err != nil {
			t.Errorf("a file that is %s: %v", name, err)
		}
	}
}

// Many read while one writes, and each sees lists that are whole: the tallies
// belong to the same state of the database as the rows.
func TestListsAreProvenWhileTheyGrow(t *testing.T) {
	t.Parallel()
	store := open(t, fresh(t))
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	done := make(chan struct{})
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				// What is deleted between two reads is not found any more.
				if _, err := storetest.Look(context.WithoutCancel(t.Context()), store); err != nil && !problem.Is(err, problem.NotFound) {
					t.Error(err)
					return
				}
				runtime.Gosched()
			}
		})
	}
	for number := range 50 {
		storetest.Apply(t, store, storetest.Step("s1", number))
	}
	storetest.Apply(t, store, journal.Change{Delete: "s1"})
	close(done)
	group.Wait()
}
