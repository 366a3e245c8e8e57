package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/process"
)

// endKind is why a run is ended from our side.
type endKind int

const (
	notEnded endKind = iota
	drained          // the worker is told to leave
	stopped          // the server wants it stopped
	paused           // the server wants it paused, and a script without a client was asked to end
	silent           // no report for too long
	spent            // the budget is spent, and a script without a client was asked to end
	lost             // the lease is not ours any more
)

type ending struct {
	kind   endKind
	reason string
}

// drainWrites is how long a drained run may take to hand in what it has.
const drainWrites = 15 * time.Second

// drain ends the run because the worker leaves. The script has all of its time while
// the engine is asked why.
func (r *run) drain(cause error) {
	r.end(drained, "", r.agent.options.DrainGrace)
	go r.agent.staying.Why(cause)
	timer := time.AfterFunc(r.agent.options.DrainGrace+drainWrites, func() {
		r.cancel(errors.New("the worker was stopped and the server did not answer"))
	})
	context.AfterFunc(r.ctx, func() { timer.Stop() })
}

// endedBy is why the run was ended from our side, if it was. A command that ended as one
// that is told to may have been, with this worker, which hears of it a little later.
func (r *run) endedBy(asTold bool) ending {
	r.mutex.Lock()
	ended := r.ending
	ours := ended.kind != notEnded || r.asking != nil || r.orders.Directive.Action != protocol.Continue
	r.mutex.Unlock()
	if asTold && !ours && r.agent.staying.Told(r.leaving) {
		ended.kind = drained
	}
	if ended.kind == drained {
		ended.reason = r.agent.staying.Why(context.Cause(r.leaving))
	}
	return ended
}

// end asks the command to end, for the first reason there is.
func (r *run) end(kind endKind, reason string, grace time.Duration) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.ending.kind != notEnded {
		return
	}
	r.ending = ending{kind, reason}
	r.abandon()
	if r.process != nil {
		go r.process.Terminate(grace)
	}
}

// lose kills the command and lets nothing more be written.
func (r *run) lose(reason string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.ending.kind == lost {
		return
	}
	r.ending = ending{lost, reason}
	if r.process != nil {
		r.process.Kill()
	}
	r.cancel(problem.New(problem.LeaseLost, "trial %s: %s", r.lease.Trial, reason))
}

// begin notes the started command, which may already be unwanted.
func (r *run) begin(p *process.Process) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.process, r.sign = p, clock.Now()
	if r.ending.kind != notEnded {
		p.Kill()
	}
}

// givenAway is the server's word that the lease is lost. While it ends, the
// answer to that decides: the heartbeat may have crossed it.
func (r *run) givenAway() {
	r.mutex.Lock()
	finishing := r.finishing
	r.mutex.Unlock()
	if !finishing {
		r.lose("the server gave it to another worker, or ended it")
	}
}

// renew moves the fence: the server had the lease renewed after that moment.
func (r *run) renew(sent clock.Moment) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	lease := r.lease.Timing.LeaseSeconds
	if lease <= 0 {
		lease = r.agent.times().LeaseSeconds
	}
	r.fence = max(r.fence, fence(sent, lease))
}

// check does what is due at the moment.
func (r *run) check(at clock.Moment) {
	r.watchCPU(at)
	r.mutex.Lock()
	fenced := at >= r.fence
	over := r.asking != nil // and does nothing for the trial any more
	stop := r.orders.StopAt != 0 && at >= r.orders.StopAt && !over
	reason := r.orders.Directive.Reason
	timeout := r.lease.EpochTimeoutSeconds
	tooLong := timeout > 0 && r.process != nil && r.busy == 0 && !over && at >= r.sign+clock.Moment(clock.Seconds(timeout))
	tell, stalled := r.watchdog.Check(r.quiet(at))
	if tell {
		r.agent.beatNow()
	}
	r.mutex.Unlock()
	switch grace := r.agent.options.StopGrace; {
	case fenced:
		r.letGo()
	case stop:
		r.end(stopped, reason, grace)
	case tooLong:
		r.end(silent, fmt.Sprintf("no report for %g s (epoch_timeout_seconds)", timeout), grace)
	case stalled:
		r.end(silent, fmt.Sprintf("stalled: no report, no output and next to no CPU time for %g s (stall_seconds)", r.lease.StallSeconds), grace)
	}
}

// fence is when a lease that was last confirmed by a call sent at the moment
// must have ended on this machine: a tenth of the lease before the server may
// give the trial away, which is the time the kill may take.
func fence(sent clock.Moment, leaseSeconds float64) clock.Moment {
	return sent + clock.Moment(clock.Seconds(leaseSeconds*0.9))
}
