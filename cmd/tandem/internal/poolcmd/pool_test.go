package poolcmd

import (
	"strings"
	"testing"

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
