package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/postgres"
	"github.com/tandem-tune/tandem/store/storetest"
)

func TestWhatPromisesStandOnIsOn(t *testing.T) {
	t.Parallel()
	database := connect(t, fresh(t))
	for setting, want := range map[string]string{
		"synchronous_commit": "on", "statement_timeout": "30s", "idle_in_transaction_session_timeout": "5s", "application_name": "tandem",
		"transaction_isolation": "read committed",
	} {
		reading, writing, err := database.Settings(t.Context(), setting)
		if err != nil || reading != want || writing != want {
			t.Errorf("%s is %s for reads and %s for writes, %v; want %s", setting, reading, writing, err, want)
		}
	}
}

// TestOneOfManyOwnsTheDatabase lets several servers stand at once: each gets
// its turn when the one before has left, and its term is the next.
func TestOneOfManyOwnsTheDatabase(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	const servers = 4
	won := make(chan *postgres.Store, servers)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range servers {
		database := connect(t, address)
		go func() {
			store, err := database.Stand(ctx, postgres.Candidate{Name: fmt.Sprint(i), Address: fmt.Sprintf("http://%d", i)})
			if err == nil {
				won <- store
			}
		}()
	}
	observer := connect(t, address)
	for turn := range servers {
		store := await(t, won)
		select {
		case other := <-won:
			t.Fatalf("terms %d and %d are at the same time", store.Owner().Term, other.Owner().Term)
		case <-time.After(50 * time.Millisecond):
		}
		seen, err := observer.Look(t.Context())
		if err != nil || seen != store.Owner() || seen.Term != int64(turn)+1 || !seen.Alive {
			t.Errorf("turn %d: the database says %+v, %v; its owner %+v", turn, seen, err, store.Owner())
		}
		storetest.Apply(t, store, storetest.NewStudy(fmt.Sprintf("s%d", turn)))
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if seen, err := observer.Look(t.Context()); err != nil || seen.Alive && seen.Term == store.Owner().Term {
			t.Errorf("turn %d: an owner that left is said to be alive: %+v, %v", turn, seen, err)
		}
	}
}

// TestAServerThatWasReplacedAcknowledgesNothing lets one stand still while
// another takes over, and then go on as if nothing had happened.
func TestAServerThatWasReplacedAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	before := own(t, connect(t, address))
	storetest.Apply(t, before, storetest.NewStudy("s1"))
	before.Mute()
	execute(t, address, "UPDATE pulse SET at = '-infinity'") // as if it had been silent for long
	next := await(t, stand(t, connect(t, address)))
	picture := storetest.Picture(t, next)
	for i := range 3 {
		if err := before.Apply(t.Context(), storetest.Step("s1", i)); !problem.Is(err, problem.Unavailable) {
			t.Errorf("write %d of a server that was replaced: %v", i, err)
		}
	}
	if !storetest.Broken(before) || before.Err() == nil {
		t.Error("it does not know that its term is over")
	}
	if _, err := before.Study(t.Context(), "s1"); !problem.Is(err, problem.Unavailable) {
		t.Errorf("it still answers: %v", err)
	}
	if got := storetest.Picture(t, next); got != picture {
		t.Errorf("it wrote:\n%s\nwant\n%s", got, picture)
	}
	storetest.Apply(t, next, storetest.Step("s1", 0))
}

// TestAnOwnerThatCannotReachItsDatabaseGivesUp cuts it off: what it cannot say
// for so long that another server may own the database ends its term.
func TestAnOwnerThatCannotReachItsDatabaseGivesUp(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	cable, cabled := through(t, address)
	store := own(t, connect(t, cabled))
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	cable.cut.Store(true)
	cable.breakAll()
	if err := store.Apply(t.Context(), storetest.Step("s1", 0)); !problem.Is(err, problem.Unavailable) {
		t.Errorf("a write without a database: %v", err)
	}
	select {
	case <-store.Broken():
	case <-time.After(5 * time.Minute):
		t.Fatal("it still counts itself as the owner")
	}
	next := await(t, stand(t, connect(t, address)))
	if trials, err := next.Trials(t.Context(), "s1"); err != nil || len(trials) != 0 {
		t.Errorf("what was refused is there: %v, %v", trials, err)
	}
}

