// Package clock measures time on this machine for deadlines and intervals.
package clock

import (
	"context"
	"math/rand/v2"
	"time"
)

// Moment is a point on this machine's clock, which no one can set and which,
// unlike Go's monotonic clock, goes on while the machine sleeps: a laptop that
// wakes up knows that its leases have run out.
type Moment time.Duration

// Seconds is a number of seconds as a duration.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Jittered spreads a duration by a fifth either way, so that workers that
// started together do not call together.
func Jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// Sleep waits unless the context ends first.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
