package agent

import (
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/script"
)

// ask ends the run on the script's behalf; nil if its process can have no other.
func (r *run) ask() *script.Asking {
	r.reporting.Lock() // held while it is started, and while its memory is bounded
	movable := r.slot.Subject.MemoryMovable()
	r.reporting.Unlock()
	// What is left could not be told from the next trial; what a service does is its own.
	if !movable || r.lease.Confidential != nil || !definition.IsService(r.lease.Command) && !r.slot.Alone() {
		return nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.asking != nil || r.ended || r.ending.kind != notEnded {
		return nil
	}
	r.asking = script.NewAsking(clock.Now())
	close(r.asked)
	return r.asking
}

// over reports whether the script has asked for another trial.
func (r *run) over() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.asking != nil
}

// vacate lets go of the process when the run is over: it waits for another one,
// or ends.
func (r *run) vacate() {
	if r.slot == nil {
		return
	}
	if err := r.place.Remove(); err != nil {
		r.logger.Warn("cannot remove the run's folder", "error", err)
	}
	r.mutex.Lock()
	asking, wanted := r.asking, r.ending.kind == notEnded
	r.process = nil // nothing that is said of this run concerns it any more
	r.mutex.Unlock()
	switch r.slot.Asking = asking; {
	case asking == nil:
		r.slot.End()
	case wanted:
		r.agent.pool.Park(r.slot)
	default:
		r.slot.Dismiss()
	}
}
