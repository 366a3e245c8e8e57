package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/e2e/storm"
	"github.com/tandem-tune/tandem/internal/failpoint"
)

// forTests builds a tandem that can be told where to break, once.
var forTests = sync.OnceValues(func() (string, error) {
	return launch.BuildForTests(context.Background(), built)
})

// harm is what happens at a point.
type harm struct {
	point failpoint.Point
	what  string
}

// harms are all that can happen anywhere.
func harms() []harm {
	var all []harm
	for _, point := range failpoint.Points {
		if strings.HasPrefix(string(point), "broker.") {
			continue // a process of its own: workers/confidential/broker kills it
		}
		for _, what := range []string{"panic", "error", "sleep:4s", "kill"} {
			// At two points there is nothing that could fail with an error.
			fallible := point != failpoint.StudySubmitted && point != failpoint.StudyShown
			if what != "error" || fallible {
				all = append(all, harm{point, what})
			}
		}
	}
	return all
}

// usual are those that found something, or are the only ones of their kind. The
// others take minutes: TANDEM_FAILPOINT_CASES=all runs them too.
func usual() []harm {
	return []harm{
		{failpoint.StudySubmitted, "panic"}, // left memory beside the store
		{failpoint.StudyDurable, "error"},   // denied a lease that was committed
		{failpoint.StudyDurable, "panic"},
		{failpoint.StudyDecided, "panic"},
		{failpoint.StoreCommitting, "kill"},
		{failpoint.StoreCommitted, "error"},
		{failpoint.ArtifactNamed, "error"},
		{failpoint.AgentReported, "kill"},
		{failpoint.AgentPacked, "kill"}, // a checkpoint that goes beside the next epoch
		{failpoint.AgentUploaded, "kill"},
	}
}

// TestNothingIsLostWhereverItBreaks lets the server or the worker of a small
// study break at one point, at its third pass, and compares the books.
func TestNothingIsLostWhereverItBreaks(t *testing.T) {
	t.Parallel()
	script, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := forTests()
	if err != nil {
		t.Fatal(err)
	}
	cases := usual()
	if os.Getenv("TANDEM_FAILPOINT_CASES") == "all" {
		cases = harms()
	}
	const atOnce = 3
	for lane := range atOnce {
		t.Run(fmt.Sprintf("lane %d", lane+1), func(t *testing.T) {
			t.Parallel()
			for i := lane; i < len(cases); i += atOnce {
				t.Run(fmt.Sprintf("%s=%s", cases[i].point, cases[i].what), func(t *testing.T) { breakAt(t, binary, script, cases[i]) })
			}
		})
	}
}

func breakAt(t *testing.T, binary, script string, one harm) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	folder := t.TempDir()
	fired := filepath.Join(folder, "fired")
	result, err := storm.Run(ctx, storm.Options{
		Binary: binary, Script: script, Folder: folder, Trials: 9, Agents: 1, Slots: 2, EpochTime: time.Millisecond, LeaseSeconds: 3, Seed: 1,
		Environment: []string{fmt.Sprintf("TANDEM_FAILPOINTS=%s=%s@3", one.point, one.what), "TANDEM_FAILPOINTS_FIRED=" + fired},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fired + "." + string(one.point)); err != nil {
		t.Errorf("nothing broke: %v", err)
	}
	for _, violation := range result.Violations {
		t.Error(violation)
	}
	for _, difference := range result.Differences {
		t.Error(difference)
	}
	if one.what == "kill" && len(result.Deaths) == 0 || len(result.Deaths) > 1 {
		t.Errorf("%d processes ended: %v", len(result.Deaths), result.Deaths)
	}
	t.Logf("%d operations acknowledged, %d leases ran out, in %.1f s", result.Acknowledged, result.Losses, result.Seconds)
}
