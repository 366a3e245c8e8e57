package rest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// Lease asks for a trial to run, and waits for one as long as the request says.
// With a key it may be called again until it is answered.
func (c PoolCalls) Lease(ctx context.Context, ask protocol.LeaseRequest) (protocol.LeaseReply, error) {
	return exchange[protocol.LeaseReply](ctx, c.caller, path("leases"), ask, func(r *request) {
		r.wait, r.key = time.Duration(ask.WaitSeconds*float64(time.Second)), ask.Key
	})
}

// Report stores an epoch; the same epoch again changes nothing.
func (c PoolCalls) Report(ctx context.Context, id trial.ID, report protocol.Report) (protocol.Directive, error) {
	return write[protocol.Directive](ctx, c.caller, id, "reports", report)
}

// CommitCheckpoint publishes an uploaded artifact as the trial's checkpoint.
func (c PoolCalls) CommitCheckpoint(ctx context.Context, id trial.ID, commit protocol.CheckpointCommit) error {
	_, err := write[none](ctx, c.caller, id, "checkpoint", commit)
	return err
}

// Finish ends a lease.
func (c PoolCalls) Finish(ctx context.Context, id trial.ID, end protocol.FinishRequest) (protocol.FinishReply, error) {
	return write[protocol.FinishReply](ctx, c.caller, id, "finish", end)
}

// AppendLog appends to the trial's log.
func (c PoolCalls) AppendLog(ctx context.Context, id trial.ID, chunk protocol.LogChunk) error {
	_, err := write[none](ctx, c.caller, id, "log", chunk)
	return err
}

// KeepSamples keeps what was sampled under the lease, in place of what was kept of it.
func (c PoolCalls) KeepSamples(ctx context.Context, id trial.ID, batch protocol.SampleBatch) error {
	_, err := write[none](ctx, c.caller, id, "samples", batch)
	return err
}

// write makes a call under a lease. The lease epoch in it makes its content
// name the logical call, so the key is made of the content: a worker that
// calls again after it gave up, or was started anew, still repeats the same one.
func write[T any](ctx context.Context, c *caller, id trial.ID, what string, document any) (T, error) {
	return exchange[T](ctx, c, path("trials", string(id), what), document, func(r *request) {
		name := sha256.Sum256(append([]byte(r.path+"\n"), r.body...))
		r.key = hex.EncodeToString(name[:])
	})
}
