package sqlite_test

import (
	"fmt"
	"math"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/lossydisk"
	"github.com/tandem-tune/tandem/store/sqlite"
)

// cutOff runs a server on a disk, cuts the disk's power behind so many
// acknowledgements, and returns those and where the disk's content was recovered.
func cutOff(t *testing.T, role string, seed uint64, after int) (acknowledged map[string][]int, path string) {
	t.Helper()
	disk := lossydisk.Require(t)
	server := start(t, role, filepath.Join(disk.Path, "tandem.db"), fmt.Sprintf("%s=%d", childRound, seed), childPower+"=1")
	acknowledged = map[string][]int{}
	if said := server.acknowledged(t, acknowledged, after); len(said) > 0 {
		t.Fatalf("the server said %q", said)
	}
	disk.Cut(seed)
	if err := server.command.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	server.acknowledged(t, acknowledged, math.MaxInt) // what it said before it died counts
	_ = server.command.Wait()                         // it was killed
	recovered := t.TempDir()
	if err := disk.Recover(recovered); err != nil {
		t.Fatal(err)
	}
	return acknowledged, filepath.Join(recovered, "tandem.db")
}

// The power fails in the middle of the work: whatever was acknowledged is there,
// whatever is there is whole, and the server starts. "scripts/test long" cuts it 20
// times as often.
func TestPowerLossLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	total := 0
	for seed := range uint64(effort.Times(t, 8)) {
		acknowledged, path := cutOff(t, "writer", seed, 1+int(seed*67%400))
		store := open(t, path)
		for id, numbers := range acknowledged {
			wantWhole(t, store, id, numbers)
			total += len(numbers)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlite.Verify(t.Context(), path); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if t.Failed() {
			t.Fatalf("the power was cut with seed %d", seed)
		}
	}
	t.Logf("%d acknowledged, none lost", total)
}

// The same with SQLite's usual setting for a write-ahead log, which promises no
// durability: rows must be lost, or the test above shows nothing.
func TestPowerLossWithoutFullSyncsLosesRows(t *testing.T) {
	t.Parallel()
	lost, total := 0, 0
	for seed := range uint64(effort.Times(t, 3)) {
		acknowledged, path := cutOff(t, "careless", seed*6, 100) // nothing unsynced survives
		store := open(t, path)
		for id, numbers := range acknowledged {
			trials, err := store.Trials(t.Context(), id)
			if err != nil && !problem.Is(err, problem.NotFound) {
				t.Fatal(err)
			}
			total += len(numbers)
			lost += max(len(numbers)-len(trials), 0)
		}
	}
	t.Logf("%d of %d acknowledged rows were lost", lost, total)
	if lost == 0 {
		t.Error("nothing was lost: this disk is not as lossy as it should be")
	}
}
