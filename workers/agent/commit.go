package agent

import (
	"fmt"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/script"
)

// commit packs the checkpoint folder, uploads it and publishes it as the state
// after the epoch. It returns when the server has it, for good.
func (r *run) commit(epoch int) (script.Checkpoint, error) {
	defer r.working()()
	r.committing.Lock()
	defer r.committing.Unlock()
	if p := r.soFar(); epoch < 1 || epoch > p.last {
		return script.Checkpoint{}, problem.WithFields("the checkpoint is not valid", []problem.Field{{Path: "epoch", Value: epoch,
			Message: fmt.Sprintf("must be 1 to %d, the newest epoch reported: report an epoch before its checkpoint", p.last)}})
	}
	if r.unwanted() {
		return script.Checkpoint{}, problem.New(problem.Conflict, "the trial was stopped: its checkpoint is not wanted any more")
	}
	packed, err := r.checkpoint.Pack(epoch)
	if err != nil {
		return script.Checkpoint{}, err
	}
	defer r.checkpoint.Release(packed)
	err = r.checkpoint.Publish(r.ctx, packed, epoch)
	if problem.Is(err, problem.LeaseLost) {
		return script.Checkpoint{}, r.judged(err)
	}
	if err != nil {
		if r.ctx.Err() == nil { // a refusal, unlike the end of the run, came from the server
			r.reached()
		}
		return script.Checkpoint{}, err
	}
	r.reached()
	r.logger.Debug("kept a checkpoint", "epoch", epoch, "bytes", packed.Bytes)
	return script.Checkpoint{Artifact: packed.SHA256, Bytes: packed.Bytes}, nil
}

// unwanted reports whether the server wants the trial stopped.
func (r *run) unwanted() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.orders.Directive.Action == protocol.Stop
}

// commitAtEnd publishes what a script that ended well left in its checkpoint
// folder. A script that publishes by itself knows better, and a folder that is
// what the server has already belongs to an earlier epoch.
func (r *run) commitAtEnd(p progress) {
	if r.publishes.Load() || !p.reported || r.unwanted() || r.ctx.Err() != nil {
		return
	}
	changed, err := r.checkpoint.Changed()
	if err == nil && !changed {
		return
	}
	if err == nil {
		_, err = r.commit(p.last)
	}
	if err != nil {
		r.log.Note("the checkpoint of epoch %d was not kept: %v", p.last, err)
	}
}
