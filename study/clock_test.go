package study_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study"
)

// jumped is the time with a wall clock that was set, and the same monotonic
// reading: what time.Now returns behind a step of the clock. Nobody can make one
// but the clock itself, so it reaches into time.Time, which keeps the seconds of
// the wall in bits 30 to 62 of its first word while it has a monotonic reading.
func jumped(t *testing.T, now time.Time, by time.Duration) time.Time {
	t.Helper()
	before := now
	*(*uint64)(unsafe.Pointer(&now)) += uint64(int64(by/time.Second)) << 30
	if now.Sub(before) != 0 || now.Round(0).Sub(before.Round(0)) != by {
		t.Fatal("time.Time is not what this test takes it for: say here how its wall clock is set")
	}
	return now
}

// TestTheWallClockDecidesNothing sets the wall clock while a lease is out: the
// lease ends when its worker was silent for a term, and no earlier.
func TestTheWallClockDecidesNothing(t *testing.T) {
	for name, step := range map[string]time.Duration{"an hour back": -time.Hour, "an hour ahead": time.Hour, "half a term ahead": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			// The time of a simulation has no monotonic reading, so this is a clock
			// that is moved by hand.
			now, skew := time.Now(), time.Duration(0)
			w := newWorld(t, 1)
			w.service = study.New(w.store, w.logs, study.Options{
				Now: func() time.Time { return jumped(t, now, skew) }, Random: w.random.Uint64, LeaseSeconds: 60, HeartbeatSeconds: 10,
			})
			tick := func(seconds int) {
				for range seconds {
					now = now.Add(time.Second)
					if err := w.service.Tick(w.ctx); err != nil {
						t.Fatal(err)
					}
				}
			}
			tick(1)
			w.create()
			w.register("worker-1")
			lease := w.mustLease("worker-1")
			tick(10)
			skew = step
			tick(45)
			if lost := w.trial(lease.Trial).Losses; lost != 0 {
				t.Fatal("the trial was lost after 55 s")
			}
			tick(10)
			if lost := w.trial(lease.Trial).Losses; lost != 1 {
				t.Fatal("the trial was not lost after 65 s")
			}
			if _, err := w.report(lease, 1); !problem.Is(err, problem.LeaseLost) {
				t.Errorf("a late report was answered with %v", err)
			}
		})
	}
}
