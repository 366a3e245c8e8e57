package postgres_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/postgres"
	"github.com/tandem-tune/tandem/store/storetest"
	"github.com/tandem-tune/tandem/store/storetest/model"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

func TestPostgreSQLIsAStore(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	database := connect(t, address)
	storetest.Run(t, func(t *testing.T) model.Everything {
		empty(t, address)
		return own(t, database)
	})
}

func TestTheNextOwnerHasEverything(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	var want string
	for round := range 3 {
		store := own(t, connect(t, address))
		if round == 0 {
			storetest.Fill(t, store)
			want = storetest.Picture(t, store)
		}
		if got := storetest.Picture(t, store); got != want {
			t.Errorf("owner %d sees\n%s\nwant\n%s", round+1, got, want)
		}
		for range 2 { // a second time does nothing
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestClosedStoreRefusesEverything(t *testing.T) {
	t.Parallel()
	store := own(t, connect(t, fresh(t)))
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
}

// TestTextThatPostgreSQLRefuses writes what a worker's command may have printed
// and what people may ask for: nothing of it may cost a change.
func TestTextThatPostgreSQLRefuses(t *testing.T) {
	t.Parallel()
	store := own(t, connect(t, fresh(t)))
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	change := storetest.Step("s1", 0)
	change.Events[0].Reason, change.Events[0].Worker = "a\x00b\xff", "w\x00"
	change.Trials[0].Trial.Reason = "a\x00b\xff"
	change.Trials[0].Trial.Last = map[string]trial.Float{"a\x00": 1}
	change.Receipt = &journal.Receipt{Key: "k", Request: "\x00", Answer: []byte(`"\u0000"`)}
	storetest.Apply(t, store, change)
	events, err := store.Events(t.Context(), "s1", 0, 10)
	if err != nil || len(events) != 1 || events[0].Reason != "a\uFFFDb\uFFFD" || events[0].Worker != "w\uFFFD" {
		t.Errorf("the events are %+v, %v", events, err)
	}
	if kept, err := store.Trial(t.Context(), "s1-0"); err != nil || kept.Reason != "a\x00b\uFFFD" || kept.Last["a\x00"] != 1 {
		t.Errorf("the trial is %+v, %v", kept, err)
	}
	for name, err := range map[string]error{
		"Study":   second(store.Study(t.Context(), "a\x00")),
		"Trial":   second(store.Trial(t.Context(), "a\xff")),
		"Token":   second(store.Token(t.Context(), "\x00")),
		"Receipt": second(store.Receipt(t.Context(), "\x00")),
		"Delete":  store.DeleteToken(t.Context(), "\x00"),
	} {
		if !problem.Is(err, problem.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is written is found by its key, also by statements that were planned when the tables
// were empty: none reads all events of a study.
func TestWritesDoNotReadAllEvents(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	store := own(t, connect(t, address))
	storetest.Apply(t, store, storetest.NewStudy("s"))
	const steps = 500
	for i := range steps {
		step := storetest.Step("s", i)
		step.Behind = &journal.Position{Study: "s", Sequence: int64(i)}
		storetest.Apply(t, store, step)
		again := step.Trials[0]
		again.Guard = &journal.Guard{LeaseEpoch: again.Trial.LeaseEpoch, State: again.Trial.State}
		storetest.Apply(t, store, journal.Change{Trials: []journal.TrialWrite{again}})
	}
	time.Sleep(time.Second) // as long as a session keeps its counts to itself
	storetest.Apply(t, store, storetest.NewStudy("t"))
	if read := number(t, address, "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables"); read > 50*steps {
		t.Errorf("%d rows were read in %d steps", read, steps)
	}
}

func second[T any](_ T, err error) error { return err }

// TestRefusalsOfAGroupAreTheirOwn hands in changes of which some are refused,
// so many at once that they share commits.
func TestRefusalsOfAGroupAreTheirOwn(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	store := own(t, connect(t, address))
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	const changes = 300
	var group sync.WaitGroup
	for i := range changes {
		change := storetest.Step("s1", i)
		if i%10 == 3 {
			change.Update = &journal.Study{ID: "missing"}
		}
		outcome := store.Submit(t.Context(), change)
		group.Go(func() {
			switch err := outcome.Wait(); {
			case i%10 == 3 && !problem.Is(err, problem.NotFound):
				t.Errorf("change %d, which is wrong: %v", i, err)
			case i%10 != 3 && err != nil:
				t.Errorf("change %d: %v", i, err)
			}
		})
	}
	group.Wait()
	if trials, err := store.Trials(t.Context(), "s1"); err != nil || len(trials) != changes*9/10 {
		t.Errorf("%d trials of %d: %v", len(trials), changes*9/10, err)
	}
	if commits := number(t, address, "SELECT written FROM owner"); commits >= changes {
		t.Errorf("%d changes took %d commits: none was shared", changes, commits)
	}
}

func TestAddressesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	good := fresh(t)
	for address, want := range map[string]string{
		"/srv/tandem":                                               "postgres://",
		"postgres://me:hunter2@[::1/x":                              "postgres://",
		"postgres://me:hunter2@h/x?port=a":                          "postgres://",
		"host=/tmp password=hunter2":                                "postgres://",
		good + "&synchronous_commit=off":                            "synchronous_commit",
		good + "&pool_max_conns=0":                                  "postgres://",
		strings.Replace(good, "/test_", "/absent_", 1):              "absent_",
		"postgres://me:hunter2@127.0.0.1:1/x?connect_timeout=2":     "127.0.0.1",
		"postgres://me:hunter2@/x?host=" + t.TempDir() + "/nothing": "nothing",
	} {
		database, err := postgres.Open(t.Context(), postgres.Options{URL: address, Password: "hunter3"})
		if err == nil {
			database.Close()
			t.Errorf("%s was opened", address)
			continue
		}
		if text := err.Error(); !strings.Contains(text, want) || strings.Contains(text, "hunter") {
			t.Errorf("%s: %s", address, text)
		}
	}
}

func TestASchemaOfANewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	execute(t, address, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)")
	_, err := postgres.Open(t.Context(), postgres.Options{URL: address})
	if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "999") {
		t.Errorf("it was opened: %v", err)
	}
}

// TestServersThatStartTogetherMakeOneSchema opens an empty database from
// several sides.
func TestServersThatStartTogetherMakeOneSchema(t *testing.T) {
	t.Parallel()
	if shared == nil {
		t.Skip("there is no PostgreSQL server here")
	}
	address, err := shared.Create(t.Context(), "started_together")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			database, err := postgres.Open(t.Context(), postgres.Options{URL: address})
			if err != nil {
				t.Error(err)
				return
			}
			database.Close()
		})
	}
	group.Wait()
	if rows := number(t, address, "SELECT count(*) FROM owner"); rows != 1 {
		t.Errorf("%d rows say who owns the database", rows)
	}
}

