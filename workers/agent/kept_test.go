package agent_test

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/agent"
)

// TestARefusalThatKeepsTheLeasesEndsNothing: a server that cannot take heartbeats says
// that it keeps the leases, for far longer than one lasts.
func TestARefusalThatKeepsTheLeasesEndsNothing(t *testing.T) {
	t.Parallel() // it waits most of the time
	s, place := newServer(), t.TempDir()
	s.timing.LeaseSeconds = 2
	trial := s.add(script(t), as("spawn", place), 3)
	s.change(func() { trial.hold = true })
	stop := work(t, s, agent.Options{})
	s.await(t, "it has reported", func() bool { return len(trial.reports) == 1 })
	s.change(func() { s.keeps, s.beats = true, 0 })
	until := time.Now().Add(6 * time.Second)
	s.await(t, "three leases have passed", func() bool { return s.beats > 3 && time.Now().After(until) || len(trial.finishes) > 0 })
	s.change(func() { s.keeps, s.beats = false, 0 })
	s.await(t, "heartbeats are answered", func() bool { return s.beats > 1 })
	if len(trial.finishes) > 0 {
		t.Errorf("it was given back: %s", trial.reason())
	}
	stop()
	if trial.outcomes() != "interrupted" || trial.reason() == "" {
		t.Errorf("it ended as %q: %s", trial.outcomes(), trial.reason())
	}
}
