package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/protocol"
)

// run is one lease being worked on.
type run struct {
	agent  *Agent
	lease  protocol.Lease
	logger *slog.Logger
	place  room
	log    *logBook
	output *capture
	lines  chan epochLine
	// ctx lasts as long as the lease may be written under; its cause says why
	// it ended.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// preparing ends when the command is not to be started any more.
	preparing context.Context
	abandon   context.CancelFunc

	mutex     sync.Mutex
	fence     moment
	process   *process
	ending    ending
	finishing bool
	directive protocol.Directive
	told      bool   // the script knows the directive
	client    bool   // the script uses the socket
	busy      int    // calls of the script that we have not answered
	sign      moment // the script's last sign of life
	stopAt    moment // when a stop that is ignored is enforced; 0: not wanted
	progress  progress

	reporting  sync.Mutex    // held while an epoch is on its way
	mark       stand         // when the present epoch began
	setup      time.Duration // of the first epoch, before the training began; 0: the script did not say
	setting    *setting
	subject    *subject
	window     *profiler.Window
	committing sync.Mutex // held while a checkpoint is on its way
	committed  string     // fingerprint of what the server has
	publishes  atomic.Bool
}

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

// progress is what was reported in this run.
type progress struct {
	first, last, epochs int
	// reported says that there was a report at all, and answer what it was
	// answered.
	reported bool
	answer   protocol.Directive
	// refusal is the newest report's refusal; unreachable says that the server
	// is not there to take one.
	refusal     string
	unreachable bool
}

// complete reports whether the run's budget is spent. Where that is an amount
// of time or energy, only the server's answer tells.
func (p progress) complete() bool {
	return p.last >= p.epochs || p.reported && p.answer.Action == protocol.Finish
}

// run carries a lease out, and reports whether this worker is fit for another.
func (a *Agent) run(ctx context.Context, lease protocol.Lease, sent moment) (fit bool) {
	r := &run{
		agent: a, lease: lease, log: newLogBook(), fence: fence(sent, lease.Timing.LeaseSeconds),
		logger:    a.options.Logger.With("trial", lease.Trial, "lease", lease.LeaseEpoch),
		directive: protocol.Directive{Action: protocol.Continue},
		progress:  progress{first: lease.FirstEpoch, last: lease.FirstEpoch - 1, epochs: lease.Budget.Epochs},
		lines:     make(chan epochLine, 1024), setting: newSetting(lease.System),
	}
	if lease.Timing.LeaseSeconds <= 0 {
		r.fence = fence(sent, a.times().LeaseSeconds)
	}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	r.preparing, r.abandon = context.WithCancel(r.ctx)
	defer r.cancel(nil)
	defer r.abandon()
	a.add(r)
	defer a.remove(r)
	defer context.AfterFunc(ctx, r.drain)()
	r.logger.Info("leased", "rung", lease.Rung, "from", lease.FirstEpoch, "to", lease.Budget.Epochs)

	var background sync.WaitGroup
	flushing, stopFlushing := context.WithCancel(r.ctx)
	background.Go(func() { r.flushRegularly(flushing) })
	request, fit := r.carryOut()
	stopFlushing()
	background.Wait()
	r.finish(request)
	if err := r.place.remove(); err != nil {
		r.logger.Warn("cannot remove the run's folder", "error", err)
	}
	return fit
}

