package agent

import (
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"sync"
)

// company is how many commands run on this worker, over time.
type company struct {
	mutex   sync.Mutex
	running int
	since   clock.Moment
	// area is the number of running commands summed over time, up to since.
	area float64
}

// change adds to the number of running commands.
func (c *company) change(by int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.advance()
	c.running += by
}

func (c *company) advance() {
	at := clock.Now()
	c.area += float64(c.running) * float64(at-c.since)
	c.since = at
}

// stand is where company is at a moment.
type stand struct {
	at      clock.Moment
	running int
	area    float64
}

func (c *company) stand() stand {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.advance()
	return stand{at: c.since, running: c.running, area: c.area}
}

// others is how many commands ran between the two moments beside the one that
// asks, on average over time.
func (s stand) others(since stand) float64 {
	if s.at <= since.at { // a quick script may report before its command is counted
		return max(0, float64(since.running-1))
	}
	return max(0, (s.area-since.area)/float64(s.at-since.at)-1)
}
