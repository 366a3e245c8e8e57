package agent

import (
	"context"
	"io"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/process"
	"github.com/tandem-tune/tandem/workers/agent/script"
)

// calls are what the run answers its script over the socket.
type calls struct {
	*run
	// process is where the run is when its socket is opened.
	process *process.Slot
}

// Admit refuses processes that are not the command's.
func (c calls) Admit(ctx context.Context, pid int) error { return c.process.Admits(ctx, pid) }

// Called notes that the script has a client. After it has asked for another trial
// there is no other call.
func (c calls) Called() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.orders.Client = true
	if c.asking == nil {
		return nil
	}
	return problem.New(problem.LeaseLost, "this run of trial %s is over: the script has asked for another one", c.lease.Trial)
}

// Trial says what to train.
func (c calls) Trial() script.Trial {
	return script.TrialOf(c.lease, c.settings.Wanted(), c.place.Checkpoint)
}

// Directive says what the server wants.
func (c calls) Directive() protocol.Directive { return c.tell(protocol.Directive{}) }

func (c calls) tell(answer protocol.Directive) protocol.Directive {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.orders.Tell(answer)
}

// Begin marks the start of training.
func (c calls) Begin(epoch int) error {
	if err := c.soFar().span().CheckBegin(epoch); err != nil {
		return err
	}
	c.markBegin()
	return nil
}

// Report sends an epoch and says what the server wants then.
func (c calls) Report(said script.Outcome) (protocol.Directive, error) {
	said.Waits = true
	directive, err := c.report(said)
	if err != nil {
		return protocol.Directive{}, err
	}
	return c.tell(directive), nil
}

// Checkpoint publishes the checkpoint folder, beside the next epoch if there is one and the
// script does not wait.
func (c calls) Checkpoint(epoch int, wait bool) (script.Checkpoint, error) {
	c.publishes.Store(true)
	c.mutex.Lock()
	goesOn := c.orders.Directive.Action == protocol.Continue && c.ending.kind == notEnded
	c.mutex.Unlock()
	return c.commit(epoch, !wait && goesOn)
}

// Artifact keeps a file with the trial.
func (c calls) Artifact(name string, body io.Reader) error {
	defer c.working()()
	c.logging.Lock()
	defer c.logging.Unlock()
	err := c.checkpoint.Log(c.ctx, name, body)
	if problem.Is(err, problem.LeaseLost) {
		return c.judged(err)
	}
	return err
}

// Next ends the run on the script's behalf.
func (c calls) Next() *script.Asking { return c.ask() }

// Model takes the model that the script trains.
func (c calls) Model(body io.Reader) error { return c.emulation.Take(c.ctx, body, c.place.Directory) }

// ModelIn takes the trained model in a precision.
func (c calls) ModelIn(body io.Reader, said trial.Precision, more bool) error {
	defer c.working()()
	return c.emulation.TakePrecision(c.ctx, body, c.place.Directory, said, more)
}

// shortestSetup is reported where a start took no measurable time: 0 would say
// that nobody knows.
const shortestSetup = time.Microsecond

// markBegin separates the start of the script from its first epoch: the
// profile begins anew, and how long the start took is kept for the report. Time
// and energy of a start are spent as well, so those go on. Only the first mark
// of a run counts, and none after a report.
func (r *run) markBegin() {
	at := clock.Now()
	if r.soFar().reported {
		return // without waiting for a report that is on its way
	}
	r.reporting.Lock()
	defer r.reporting.Unlock()
	if r.sealed || r.setup != 0 || r.soFar().reported {
		return
	}
	r.setup = max(time.Duration(at-r.mark.At), shortestSetup)
	r.slot.Process.Lap()
}
