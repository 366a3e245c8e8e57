package poolcmd

import (
	"errors"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/build"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// TestAPoolSaysWhoIsBusyAndWhatAScoreIs of a worker that runs trials of others, and of
// one that waits.
func TestAPoolSaysWhoIsBusyAndWhatAScoreIs(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := printPool(&out, protocol.Pool{
		Machines: []protocol.PoolMachine{{Name: "theirs", Type: "a", Alive: true, Busy: true}, {Name: "idle", Type: "b", Alive: true, Waiting: 1}},
		Waiting: []protocol.PoolTask{{Study: "mine", New: 1, Why: "1 worker that suits it is busy", Options: []trial.PlacementOption{
			{Machine: "a", Score: 0.25, Epoch: &trial.Estimate{Seconds: 2}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(out.String(), "\n") {
		switch {
		case strings.HasPrefix(line, "theirs") && (strings.Contains(line, "none") || !strings.Contains(line, "busy")),
			strings.HasPrefix(line, "idle") && !strings.Contains(line, "none"),
			strings.HasPrefix(line, "mine") && !strings.Contains(line, "a: 2 s, score 0.25"):
			t.Errorf("it says %q", line)
		}
	}
}

// TestWorkersOfAnotherVersionAreNamed in both lists; of equals nothing is said.
func TestWorkersOfAnotherVersionAreNamed(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]int{"": 0, "1.2": 1} {
		old := build.Build{Version: "1.1", ServerVersion: server}
		var workers, pool strings.Builder
		err := errors.Join(
			printWorkers(&workers, []protocol.Worker{{WorkerRegistration: protocol.WorkerRegistration{Name: "w"}, Build: old}}),
			printPool(&pool, protocol.Pool{Machines: []protocol.PoolMachine{{Name: "w", Build: old}}}),
		)
		const said = "w is tandem 1.1, and the server is tandem 1.2: upgrade the older"
		if err != nil || strings.Count(workers.String(), said) != want || strings.Count(pool.String(), said) != want || !strings.Contains(workers.String(), "VERSION") {
			t.Errorf("%v\n%s\n%s", err, &workers, &pool)
		}
	}
}