// TestAGuestMakesTokensBesideTheOwner is the last resort of who has lost the
// last token.
func TestAGuestMakesTokensBesideTheOwner(t *testing.T) {
	t.Parallel()
	address := fresh(t)
	store := own(t, connect(t, address))
	tokens, closeTokens := connect(t, address).Guest()
	defer closeTokens()
	_, token, err := auth.Issue(t.Context(), tokens, auth.Request{Name: "guest", Scope: access.Admin})
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := store.Token(t.Context(), token.ID); err != nil || seen.Hash != token.Hash {
		t.Errorf("the owner sees %+v, %v", seen, err)
	}
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	if storetest.Broken(store) {
		t.Errorf("the owner has stopped: %v", store.Err())
	}
}

// stand lets another server stand by until it owns the database.
func stand(t *testing.T, database *postgres.Database) chan *postgres.Store {
	t.Helper()
	won := make(chan *postgres.Store, 1)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		store, err := database.Stand(ctx, postgres.Candidate{Name: "next", Address: "http://next"})
		if err == nil {
			won <- store
		}
	}()
	return won
}

// await is the store of who stood by, within a time that is no measure.
func await(t *testing.T, won chan *postgres.Store) *postgres.Store {
	t.Helper()
	select {
	case store := <-won:
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		return store
	case <-time.After(5 * time.Minute):
		t.Fatal("nobody took the database over")
		return nil
	}
}
