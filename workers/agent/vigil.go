package agent

import (
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"sync/atomic"
	"time"
)

// vigil watches a command for signs of life beside its reports. A script that
// waits for us shows none and owes none.
type vigil struct {
	heard atomic.Int64 // moment of its last output

	// The rest is guarded by the run's mutex.
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

// watchCPU notes whether the command uses its CPU. It is called in a loop.
func (r *run) watchCPU(at clock.Moment) {
	if r.lease.StallSeconds <= 0 {
		return
	}
	every := clock.Moment(min(max(clock.Seconds(r.lease.StallSeconds/10), shortestLook), longestLook))
	r.mutex.Lock()
	p, due := r.process, at >= r.vigil.looked+every
	r.mutex.Unlock()
	if p == nil || !due || p.ended() {
		return
	}
	used := p.cpuSeconds()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.vigil.look(at, used)
}

// look takes the CPU seconds that were used until the moment.
func (v *vigil) look(at clock.Moment, used float64) {
	span := time.Duration(at - v.looked).Seconds()
	if v.looked == 0 || used-v.used > idleShare*span {
		v.busy = at
	}
	v.used, v.looked = used, at
}

// quiet is how long the command has shown no sign of life. The caller holds the
// mutex.
func (r *run) quiet(at clock.Moment) time.Duration {
	if r.process == nil || r.busy > 0 || r.asking != nil {
		return 0
	}
	last := max(r.sign, r.vigil.busy, clock.Moment(r.vigil.heard.Load()))
	return time.Duration(max(0, at-last))
}

// lifeless reports whether that is longer than the study allows. The caller
// holds the mutex.
func (r *run) lifeless(at clock.Moment) bool {
	return r.lease.StallSeconds > 0 && r.quiet(at) >= clock.Seconds(r.lease.StallSeconds)
}

// quietSeconds is what a heartbeat says of it: 0 for a command that is alive.
func (r *run) quietSeconds(at clock.Moment) float64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.lifeless(at) {
		return 0
	}
	return r.quiet(at).Seconds()
}

// noticed notes that the server has heard of it.
func (r *run) noticed() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.vigil.noticed = r.vigil.told
}

// tellStall asks for a heartbeat that tells the server of a stalled command,
// and says whether it is to be ended now. The caller holds the mutex.
func (r *run) tellStall(at clock.Moment) (end bool) {
	if !r.lifeless(at) {
		r.vigil.told, r.vigil.noticed = false, false
		return false
	}
	if !r.vigil.told {
		r.vigil.told = true
		r.agent.beatNow()
	}
	late := r.quiet(at) >= clock.Seconds(r.lease.StallSeconds)+noticePatience
	return r.lease.StallEnds && (r.vigil.noticed || late)
}
