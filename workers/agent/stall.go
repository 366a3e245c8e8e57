package agent

import (
	"time"

	"github.com/tandem-tune/tandem/workers/agent/clock"
)

// watchCPU notes whether the command uses its CPU. It is called in a loop.
func (r *run) watchCPU(at clock.Moment) {
	r.mutex.Lock()
	p, due := r.process, r.watchdog.Due(at)
	r.mutex.Unlock()
	if p == nil || !due || p.Ended() {
		return
	}
	used := p.CPUSeconds()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.watchdog.Look(at, used)
}

// quiet is how long the command has shown no sign of life. The caller holds the
// mutex.
func (r *run) quiet(at clock.Moment) time.Duration {
	if r.process == nil || r.busy > 0 || r.asking != nil {
		return 0
	}
	return r.watchdog.Quiet(at, r.sign)
}

// quietSeconds is what a heartbeat says of it: 0 for a command that is alive.
func (r *run) quietSeconds(at clock.Moment) float64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	quiet := r.quiet(at)
	if !r.watchdog.Stalled(quiet) {
		return 0
	}
	return quiet.Seconds()
}

// noticed notes that the server has heard of it.
func (r *run) noticed() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.watchdog.Notice()
}
