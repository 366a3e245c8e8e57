package agent

import (
	"fmt"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/script"
)

// commit keeps the checkpoint folder as the state after the epoch. It returns when the
// server has it; behind a script that trains on, when it is packed.
func (r *run) commit(epoch int, behind bool) (kept script.Checkpoint, err error) {
	defer r.working()()
	if p := r.soFar(); epoch < 1 || epoch > p.last {
		return kept, problem.WithFields("the checkpoint is not valid", []problem.Field{{Path: "epoch", Value: epoch,
			Message: fmt.Sprintf("must be 1 to %d, the newest epoch reported: report an epoch before its checkpoint", p.last)}})
	}
	if r.unwanted() {
		return kept, problem.New(problem.Conflict, "the trial was stopped: its checkpoint is not wanted any more")
	}
	kept.Artifact, kept.Bytes, err = r.checkpoint.Keep(r.ctx, epoch, behind)
	if problem.Is(err, problem.LeaseLost) && !r.unwanted() {
		err = r.judged(err)
	}
	return kept, err
}

// unwanted reports whether the server wants the trial stopped.
func (r *run) unwanted() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.orders.Directive.Action == protocol.Stop
}

// commitAtEnd waits for a checkpoint on its way, and publishes what a script that ended
// well left in its checkpoint folder. A script that publishes by itself knows better, and a
// folder that is what the server has already belongs to an earlier epoch.
func (r *run) commitAtEnd(p progress, well bool) {
	changed, err := r.checkpoint.Changed()
	if !well || r.publishes.Load() || !p.reported || r.unwanted() || r.ctx.Err() != nil || err == nil && !changed {
		return
	}
	if err == nil {
		_, err = r.commit(p.last, false)
	}
	if err != nil {
		r.log.Note("the checkpoint of epoch %d was not kept: %v", p.last, err)
	}
}