// carryOut starts the command and stays with it until it has ended and all it
// wrote is handed on.
func (r *run) carryOut() (request protocol.FinishRequest, fit bool) {
	ended, err := r.startCommand()
	if err != nil {
		return r.notStarted(err)
	}
	defer ended.close()
	<-r.process.done
	// A script may have given up waiting for us. The server may be back before
	// all it reported is handed on.
	cutOff := r.soFar().unreachable
	r.output.drain()
	close(r.lines)
	ended.lines.Wait()
	r.agent.company.change(-1)
	result := r.process.exit()
	if !r.process.caged { // the kernel has ended all of a control group
		if stray := killMarked(variableScratch + r.place.checkpoint); stray > 0 {
			r.log.note("ended %d processes that had left the command's group", stray)
		}
	}
	p := r.settled()
	r.release()
	if result.ok() {
		r.commitAtEnd(p)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.progress.unreachable = cutOff
	return verdict(result, r.ending, r.directive, r.progress, r.output.errors.lines(5)), true
}

// notStarted says how to give back a trial whose command never ran. What the
// study got wrong is its failure; everything else is this worker's.
func (r *run) notStarted(err error) (request protocol.FinishRequest, fit bool) {
	r.log.note("%v", err)
	r.mutex.Lock()
	ended := r.ending
	r.mutex.Unlock()
	if ended.kind != notEnded {
		return protocol.FinishRequest{Outcome: protocol.Interrupted, Reason: ended.reason}, true
	}
	r.logger.Warn("the command was not started", "error", err)
	if errors.As(err, new(studyFault)) {
		return protocol.FinishRequest{Outcome: protocol.CommandFailed, Reason: err.Error()}, true
	}
	return protocol.FinishRequest{Outcome: protocol.Interrupted, Reason: "this worker cannot run it: " + err.Error()}, false
}

// finish sends the rest of the log and ends the lease, unless it is lost.
func (r *run) finish(request protocol.FinishRequest) {
	r.mutex.Lock()
	gone := r.ending.kind == lost
	r.finishing = true
	r.mutex.Unlock()
	if gone {
		r.logger.Warn("lost the lease", "reason", context.Cause(r.ctx))
		return
	}
	r.log.close()
	r.flushLast()
	request.LeaseEpoch = r.lease.LeaseEpoch
	request.Reason = truncate(request.Reason, 4096)
	var reply protocol.FinishReply
	err := insist(r.ctx, callPatience, r.stalled, func(ctx context.Context) (err error) {
		reply, err = r.agent.options.Server.Finish(ctx, r.lease.Trial, request)
		return err
	})
	if err != nil {
		r.logger.Warn("the end of the lease was not taken", "error", err, "cause", context.Cause(r.ctx))
		return
	}
	r.logger.Info("finished", "outcome", request.Outcome, "reason", request.Reason, "state", reply.State)
}

func truncate(text string, bytes int) string { return text[:runeBoundary(text, bytes)] }

// drainWrites is how long a drained run may take to hand in what it has.
const drainWrites = 15 * time.Second

// drain ends the run because the worker leaves.
func (r *run) drain() {
	r.end(drained, "the worker was stopped", r.agent.options.DrainGrace)
	timer := time.AfterFunc(r.agent.options.DrainGrace+drainWrites, func() {
		r.cancel(errors.New("the worker was stopped and the server did not answer"))
	})
	context.AfterFunc(r.ctx, func() { timer.Stop() })
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
		go r.process.terminate(grace)
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
		r.process.kill()
	}
	r.cancel(problem.New(problem.LeaseLost, "trial %s: %s", r.lease.Trial, reason))
}

// begin notes the started command, which may already be unwanted.
func (r *run) begin(p *process) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.process, r.sign = p, now()
	if r.ending.kind != notEnded {
		p.kill()
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
func (r *run) renew(sent moment) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	lease := r.lease.Timing.LeaseSeconds
	if lease <= 0 {
		lease = r.agent.times().LeaseSeconds
	}
	r.fence = max(r.fence, fence(sent, lease))
}

// check does what is due at the moment.
func (r *run) check(at moment) {
	r.mutex.Lock()
	fenced := at >= r.fence
	stop := r.stopAt != 0 && at >= r.stopAt
	reason := r.directive.Reason
	timeout := r.lease.EpochTimeoutSeconds
	tooLong := timeout > 0 && r.process != nil && r.busy == 0 && at >= r.sign+moment(seconds(timeout))
	r.mutex.Unlock()
	switch grace := r.agent.options.StopGrace; {
	case fenced:
		r.lose("no heartbeat was answered for so long that the server may give it away")
	case stop:
		r.end(stopped, reason, grace)
	case tooLong:
		r.end(silent, fmt.Sprintf("no report for %g s (epoch_timeout_seconds)", timeout), grace)
	}
}
