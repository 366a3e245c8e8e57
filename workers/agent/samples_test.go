package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/trial/series"
	"github.com/tandem-tune/tandem/workers/agent"
)

// plug is a power meter that always says the same.
type plug struct{}

func (plug) Name() string                      { return "plug" }
func (plug) Joules(time.Time) (float64, error) { return 0, nil }

// TestSamplesAreSentWhileTheCommandRuns lets a command run until its samples are there,
// and one that is not profiled run beside it.
func TestSamplesAreSentWhileTheCommandRuns(t *testing.T) {
	seen := filepath.Join(t.TempDir(), "seen")
	command := []string{"/bin/sh", "-c", fmt.Sprintf(`echo '{"epoch": 1, "accuracy": 1}'; while [ ! -e %s ]; do sleep 0.1; done; echo '{"epoch": 2, "accuracy": 1}'`, seen)}
	profiled, blind := newServer(), newServer()
	one, other := profiled.add(command, nil, 2), blind.add(command, nil, 2)
	work(t, profiled, agent.Options{Meter: plug{}})
	work(t, blind, agent.Options{NoProfile: true})
	profiled.await(t, "samples of the second epoch", func() bool { n := len(one.samples.Epochs); return n > 0 && one.samples.Epochs[n-1] == 2 })
	if err := os.WriteFile(seen, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	profiled.await(t, "the trial is finished", func() bool { return len(one.finishes) == 1 })
	blind.await(t, "the other is finished", func() bool { return len(other.finishes) == 1 })
	s := one.samples
	for _, name := range []string{"tree.cpu_user", "tree.resident_bytes", "machine.memory_used_bytes", series.Watts} {
		if len(s.Metrics[name]) != len(s.Seconds) {
			t.Errorf("%d samples have %d values of %s", len(s.Seconds), len(s.Metrics[name]), name)
		}
	}
	if s.Method != "meter plug" || s.Begin.IsZero() || s.Total() <= 0 {
		t.Errorf("they begin at %v, last %v s, and their watts are by %q", s.Begin, s.Total(), s.Method)
	}
	if len(other.samples.Seconds) > 0 {
		t.Errorf("a worker that does not profile has sent %+v", other.samples)
	}
}
