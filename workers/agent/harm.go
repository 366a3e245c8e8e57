package agent

import (
	"context"

	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// harmed is a server with the failpoints of the fault tests around the calls
// that change something. In a program as it is shipped it does nothing.
type harmed struct{ Server }

// harm calls, with a failpoint before and one behind it.
func harm[T any](before, behind failpoint.Point, call func() (T, error)) (T, error) {
	var nothing T
	if err := failpoint.Here(before); err != nil {
		return nothing, err
	}
	answer, err := call()
	if err == nil {
		err = failpoint.Here(behind)
	}
	return answer, err
}

// Lease asks for a trial.
func (h harmed) Lease(ctx context.Context, ask protocol.LeaseRequest) (protocol.LeaseReply, error) {
	reply, err := h.Server.Lease(ctx, ask)
	if err == nil && reply.Lease != nil {
		if err = failpoint.Here(failpoint.AgentLeased); err != nil {
			reply = protocol.LeaseReply{}
		}
	}
	return reply, err
}

// Report stores an epoch.
func (h harmed) Report(ctx context.Context, id trial.ID, report protocol.Report) (protocol.Directive, error) {
	return harm(failpoint.AgentReporting, failpoint.AgentReported, func() (protocol.Directive, error) {
		return h.Server.Report(ctx, id, report)
	})
}

// CommitCheckpoint publishes an uploaded artifact.
func (h harmed) CommitCheckpoint(ctx context.Context, id trial.ID, commit protocol.CheckpointCommit) error {
	_, err := harm(failpoint.AgentUploaded, failpoint.AgentCommitted, func() (struct{}, error) {
		return struct{}{}, h.Server.CommitCheckpoint(ctx, id, commit)
	})
	return err
}

// Finish ends a lease.
func (h harmed) Finish(ctx context.Context, id trial.ID, end protocol.FinishRequest) (protocol.FinishReply, error) {
	return harm(failpoint.AgentFinishing, failpoint.AgentFinished, func() (protocol.FinishReply, error) {
		return h.Server.Finish(ctx, id, end)
	})
}
