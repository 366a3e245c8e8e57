package agent

import (
	"context"
	"io"

	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// faulty is a server with the failpoints of the fault tests around the calls
// that change something. In a program as it is shipped it does nothing.
type faulty struct{ Server }

// inject calls, with a failpoint before and one after it.
func inject[T any](before, after failpoint.Point, call func() (T, error)) (T, error) {
	var nothing T
	if err := failpoint.Here(before); err != nil {
		return nothing, err
	}
	answer, err := call()
	if err == nil {
		err = failpoint.Here(after)
	}
	return answer, err
}

// Lease asks for a trial.
func (f faulty) Lease(ctx context.Context, ask protocol.LeaseRequest) (protocol.LeaseReply, error) {
	reply, err := f.Server.Lease(ctx, ask)
	if err == nil && reply.Lease != nil {
		if err = failpoint.Here(failpoint.AgentLeased); err != nil {
			reply = protocol.LeaseReply{}
		}
	}
	return reply, err
}

// Report stores an epoch.
func (f faulty) Report(ctx context.Context, id trial.ID, report protocol.Report) (protocol.Directive, error) {
	return inject(failpoint.AgentReporting, failpoint.AgentReported, func() (protocol.Directive, error) {
		return f.Server.Report(ctx, id, report)
	})
}

// PutArtifact uploads what was packed.
func (f faulty) PutArtifact(ctx context.Context, sha256 string, size int64, open func() (io.ReadCloser, error)) error {
	if err := failpoint.Here(failpoint.AgentPacked); err != nil {
		return err
	}
	return f.Server.PutArtifact(ctx, sha256, size, open)
}

// CommitCheckpoint publishes an uploaded artifact.
func (f faulty) CommitCheckpoint(ctx context.Context, id trial.ID, commit protocol.CheckpointCommit) error {
	_, err := inject(failpoint.AgentUploaded, failpoint.AgentCommitted, func() (struct{}, error) {
		return struct{}{}, f.Server.CommitCheckpoint(ctx, id, commit)
	})
	return err
}

// Finish ends a lease.
func (f faulty) Finish(ctx context.Context, id trial.ID, end protocol.FinishRequest) (protocol.FinishReply, error) {
	return inject(failpoint.AgentFinishing, failpoint.AgentFinished, func() (protocol.FinishReply, error) {
		return f.Server.Finish(ctx, id, end)
	})
}
