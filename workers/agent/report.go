package agent

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/retry"
	"github.com/tandem-tune/tandem/workers/agent/script"
)

// report sends an epoch and returns what to do next. It waits for a server that
// is away as long as the lease lives, whoever asked for it. The newest epoch
// reported again gets its answer again.
func (r *run) report(said script.Outcome) (protocol.Directive, error) {
	defer r.working()()
	arrived := r.agent.company.stand()
	r.reporting.Lock()
	defer r.reporting.Unlock()
	if r.sealed {
		return protocol.Directive{}, problem.New(problem.LeaseLost, "the run is over")
	}
	defer r.noteAnswer(said.Epoch)
	p := r.soFar()
	if p.reported && (said.Epoch == p.last || r.lease.Budget.Measured() && p.complete()) {
		return p.answer, nil // a script may go on before it hears that its budget is spent
	}
	err := p.span().Check(said.Epoch, said.Metrics)
	var directive protocol.Directive
	if err == nil {
		report := r.measured(said, arrived)
		r.keep(report)
		r.emulation.Await(r.ctx)
		err = retry.Do(r.ctx, retry.CallPatience, r.stalled, func(ctx context.Context) (err error) {
			directive, err = r.agent.options.Server.Report(ctx, r.lease.Trial, report)
			return err
		})
		err = r.judged(err)
	}
	if err == nil {
		r.resolve(directive)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.progress.unreachable = false // it has answered, or is of no interest any more
	if err != nil {
		r.progress.refusal = err.Error()
		return protocol.Directive{}, err
	}
	r.progress.last, r.progress.reported, r.progress.answer = said.Epoch, true, directive
	r.progress.refusal = ""
	r.mark, r.setup = r.agent.company.stand(), 0
	r.take(directive)
	return directive, nil
}

// resolve takes the configuration for the next epoch out of the answer to a
// report and applies what is the agent's. The caller holds the reports.
func (r *run) resolve(directive protocol.Directive) {
	if directive.Action != protocol.Continue {
		return
	}
	if len(directive.System) > 0 {
		r.settings.Want(directive.System)
	}
	r.settings.Apply(r.seat.subject)
}

// noteAnswer notes that the report needs not be sent again, unless the run has
// ended before it was answered.
func (r *run) noteAnswer(epoch int) {
	if r.ctx.Err() != nil {
		return
	}
	if err := r.outbox.Answered(epoch); err != nil && r.agent.news("outbox") {
		r.logger.Warn("reports that wait for the server cannot be kept on the disk", "error", err)
	}
}

func (r *run) soFar() progress {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.progress
}

// settled is the progress when no report is on its way any more, and none can
// come: one that came over the socket may outlive its script.
func (r *run) settled() progress {
	r.reporting.Lock()
	defer r.reporting.Unlock()
	r.sealed = true
	return r.soFar()
}

// measured adds what the worker measured of the epoch: the time since the one
// before was answered, and the energy, the profile and the use of GPUs since the one
// before was measured.
func (r *run) measured(said script.Outcome, arrived stand) protocol.Report {
	energy := r.window.Lap()
	took := max(0, time.Duration(arrived.at-r.mark.at))
	return protocol.Report{
		LeaseEpoch: r.lease.LeaseEpoch, Epoch: said.Epoch, Metrics: said.Metrics,
		Seconds:      trial.Float(took.Seconds()),
		Energy:       &trial.Energy{Joules: trial.Float(energy.Joules), Method: energy.Method},
		Profile:      r.seat.process.profile(),
		SetupSeconds: trial.Float(r.setup.Seconds()),
		System:       r.settings.InForce(r.seat.subject, said.System),
		Neighbours:   trial.Float(arrived.others(r.mark)),
		GPUUse:       r.gpu.Take(),

		SprintSeconds: trial.Float(min(took, r.sprint.Take(arrived.at)).Seconds()),
	}
}

// judged draws the consequences of the server's answer to a write.
func (r *run) judged(err error) error {
	if err == nil {
		return nil
	}
	if problem.Is(err, problem.LeaseLost) || problem.Is(err, problem.NotFound) {
		r.lose(err.Error())
	}
	if r.ctx.Err() != nil {
		return problem.New(problem.LeaseLost, "the run is over: %w", context.Cause(r.ctx))
	}
	return err
}

// stalled notes that the server could not be reached for a write.
func (r *run) stalled(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.progress.unreachable {
		r.logger.Warn("the server does not answer; trying again", "error", err)
	}
	r.progress.unreachable = true
}

// reached notes that the server is there.
func (r *run) reached() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.progress.unreachable = false
}

