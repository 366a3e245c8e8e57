package agent

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// moment is a point on this machine's clock, which no one can set and which,
// unlike Go's monotonic clock, goes on while the machine sleeps: a laptop that
// wakes up knows that its leases have run out.
type moment time.Duration

func now() moment {
	var t unix.Timespec
	// It fails only for a clock the kernel does not have, and this one is
	// older than any kernel Go runs on.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return moment(t.Nano())
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// fence is when a lease that was last confirmed by a call sent at the moment
// must have ended on this machine: a tenth of the lease before the server may
// give the trial away, which is the time the kill may take.
func fence(sent moment, leaseSeconds float64) moment {
	return sent + moment(seconds(leaseSeconds*0.9))
}

// jittered spreads a duration by a fifth either way, so that workers that
// started together do not call together.
func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// sleep waits unless the context ends first.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
