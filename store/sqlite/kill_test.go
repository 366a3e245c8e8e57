package sqlite_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/sqlite"
)

// A server is killed in the middle of its work, again and again on the same
// database: whatever it acknowledged is there, also in the end, and whatever is
// there is whole.
func TestKilledServerLosesNothingItAcknowledged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tandem.db") // a disk that is waited for, else it acknowledges much more than is read
	random := rand.New(rand.NewPCG(2026, 1))
	all := map[string][]int{}
	for round := range 8 {
		acknowledged := map[string][]int{}
		server := start(t, "writer", path, fmt.Sprintf("%s=%d", childRound, round))
		said := server.acknowledged(t, acknowledged, 1+random.IntN(500))
		if err := server.command.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		// What it said before it died counts, read or not.
		said = append(said, server.acknowledged(t, acknowledged, math.MaxInt)...)
		if len(said) > 0 {
			t.Fatalf("the server said %q", said)
		}
		if err := server.command.Wait(); err == nil {
			t.Fatal("the server was not killed")
		}
		store := open(t, path)
		for id, numbers := range acknowledged {
			wantWhole(t, store, id, numbers)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, acknowledged)
	}
	store := open(t, path)
	for id, numbers := range all {
		wantWhole(t, store, id, numbers)
	}
}

// wantWhole checks that the acknowledged steps of a study are there, at most
// one more, and no half of any.
func wantWhole(t *testing.T, store *sqlite.Store, id string, acknowledged []int) {
	t.Helper()
	ctx := t.Context()
	trials, err := store.Trials(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	for i, number := range acknowledged {
		if number != i {
			t.Fatalf("%s: acknowledgement %d was for step %d", id, i, number)
		}
	}
	// One that was committed may not have been acknowledged any more.
	if len(trials) < len(acknowledged) || len(trials) > len(acknowledged)+1 {
		t.Errorf("%s: %d trials, but %d were acknowledged", id, len(trials), len(acknowledged))
	}
	events, err := store.Events(ctx, id, 0, math.MaxInt32)
	if err != nil || len(events) != len(trials) {
		t.Errorf("%s: %d events with %d trials: %v", id, len(events), len(trials), err)
	}
	for _, one := range trials {
		if reports, err := store.Reports(ctx, one.ID); err != nil || len(reports) != 1 {
			t.Errorf("trial %s has %d reports, want 1: %v", one.ID, len(reports), err)
		}
	}
	if _, err := store.Study(ctx, id); problem.Is(err, problem.NotFound) {
		t.Errorf("study %s is gone", id)
	}
}