// TestACommitInDoubtIsLookedUp breaks the connection around a commit.
func TestACommitInDoubtIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fate   fate
		stored bool
	}{
		"before the database hears of it": {requestLost, false},
		"before the answer comes":         {answerLost, true},
		"while it is on its way":          {overtaken, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			cable, cabled := through(t, address)
			store := own(t, connect(t, cabled))
			storetest.Apply(t, store, storetest.NewStudy("s1"))
			for i := range 3 {
				cable.next.Store(int32(c.fate))
				err := store.Apply(t.Context(), storetest.Step("s1", i))
				if c.stored && err != nil || !c.stored && !problem.Is(err, problem.Unavailable) {
					t.Errorf("commit %d: %v", i, err)
				}
				trials, readErr := store.Trials(t.Context(), "s1")
				if want := i + 1; readErr != nil || c.stored && len(trials) != want || !c.stored && len(trials) != 0 {
					t.Errorf("commit %d was answered with %v, and there are %d trials, %v", i, err, len(trials), readErr)
				}
				if fate(cable.next.Load()) != answered {
					t.Fatal("the commit did not pass the wire")
				}
			}
			if err := store.Err(); err != nil {
				t.Errorf("a connection that broke ended the term: %v", err)
			}
		})
	}
}

// ownServer starts a server of the database's for the test alone, which may
// stop and spoil it, with an empty database.
func ownServer(t *testing.T) (server *launch.Database, address string) {
	t.Helper()
	if shared == nil {
		t.Skip("there is no PostgreSQL server here")
	}
	server, err := launch.NewDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Remove(); err != nil {
			t.Error(err)
		}
	})
	if address, err = server.Create(t.Context(), "own"); err != nil {
		t.Fatal(err)
	}
	return server, address
}

// TestTheDatabaseCrashesWhileOthersWrite stops and starts the database's server
// again and again: what was acknowledged is there, and nothing twice.
func TestTheDatabaseCrashesWhileOthersWrite(t *testing.T) {
	t.Parallel()
	server, address := ownServer(t)
	database := connect(t, address)
	store := own(t, database)
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	acknowledged, doubt := 0, false
	write := func() error {
		err := store.Apply(t.Context(), storetest.Step("s1", acknowledged))
		if doubt && problem.Is(err, problem.Conflict) {
			err = nil
		}
		if err == nil {
			acknowledged, doubt = acknowledged+1, false
		} else if !problem.Is(err, problem.Unavailable) {
			t.Fatalf("write %d: %v", acknowledged, err)
		}
		return err
	}
	// again writes in a term of its own if the last one ended. The database has to run.
	again := func() error {
		if store.Err() != nil {
			_ = store.Close()
			store, doubt = own(t, database), true // its last write may have been made
		}
		return write()
	}
	for crash := range 3 {
		for range 20 + 7*crash {
			_ = again()
		}
		stopped := make(chan struct{})
		go func() {
			server.Stop()
			close(stopped)
		}()
		for write() == nil { // until it is felt
		}
		<-stopped
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(5 * time.Minute); again() != nil; {
			if time.Now().After(deadline) {
				t.Fatal("nothing was acknowledged for two minutes after the database's return")
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	trials, err := store.Trials(t.Context(), "s1")
	if err != nil || len(trials) != acknowledged {
		t.Errorf("%d trials of %d that were acknowledged: %v", len(trials), acknowledged, err)
	}
}

// TestADamagedPageIsNotServed flips a bit of what the database's server has on
// its disk.
func TestADamagedPageIsNotServed(t *testing.T) {
	t.Parallel()
	server, address := ownServer(t)
	database := connect(t, address)
	store := own(t, database)
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	for i := range 5 {
		storetest.Apply(t, store, storetest.Step("s1", i))
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if database.Unchecked() {
		t.Error("the database is said to have no checksums")
	}
	direct, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	var path string
	if err := direct.QueryRow(t.Context(), "SELECT pg_relation_filepath('event')").Scan(&path); err != nil {
		t.Fatal(err)
	}
	if _, err := direct.Exec(t.Context(), "CHECKPOINT"); err != nil { // so that the log restores nothing of it
		t.Fatal(err)
	}
	if err := direct.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	file := server.File(path)
	content, err := os.ReadFile(file)
	if err != nil || len(content) < 8192 {
		t.Fatalf("%s has %d bytes: %v", file, len(content), err)
	}
	content[8100] ^= 0x10 // rows fill a page from its end
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	store = own(t, connect(t, address))
	if events, err := store.Events(t.Context(), "s1", 0, 100); !problem.Is(err, problem.Unavailable) || store.Err() == nil {
		t.Errorf("%d events, %v; the store says %v", len(events), err, store.Err())
	}
	if err := store.Apply(t.Context(), storetest.Step("s1", 5)); !problem.Is(err, problem.Unavailable) {
		t.Errorf("a write to the damaged database: %v", err)
	}
}
