//go:build !linux

package clock

import "time"

var began = time.Now()

// Now is the present moment. No worker runs here, and nothing else needs to know of sleep.
func Now() Moment { return Moment(time.Since(began)) }
