package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/workers/agent/artifact"
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/flush"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
	"github.com/tandem-tune/tandem/workers/agent/knob"
	"github.com/tandem-tune/tandem/workers/agent/process"
	"github.com/tandem-tune/tandem/workers/agent/retry"
	"github.com/tandem-tune/tandem/workers/agent/script"
	"github.com/tandem-tune/tandem/workers/agent/workspace"
	"github.com/tandem-tune/tandem/workers/confidential/enclave"
)

// run is one lease being worked on.
type run struct {
	agent  *Agent
	lease  protocol.Lease
	logger *slog.Logger
	slot   *process.Slot // nil before there is a process for it, or a place for one
	// directory is where its command runs, secrets what its log does not show.
	directory string
	secrets   *process.Redactor
	place     workspace.Run
	socket    *script.Socket
	log       *process.Log
	samples   *flush.Recording
	// keys are those of the lease, attestation what a broker says of their release, and tail
	// the end of the output, where that is kept encrypted.
	keys              *sealed.Keys
	attestation, tail string
	keyed             atomic.Bool // its key was released
	output            *process.Capture
	lines             chan script.Line
	// reading ends when all lines are dealt with.
	reading sync.WaitGroup
	asked   chan struct{} // closed when the script asks for another trial
	// ctx lasts as long as the lease may be written under; its cause says why
	// it ended.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// leaving ends when the worker is to leave.
	leaving context.Context
	// preparing ends when the command is not to be started any more.
	preparing context.Context
	abandon   context.CancelFunc

	mutex     sync.Mutex
	fence     clock.Moment
	process   *process.Process // nil when there is none to end
	asking    *script.Asking   // nil as long as the script has not asked for another trial
	ended     bool             // the command ended without asking
	ending    ending
	finishing bool
	orders    script.Orders
	free      bool         // the lease was let go of without the server's word
	busy      int          // calls of the script that we have not answered
	sign      clock.Moment // the script's last sign of life
	progress  progress

	reporting  sync.Mutex     // held while an epoch is on its way
	sealed     bool           // no report and no start of training counts any more
	mark       clock.Snapshot // when the present epoch began
	setup      time.Duration  // of the first epoch, before the training began; 0: the script did not say
	settings   *knob.Settings // its Apply and InForce are called with the reports held
	window     *profiler.Window
	sprint     *knob.Sprint
	logging    sync.Mutex // held while an artifact is on its way
	checkpoint *artifact.Checkpoint
	publishes  atomic.Bool
	outbox     *workspace.Outbox
	watchdog   process.Watchdog
	gpu        gpu.Use
	emulation  *artifact.Emulation
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

// span are the epochs of the run.
func (p progress) span() script.Epochs {
	return script.Epochs{First: p.first, Last: p.last, Of: p.epochs}
}

// complete reports whether the run's budget is spent. Where that is an amount
// of time or energy, only the server's answer tells.
func (p progress) complete() bool {
	return p.last >= p.epochs || p.reported && p.answer.Action == protocol.Finish
}

// run carries a lease out, and reports whether this worker is fit for another.
func (a *Agent) run(ctx context.Context, lease protocol.Lease, sent clock.Moment) (fit bool) {
	r := &run{
		agent: a, lease: lease, log: process.NewLog(), samples: flush.NewRecording(lease.FirstEpoch),
		logger:   a.options.Logger.With("trial", lease.Trial, "lease", lease.LeaseEpoch),
		orders:   script.Orders{Directive: protocol.Directive{Action: protocol.Continue}, Grace: a.options.StopGrace},
		progress: progress{first: lease.FirstEpoch, last: lease.FirstEpoch - 1, epochs: lease.Budget.Epochs},
		lines:    make(chan script.Line, 1024), asked: make(chan struct{}),
	}
	r.renew(sent)
	r.settings = knob.NewSettings(a.controls, knob.Wanted(lease), r.noteSystem)
	r.sprint = &knob.Sprint{Account: a.sprints, Controls: a.controls, Runner: r.sprinter, Note: r.log.Note}
	if lease.Sprint != nil {
		r.sprint.Wanted, r.sprint.After = true, clock.Seconds(lease.Sprint.AfterSeconds)
	}
	r.emulation = &artifact.Emulation{Models: a.options.Models, Server: a.options.Server, Lease: lease, Worker: a.id, Bench: &a.bench, Leaving: ctx, Note: r.log.Note, News: a.news, Stalled: r.stalled, Logger: r.logger}
	r.watchdog.Seconds, r.watchdog.Ends = lease.StallSeconds, lease.StallEnds
	if lease.Confidential == nil { // what waits is in the clear
		r.outbox = openOutbox(a.workspace, lease, r.logger)
	}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	r.preparing, r.abandon = context.WithCancel(r.ctx)
	defer r.cancel(nil)
	defer r.abandon()
	a.add(r)
	defer a.remove(r)
	r.leaving = ctx
	ended := a.staying.Leased()
	defer func() { ended(r.soFar().reported) }()
	defer context.AfterFunc(ctx, func() { r.drain(context.Cause(ctx)) })()
	r.logger.Info("leased", "rung", lease.Rung, "from", lease.FirstEpoch, "to", lease.Budget.Epochs)

	sender := flush.Sender{Log: r.log, Samples: r.samples, Server: a.options.Server, Lease: lease, GivenAway: r.givenAway, Logger: r.logger}
	var background sync.WaitGroup
	flushing, stopFlushing := context.WithCancel(r.ctx)
	background.Go(func() { sender.Regularly(flushing) })
	request, fit := r.carryOut()
	stopFlushing()
	background.Wait()
	r.finish(request, sender)
	r.vacate()
	return fit
}

// carryOut starts the command and stays with it until it has ended, or asks for
// another trial, and all it wrote is handed on.
func (r *run) carryOut() (request protocol.FinishRequest, fit bool) {
	if err := (starting{r}).start(); err != nil {
		return r.notStarted(err)
	}
	defer r.hangUp()
	endSprint := r.sprint.Begin(r.ctx)
	result := r.awaitEnd()
	// A script may have given up waiting for us. The server may be back before
	// all it reported is handed on.
	cutOff := r.soFar().unreachable
	if r.over() {
		r.output.Stop(0)
	} else {
		r.output.Stop(process.PipeLinger)
	}
	close(r.lines)
	r.reading.Wait()
	r.emulation.End()
	r.agent.colocated.Change(-1)
	if !r.over() {
		if orphans := r.slot.KillOrphans(); orphans > 0 {
			r.log.Note("ended %d processes that had left the command's group", orphans)
		}
	}
	p := r.settled()
	result = r.remembered(result)
	endSprint()
	r.release()
	r.commitAtEnd(p, result.OK())
	if !r.unwanted() && r.ctx.Err() == nil {
		r.checkpoint.LogFolder(r.ctx, r.place.Artifacts, r.log.Note)
	}
	ended := r.endedBy(result.AsTold() && !p.complete() && !p.unreachable)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.progress.unreachable = cutOff
	lastErrors := r.output.Errors.Lines(process.LastErrorLines)
	request = r.agent.pool.Host.Explain(outcomeOf(result, ended, r.orders.Directive, r.progress, lastErrors), lastErrors, r.directory, r.place.Directory)
	if r.tail, _ = enclave.Tail(r.lease, request.Outcome, lastErrors); ended.kind == notEnded {
		request = enclave.Quiet(r.lease, request)
	}
	return request, request.Outcome != protocol.Vanished
}

// remembered adds what the kernel tells of the command's memory.
func (r *run) remembered(result process.Exit) process.Exit {
	r.reporting.Lock()
	defer r.reporting.Unlock()
	more, peak := r.slot.MoreShortage()
	result.OutOfMemory, result.Peak = more, max(result.Peak, peak)
	return result
}

// noteSystem writes to the trial's log and the agent's.
func (r *run) noteSystem(level slog.Level, what string) {
	r.log.Note("%s", what)
	r.logger.Log(r.ctx, level, what)
}

// sprinter is the command as what speeds it up sees it.
func (r *run) sprinter() *knob.Subject {
	r.reporting.Lock()
	defer r.reporting.Unlock()
	return &knob.Subject{Environment: slices.Clone(r.slot.Subject.Environment), Cores: slices.Clone(r.slot.Subject.Cores)}
}

// release takes everything back that was applied to the run and not to its
// command.
func (r *run) release() {
	r.reporting.Lock()
	defer r.reporting.Unlock()
	r.agent.controls.Release(r.slot.Subject, false)
}

// awaitEnd returns how the command ended. One that asks for another trial has
// done what ends with code 0.
func (r *run) awaitEnd() process.Exit {
	select {
	case <-r.asked:
		return process.Exit{}
	case <-r.slot.Process.Done:
	}
	r.mutex.Lock()
	r.ended = r.asking == nil
	ended := r.ended
	r.mutex.Unlock()
	if !ended { // it asked, and was gone at once
		return process.Exit{}
	}
	return r.slot.Process.Exit()
}

// hangUp ends what runs beside the command. A script that has asked for another
// trial still hears that this one is over.
func (r *run) hangUp() {
	r.window.Close()
	if r.over() {
		r.slot.Retire(r.socket)
	} else {
		r.socket.Close()
	}
}

// notStarted says how to give back a trial whose command never ran. What the
// study got wrong is its failure; everything else is this worker's.
func (r *run) notStarted(err error) (request protocol.FinishRequest, fit bool) {
	r.log.Note("%v", err)
	ended := r.endedBy(false)
	if ended.kind != notEnded {
		return protocol.FinishRequest{Outcome: protocol.Interrupted, Reason: ended.reason}, true
	}
	if errors.As(err, new(process.Refusal)) {
		r.logger.Warn("the study is not run here", "study", r.lease.Study, "reason", err)
		return protocol.FinishRequest{Outcome: protocol.Refused, Reason: fmt.Sprintf("worker %s does not run it: %v", r.agent.options.Name, err)}, true
	}
	r.logger.Warn("the command was not started", "error", err)
	if errors.As(err, new(process.StudyFault)) {
		return protocol.FinishRequest{Outcome: protocol.CommandFailed, Reason: err.Error()}, true
	}
	request = protocol.FinishRequest{Outcome: protocol.Interrupted, Reason: protocol.CannotRun + err.Error()}
	if request.KeyRefused = enclave.Refused(err); errors.As(err, new(enclave.Away)) {
		request.Reason = protocol.NoKey + err.Error()
	}
	if errors.As(err, new(artifact.Unusable)) {
		request = protocol.FinishRequest{Outcome: protocol.Interrupted, Reason: err.Error(), Unusable: r.lease.Checkpoint.Artifact}
	}
	return request, false
}

// finish sends the rest of the log and ends the lease, unless it is lost.
func (r *run) finish(request protocol.FinishRequest, sender flush.Sender) {
	r.mutex.Lock()
	gone := r.ending.kind == lost
	r.finishing = true
	r.mutex.Unlock()
	if gone {
		r.logger.Warn("lost the lease", "reason", context.Cause(r.ctx))
		r.leaveBehind(protocol.FinishRequest{Outcome: protocol.Interrupted, Reason: "the worker let go of it, as no heartbeat was answered for nine tenths of a lease"})
		return
	}
	r.log.Close()
	sender.Tail = r.tail
	sender.Last(r.ctx)
	request.LeaseEpoch, request.GPUUse, request.Keyed = r.lease.LeaseEpoch, r.gpu.Take(), r.keyed.Load()
	request.Reason = script.Truncate(request.Reason, 4096)
	var reply protocol.FinishReply
	err := retry.Do(r.ctx, retry.CallPatience, r.stalled, func(ctx context.Context) (err error) {
		reply, err = r.agent.options.Server.Finish(ctx, r.lease.Trial, request)
		return err
	})
	if err != nil {
		r.leaveBehind(request)
		r.logger.Warn("the end of the lease was not taken", "error", err, "cause", context.Cause(r.ctx))
		return
	}
	r.outbox.Remove()
	r.logger.Info("finished", "outcome", request.Outcome, "reason", request.Reason, "state", reply.State)
	if reply.Excluded != nil {
		r.logger.Warn("the server gives this worker no more trials of the study for a time", "study", r.lease.Study, "until", reply.Excluded.Until, "reason", reply.Excluded.Reason)
		if useless := r.agent.staying.Excluded(reply.Excluded.Reason); useless != nil {
			r.agent.leave(useless)
		}
	}
}
