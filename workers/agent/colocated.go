package agent

import (
	"sync"

	"github.com/tandem-tune/tandem/workers/agent/clock"
)

// colocated is how many commands run on this worker, over time.
type colocated struct {
	mutex   sync.Mutex
	running int
	since   clock.Moment
	// area is the number of running commands summed over time, up to since.
	area float64
}

// change adds to the number of running commands.
func (c *colocated) change(by int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.advance()
	c.running += by
}

func (c *colocated) advance() {
	at := clock.Now()
	c.area += float64(c.running) * float64(at-c.since)
	c.since = at
}

// snapshot is the count at a moment.
type snapshot struct {
	at      clock.Moment
	running int
	area    float64
}

func (c *colocated) snapshot() snapshot {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.advance()
	return snapshot{at: c.since, running: c.running, area: c.area}
}

// others is how many commands ran between the two moments beside the one that
// asks, on average over time.
func (s snapshot) others(since snapshot) float64 {
	if s.at <= since.at { // a quick script may report before its command is counted
		return max(0, float64(since.running-1))
	}
	return max(0, (s.area-since.area)/float64(s.at-since.at)-1)
}
