package sqlite_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/storetest"
)

// A file that cannot grow stands for a disk that fails: once in the log, where
// a commit meets it, and once in the database, where only a checkpoint does.
func TestFailedDiskStopsTheStore(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		name  string
		limit int // bytes that a file may have
		most  int // changes of 64 KiB until it is noticed
	}{
		{"the log", 2 << 20, 2 << 20 / (64 << 10)},
		// Noticed too late, the log would grow to the limit as well: 300 changes.
		{"the database", 12 << 20, 12 << 20 / (64 << 10) * 5 / 4},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			path := fresh(t)
			acknowledged := map[string][]int{}
			server := start(t, "limited", path, fmt.Sprintf("%s=%d", childLimit, one.limit))
			said := server.acknowledged(t, acknowledged, math.MaxInt)
			if err := server.command.Wait(); err != nil {
				t.Fatalf("%v: %q", err, said)
			}
			stopped := func(line string) bool {
				return strings.HasPrefix(line, "broken: the store has stopped") && strings.Contains(line, "I/O")
			}
			if !slices.ContainsFunc(said, stopped) {
				t.Errorf("the server said %q", said)
			}
			if made := len(acknowledged["s1"]); made == 0 || made > one.most {
				t.Errorf("%d changes were acknowledged before the failure was noticed, want 1 to %d", made, one.most)
			}
			store := open(t, path) // the disk was replaced
			wantWhole(t, store, "s1", acknowledged["s1"])
			if studies, err := store.Studies(t.Context()); err != nil || len(studies) != 1 {
				t.Errorf("%d studies, want 1: %v", len(studies), err)
			}
		})
	}
}

func TestFullDiskRefusesUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	store := open(t, path)
	storetest.Apply(t, store, storetest.NewStudy("s1"))
	limit := func(pages int) {
		t.Helper()
		if _, err := store.Pragma(t.Context(), fmt.Sprintf("max_page_count = %d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(200)
	made := 0
	var err error
	for ; err == nil && made < 100; made++ {
		err = store.Apply(t.Context(), large("s1", made))
	}
	made--
	if !problem.Is(err, problem.Unavailable) || !strings.Contains(err.Error(), "full") || made == 0 {
		t.Fatalf("after %d changes: %v", made, err)
	}
	numbers := make([]int, made)
	for i := range numbers {
		numbers[i] = i
	}
	wantWhole(t, store, "s1", numbers) // the disk is full, but it can be read
	if trials, err := store.Trials(t.Context(), "s1"); err != nil || len(trials) != made {
		t.Errorf("%d trials, want the %d acknowledged: %v", len(trials), made, err)
	}
	if storetest.Broken(store) {
		t.Errorf("a full disk broke the store: %v", store.Err())
	}
	limit(100_000)
	storetest.Apply(t, store, large("s1", made))
}
