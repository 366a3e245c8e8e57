package limit

import (
	"net/netip"
	"sync"
	"time"
)

// The bounds of failures.
const (
	freeFailures  = 10
	failureWindow = time.Minute
	firstDelay    = time.Minute
	longestDelay  = 15 * time.Minute
	// forgiveAfter is how long after its last failure an origin starts anew.
	forgiveAfter = time.Hour
	maxOrigins   = 10_000
)

// Failures bounds how often one address may fail, at signing in for example:
// ten times a minute. Then it has to wait for a minute, and twice as long after
// each further failure, up to a quarter of an hour.
type Failures struct {
	now     func() time.Time
	mutex   sync.Mutex
	origins map[netip.Prefix]*failures
}

// failures are those of one origin.
type failures struct {
	// window is when the failures began to be counted that count is about.
	window time.Time
	count  int
	last   time.Time
	delay  time.Duration
	until  time.Time
}

// NewFailures returns Failures on the clock.
func NewFailures(now func() time.Time) *Failures {
	return &Failures{now: now, origins: make(map[netip.Prefix]*failures)}
}

// Wait is how long the address ("host:port") has to wait for its next attempt.
func (f *Failures) Wait(remote string) time.Duration {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	known, failed := f.origins[Origin(remote)]
	if !failed {
		return 0
	}
	return max(known.until.Sub(f.now()), 0)
}

// Failed notes that the address failed.
func (f *Failures) Failed(remote string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now, from := f.now(), Origin(remote)
	known, failed := f.origins[from]
	if !failed || now.Sub(known.last) > forgiveAfter {
		if !failed && len(f.origins) >= maxOrigins {
			makeRoom(f.origins, maxOrigins, func(one *failures) bool {
				return now.Sub(one.last) > failureWindow && now.After(one.until) && (one.delay == 0 || now.Sub(one.last) > forgiveAfter)
			})
		}
		known = &failures{window: now}
		f.origins[from] = known
	}
	known.last = now
	if now.Sub(known.window) >= failureWindow {
		known.window, known.count = now, 0
	}
	known.count++
	switch {
	case known.delay > 0: // it has waited before, and failed again
		known.delay = min(2*known.delay, longestDelay)
	case known.count >= freeFailures:
		known.delay = firstDelay
	default:
		return
	}
	known.until = now.Add(known.delay)
}
