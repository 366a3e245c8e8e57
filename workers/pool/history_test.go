package pool_test

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/pool"
)

func TestAHistoryHasTheMeansOfTheLastHour(t *testing.T) {
	t.Parallel()
	var registry pool.Registry
	begin := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	registry.Register(protocol.WorkerRegistration{ID: "w", Name: "w"}, "alice", begin)
	note := func(after time.Duration, watts float64) {
		registry.NoteLoad("w", &protocol.Load{CPUUtilization: 0.5, MemoryUtilization: 0.25, Watts: watts, Method: "rapl"}, begin.Add(after))
	}
	if steps := registry.History("w", begin); len(steps) != 0 {
		t.Errorf("before any heartbeat there is %+v", steps)
	}
	note(0, 10)
	note(20*time.Second, 30)
	note(3*time.Minute, 50) // for three minutes it was silent
	steps := registry.History("w", begin.Add(4*time.Minute))
	want := []protocol.LoadStep{
		{Begin: begin, Heartbeats: 2, Load: protocol.Load{CPUUtilization: 0.5, MemoryUtilization: 0.25, Watts: 20, Method: "rapl"}},
		{Begin: begin.Add(3 * time.Minute), Heartbeats: 1, Load: protocol.Load{CPUUtilization: 0.5, MemoryUtilization: 0.25, Watts: 50, Method: "rapl"}},
	}
	if len(steps) != 2 || steps[0] != want[0] || steps[1] != want[1] {
		t.Errorf("%+v, want %+v", steps, want)
	}
	if steps := registry.History("w", begin.Add(61*time.Minute)); len(steps) != 1 || steps[0] != want[1] {
		t.Errorf("an hour later there is %+v", steps)
	}
	// A clock that is set back adds to the newest step.
	note(time.Minute, 70)
	if steps := registry.History("w", begin.Add(4*time.Minute)); len(steps) != 2 || steps[1].Heartbeats != 2 || steps[1].Watts != 60 {
		t.Errorf("with a clock set back it is %+v", steps)
	}
}

func TestAHistoryIsBoundedAndEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	var registry pool.Registry
	begin := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	registry.Register(protocol.WorkerRegistration{ID: "w", Name: "w"}, "", begin)
	now := begin
	for ; now.Before(begin.Add(5 * time.Hour)); now = now.Add(10 * time.Second) {
		registry.NoteLoad("w", &protocol.Load{Watts: 1}, now)
	}
	now = now.Add(-10 * time.Second)
	steps := registry.History("w", now)
	if len(steps) != pool.HistorySteps || steps[0].Heartbeats != 6 || !steps[0].Begin.Equal(begin.Add(4*time.Hour)) {
		t.Fatalf("%d steps, the first %+v", len(steps), steps[0])
	}
	registry.Register(protocol.WorkerRegistration{ID: "w", Name: "w"}, "", now) // the server had been away for it
	if again := registry.History("w", now); len(again) != len(steps) {
		t.Errorf("registered again it has %d steps", len(again))
	}
	registry.Remove("w")
	registry.NoteLoad("w", &protocol.Load{Watts: 1}, now) // of nobody who is known
	registry.Register(protocol.WorkerRegistration{ID: "w", Name: "w"}, "", now)
	registry.Register(protocol.WorkerRegistration{ID: "silent", Name: "silent"}, "", begin)
	registry.NoteLoad("silent", &protocol.Load{Watts: 1}, begin)
	registry.Forget(begin.Add(time.Second))
	for _, id := range []string{"w", "silent", "never"} {
		if steps := registry.History(id, now); len(steps) != 0 {
			t.Errorf("%s has %+v", id, steps)
		}
	}
}
