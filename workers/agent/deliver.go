package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/retry"
	"github.com/tandem-tune/tandem/workers/agent/workspace"
)

// letGo ends a run whose lease the server may give away, without its word for
// it. What it had reported by then is told when the server is back, and so is
// that it can have the trial: if the server was asleep, or its answers did not
// arrive, then nobody else has it yet.
func (r *run) letGo() {
	r.mutex.Lock()
	r.free = r.free || r.ending.kind != lost // it is asked for again until the run is over
	r.mutex.Unlock()
	r.lose("no heartbeat was answered for so long that the server may give it away")
}

// leaveBehind leaves to the agent what is still to be told of the lease, if it is
// for this run to tell.
func (r *run) leaveBehind(end protocol.FinishRequest) {
	r.mutex.Lock()
	free := r.free
	r.mutex.Unlock()
	if !free {
		r.outbox.Remove()
		return
	}
	left, err := r.outbox.Seal()
	if err != nil {
		r.logger.Warn("what was not reported of a lease is lost", "error", err)
		r.outbox.Remove()
		return
	}
	left.End = end
	r.agent.deliverLater(left)
}

// deliverLater tells the server what is left of a lease as soon as it answers.
func (a *Agent) deliverLater(l workspace.Letter) {
	a.deliveries.Go(func() {
		told, err := a.deliver(a.alive, l)
		logger := a.options.Logger.With("trial", l.Held.Trial, "lease", l.Held.LeaseEpoch, "reports", told)
		switch {
		case a.alive.Err() != nil:
			return // the next agent may find it
		case err != nil:
			logger.Info("what was left of a lease is not wanted any more", "error", err)
		default:
			logger.Info("told the server what was left of a lease", "outcome", l.End.Outcome)
		}
		_ = os.Remove(l.Path) // what stays is removed with the folder
	})
}

// deliver sends the reports in order and ends the lease. It returns how many
// reports were accepted, and the error of a lease that is another's by now.
func (a *Agent) deliver(ctx context.Context, l workspace.Letter) (told int, err error) {
	server := a.options.Server
	for _, report := range l.Reports {
		err := retry.Do(ctx, retry.CallPatience, func(error) {}, func(ctx context.Context) error {
			_, err := server.Report(ctx, l.Held.Trial, report)
			return err
		})
		switch {
		case err == nil:
			told++
		case ctx.Err() != nil || problem.Is(err, problem.LeaseLost) || problem.Is(err, problem.NotFound):
			return told, err
		default:
			a.options.Logger.Warn("a report that had waited was refused", "trial", l.Held.Trial, "epoch", report.Epoch, "error", err)
		}
	}
	l.End.LeaseEpoch = l.Held.LeaseEpoch
	return told, retry.Do(ctx, retry.CallPatience, func(error) {}, func(ctx context.Context) error {
		_, err := server.Finish(ctx, l.Held.Trial, l.End)
		return err
	})
}

// deliverInherited tells what agents that were killed had not told, and that they are
// gone. Their trials are lost: the server need not wait until their leases are over.
// Whether another job has ended its launcher tells; a launched worker only takes leave.
func (a *Agent) deliverInherited() {
	for _, id := range a.workspace.Dead {
		if a.options.Leave.Launch != "" {
			break
		}
		a.deliveries.Go(func() {
			err := retry.Do(a.alive, retry.CallPatience, func(error) {}, func(ctx context.Context) error {
				return a.options.Server.Unregister(ctx, id)
			})
			if err == nil {
				a.options.Logger.Info("told the server that a worker was killed", "worker", id)
			}
		})
	}
	for _, l := range a.workspace.Inherited {
		l.End = protocol.FinishRequest{Outcome: protocol.Vanished, Reason: fmt.Sprintf("its worker was killed, as the next one on %s found", a.options.Name)}
		a.deliverLater(l)
	}
}

// openOutbox begins to keep what a run reports. Without room on the disk it
// goes on all the same.
func openOutbox(in *workspace.Workspace, lease protocol.Lease, logger *slog.Logger) *workspace.Outbox {
	outbox, err := in.OpenOutbox(protocol.HeldLease{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch})
	if err != nil {
		outbox.Remove()
		logger.Warn("reports that wait for the server cannot be kept on the disk", "error", err)
		return nil
	}
	return outbox
}

// noteOutbox warns once where the outbox has no room.
func (r *run) noteOutbox(err error) {
	if err != nil && r.agent.news("outbox") {
		r.logger.Warn("reports that wait for the server cannot be kept on the disk", "error", err)
	}
}
