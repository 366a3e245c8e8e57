// Package handclock is a clock that a test moves by hand.
package handclock

import (
	"sync"
	"time"
)

// Clock is a time that only the test moves. It is safe for concurrent use.
type Clock struct {
	mutex sync.Mutex
	at    time.Time
}

// New is a clock that stands at the present time.
func New() *Clock { return &Clock{at: time.Now()} }

// Now is the time on the clock.
func (c *Clock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.at
}

// Pass moves the clock forward.
func (c *Clock) Pass(span time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.at = c.at.Add(span)
}
