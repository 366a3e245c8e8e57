package clock

import "sync"

// Count is a number that changes, such as that of the commands that run, over time.
type Count struct {
	mutex sync.Mutex
	now   int
	since Moment
	// area is the number summed over time, up to since.
	area float64
}

// Change adds to the number.
func (c *Count) Change(by int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.advance()
	c.now += by
}

func (c *Count) advance() {
	at := Now()
	c.area += float64(c.now) * float64(at-c.since)
	c.since = at
}

// Snapshot is a count at a moment.
type Snapshot struct {
	// At is the moment.
	At   Moment
	now  int
	area float64
}

// Snapshot is the count now.
func (c *Count) Snapshot() Snapshot {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.advance()
	return Snapshot{At: c.since, now: c.now, area: c.area}
}

// Others is how many there were between the two moments beside the one that asks, on
// average over time.
func (s Snapshot) Others(since Snapshot) float64 {
	if s.At <= since.At { // a quick script may report before its command is counted
		return max(0, float64(since.now-1))
	}
	return max(0, (s.area-since.area)/float64(s.At-since.At)-1)
}
