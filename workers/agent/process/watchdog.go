package process

import (
	"sync/atomic"
	"time"

	"github.com/tandem-tune/tandem/workers/agent/clock"
)

// Watchdog watches a command for signs of life beside its reports. A script that
// waits for us shows none and owes none. Only Heard may be used without the lock
// of its run.
type Watchdog struct {
	Heard atomic.Int64 // moment of its last output
	// Seconds is after how long without a sign of life the command counts as
	// stalled; 0: never.
	Seconds float64
	// Ends says that a stalled command is ended.
	Ends bool

	used    float64 // CPU seconds when it was looked at last
	looked  clock.Moment
	busy    clock.Moment // when it was last found to use its CPU
	told    bool         // a heartbeat was asked for that tells the server
	noticed bool         // the server has answered one that did
}

const (
	// idleShare is the most CPU time, as a share of one core, of a script that
	// does nothing: threads that wake up to look whether there is work.
	idleShare = 0.01
	// A command is looked at ten times in the span after which it counts as
	// stalled, but not more and not less often than this.
	shortestLook, longestLook = 100 * time.Millisecond, 30 * time.Second
	// noticePatience is how long a stalled command is spared so that the server
	// learns of it first.
	noticePatience = 30 * time.Second
)

// Due reports whether the CPU time of the command is to be looked at.
func (w *Watchdog) Due(at clock.Moment) bool {
	every := clock.Moment(min(max(clock.Seconds(w.Seconds/10), shortestLook), longestLook))
	return w.Seconds > 0 && at >= w.looked+every
}

// Look takes the CPU seconds that were used until the moment.
func (w *Watchdog) Look(at clock.Moment, used float64) {
	span := time.Duration(at - w.looked).Seconds()
	if w.looked == 0 || used-w.used > idleShare*span {
		w.busy = at
	}
	w.used, w.looked = used, at
}

// Quiet is how long the command has shown no sign of life, of which its script
// gave the last one at sign.
func (w *Watchdog) Quiet(at, sign clock.Moment) time.Duration {
	return time.Duration(max(0, at-max(sign, w.busy, clock.Moment(w.Heard.Load()))))
}

// Stalled reports whether that is longer than the study allows.
func (w *Watchdog) Stalled(quiet time.Duration) bool {
	return w.Seconds > 0 && quiet >= clock.Seconds(w.Seconds)
}

// Notice notes that the server has answered a heartbeat that told it.
func (w *Watchdog) Notice() { w.noticed = w.told }

// Check says of a command that was quiet for so long whether the server is to be
// told now, and whether the command is to be ended now.
func (w *Watchdog) Check(quiet time.Duration) (tell, end bool) {
	if !w.Stalled(quiet) {
		w.told, w.noticed = false, false
		return false, false
	}
	tell, w.told = !w.told, true
	return tell, w.Ends && (w.noticed || quiet >= clock.Seconds(w.Seconds)+noticePatience)
}
