package agent

import (
	"context"
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
	arrived := r.agent.colocated.Snapshot()
	r.reporting.Lock()
	defer r.reporting.Unlock()
	if r.sealed {
		return protocol.Directive{}, problem.New(problem.LeaseLost, "the run is over")
	}
	defer func() {
		if r.ctx.Err() == nil { // else it is sent again
			r.noteOutbox(r.outbox.Answered(said.Epoch))
		}
	}()
	p := r.soFar()
	if p.reported && (said.Epoch == p.last || r.lease.Budget.Measured() && p.complete()) {
		return p.answer, nil // a script may go on before it hears that its budget is spent
	}
	err := p.span().Check(said.Epoch, said.Metrics)
	if err == nil && r.lease.Confidential != nil {
		said.System = nil
		said.Metrics, err = r.lease.Confidential.Rounded(said.Metrics)
	}
	var directive protocol.Directive
	if err == nil {
		report := r.measured(said, arrived)
		report.Attestation = r.attestation // with each: the server may know the first epochs from before
		r.noteOutbox(r.outbox.Keep(report))
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
	r.samples.Next(min(said.Epoch+1, r.lease.Budget.Epochs)) // what follows the last one is of it
	r.mark, r.setup = arrived, 0
	if said.Waits { // the answer's time is not the script's
		r.mark = r.agent.colocated.Snapshot()
	}
	r.orders.Take(directive)
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
	r.settings.Apply(r.slot.Subject)
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
// before was answered, or reported where the script does not wait, and the energy, the profile and the use of GPUs since the one
// before was measured.
func (r *run) measured(said script.Outcome, arrived clock.Snapshot) protocol.Report {
	energy := r.window.Lap()
	took := max(0, time.Duration(arrived.At-r.mark.At))
	return protocol.Report{
		LeaseEpoch: r.lease.LeaseEpoch, Epoch: said.Epoch, Metrics: said.Metrics,
		Seconds:      trial.Float(took.Seconds()),
		Energy:       &trial.Energy{Joules: trial.Float(energy.Joules), Method: energy.Method},
		Profile:      r.slot.Process.Profile(),
		SetupSeconds: trial.Float(r.setup.Seconds()),
		System:       r.settings.InForce(r.slot.Subject, said.System),
		Neighbours:   trial.Float(arrived.Others(r.mark)),
		GPUUse:       r.gpu.Take(),

		SprintSeconds: trial.Float(min(took, r.sprint.Take(arrived.At)).Seconds()),
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
