package sqlite_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/store/storetest"
)

// crowd lets the calls come while the disk is held up, so that all of them wait
// when it is free again, and returns their answers.
func crowd(t *testing.T, path string, store *sqlite.Store, calls []func() error) []error {
	t.Helper()
	disk := raw(t, path)
	execute(t, disk, "BEGIN IMMEDIATE")
	answers := make([]error, len(calls))
	var group sync.WaitGroup
	for i, call := range calls {
		group.Go(func() { answers[i] = call() })
	}
	for polls := 0; store.Statistics().Waiting < int64(len(calls)); polls++ {
		if polls == 4000 { // the disk cannot be held up for ever
			t.Fatalf("%d of %d changes wait", store.Statistics().Waiting, len(calls))
		}
		time.Sleep(time.Millisecond)
	}
	execute(t, disk, "ROLLBACK")
	group.Wait()
	return answers
}

func TestChangesThatWaitShareACommit(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	store := open(t, path)
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	before := store.Statistics()
	var calls []func() error
	for i := range 64 {
		calls = append(calls, func() error { return store.Apply(t.Context(), storetest.Step("s1", i)) })
	}
	for i, err := range crowd(t, path, store, calls) {
		if err != nil {
			t.Errorf("change %d: %v", i, err)
		}
	}
	after := store.Statistics()
	// The group that held the disk up, and the one with all who came meanwhile.
	if commits := after.Commits - before.Commits; commits > 2 {
		t.Errorf("%d commits for 64 changes that waited together, want 1 or 2", commits)
	}
	if changes := after.Changes - before.Changes; changes != 64 || after.Refused != 0 || after.Waiting != 0 {
		t.Errorf("%d changes, %d refused, %d waiting; want 64, 0, 0", changes, after.Refused, after.Waiting)
	}
	if trials, err := store.Trials(t.Context(), "s1"); err != nil || len(trials) != 64 {
		t.Errorf("%d trials of 64: %v", len(trials), err)
	}
}

func TestRefusedChangeDoesNotHarmItsNeighbours(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	store := open(t, path)
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	storetest.Apply(t, store, storetest.Step("s1", 1000))
	before := store.Statistics()
	var calls []func() error
	for i := range 60 {
		calls = append(calls, func() error {
			change := storetest.Step("s1", i)
			switch i % 3 {
			case 1: // fails at its last part
				change.Events[0].Sequence = 1001
			case 2:
				return store.Statement(t.Context(), fmt.Sprintf("INSERT INTO study (id) VALUES ('half %d')", i))
			}
			return store.Apply(t.Context(), change)
		})
	}
	for i, err := range crowd(t, path, store, calls) {
		switch {
		case i%3 == 0 && err != nil, i%3 == 1 && !problem.Is(err, problem.Conflict), i%3 == 2 && !problem.Is(err, problem.Internal):
			t.Errorf("change %d was answered %v", i, err)
		}
	}
	after := store.Statistics()
	if after.Commits-before.Commits > 2 || after.Changes-before.Changes != 20 || after.Refused-before.Refused != 40 {
		t.Errorf("before %+v, after %+v; want 20 changes made and 40 refused in at most 2 commits", before, after)
	}
	trials, err := store.Trials(t.Context(), "s1")
	if err != nil || len(trials) != 21 {
		t.Fatalf("%d trials, want 20 and the one before: %v", len(trials), err)
	}
	for i, one := range trials[:20] {
		if one.Number != 3*i {
			t.Errorf("trial %d is there", one.Number)
		}
	}
	if err := store.Err(); err != nil {
		t.Errorf("refusals broke the store: %v", err)
	}
}

// The lock of another program on the database passes, however long it takes.
func TestLockedDatabaseIsAPassingFault(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	store := open(t, path)
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	other := raw(t, path)
	execute(t, other, "BEGIN IMMEDIATE")
	if err := store.Apply(t.Context(), storetest.Step("s1", 0)); !problem.Is(err, problem.Unavailable) {
		t.Errorf("the change was answered %v", err)
	}
	if _, err := store.Study(t.Context(), "s1"); err != nil {
		t.Errorf("a reader was held up: %v", err)
	}
	execute(t, other, "ROLLBACK")
	if err := store.Err(); err != nil {
		t.Errorf("the store is broken: %v", err)
	}
	storetest.Apply(t, store, storetest.Step("s1", 0))
}