// answered notes that a refusal, unlike the end of the run, came from the server.
func (r *run) answered(err error) error {
	if r.ctx.Err() == nil {
		r.reached()
	}
	return err
}

// working stops the clock of epoch_timeout_seconds while the script waits for
// us; the returned function starts it anew.
func (r *run) working() (done func()) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.busy++
	return func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.busy--
		r.sign = clock.Now()
	}
}

// direct takes what a heartbeat brought; no action means to continue.
func (r *run) direct(directive protocol.Directive) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if directive.Action == "" {
		directive.Action = protocol.Continue
	}
	// A report's answer to continue has the system configuration as well.
	if directive.Action == protocol.Continue && r.directive.Action == protocol.Continue {
		return
	}
	r.take(directive)
}

// take remembers what the server wants. Stop and finish are final, and so is a
// pause the script knows of: it may be taking its checkpoint. The caller holds
// the mutex.
func (r *run) take(directive protocol.Directive) {
	switch current := r.directive.Action; {
	case current == protocol.Stop, current == protocol.Finish && directive.Action != protocol.Stop:
		return
	case current == protocol.Pause && r.told && directive.Action == protocol.Continue:
		return
	}
	r.directive, r.told = directive, false
	if directive.Action == protocol.Stop {
		r.stopAt = clock.Now()
		if r.client { // it learns of it by itself, at its next call
			r.stopAt += clock.Moment(r.agent.options.StopGrace)
		}
	}
}

// tell returns what the server wants, to a script that asks or has reported
// and got the answer. What a heartbeat brought may be newer than an answer to
// continue; any other answer stands.
func (r *run) tell(answer protocol.Directive) protocol.Directive {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if answer.Action == protocol.Pause && r.directive.Action == protocol.Continue {
		r.directive = answer
	}
	r.told = true
	if answer.Action == "" || answer.Action == protocol.Continue && r.directive.Action != protocol.Continue {
		return r.directive
	}
	return answer
}

// readLines reports what a script without a client prints, in order.
func (r *run) readLines() {
	looked := false
	for line := range r.lines {
		if err := r.ctx.Err(); err != nil {
			continue // the reader of the output must not be held up
		}
		if !looked && line.Epoch < r.lease.Budget.Epochs {
			r.noteLacking(line)
		}
		looked = true
		directive, err := r.report(script.Outcome{Epoch: line.Epoch, Metrics: line.Metrics})
		if err != nil {
			r.log.note("the report of epoch %d was refused: %v", line.Epoch, err)
			continue
		}
		if !line.Checkpoint {
			r.endSpent(directive)
			continue
		}
		if _, err := r.commit(line.Epoch); err != nil {
			r.log.note("the checkpoint of epoch %d was not kept: %v", line.Epoch, err)
		} else if directive.Action == protocol.Pause {
			// It cannot be told otherwise, and all it has done is kept.
			r.end(paused, directive.Reason, r.agent.options.StopGrace)
		}
		r.endSpent(directive)
	}
}

// noteLacking says at the first report, and not when the whole budget has been
// trained, that the last one must have a metric which this one lacks.
func (r *run) noteLacking(line script.Line) {
	for _, objective := range r.lease.Objectives {
		if _, has := line.Metrics[objective]; !has {
			r.log.note("epoch %d was reported without %s (but with %s), which the study needs: the report of epoch %d, the last of the budget, must have it, or the trial fails",
				line.Epoch, objective, strings.Join(slices.Sorted(maps.Keys(line.Metrics)), ", "), r.lease.Budget.Epochs)
			return
		}
	}
}

// endSpent ends a script without a client whose budget is an amount of time or
// energy: it cannot know at which epoch it is spent.
func (r *run) endSpent(directive protocol.Directive) {
	if directive.Action == protocol.Finish && r.lease.Budget.Measured() {
		r.end(spent, directive.Reason, r.agent.options.StopGrace)
	}
}
