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
func (c *Client) Lease(ctx context.Context, ask protocol.LeaseRequest) (protocol.LeaseReply, error) {
	var reply protocol.LeaseReply
	r, err := post(path("leases"), ask)
	if err != nil {
		return reply, err
	}
	r.wait = time.Duration(ask.WaitSeconds * float64(time.Second))
	r.key = ask.Key
	err = c.call(ctx, r, &reply)
	return reply, err
}

// Report stores an epoch; the same epoch again changes nothing.
func (c *Client) Report(ctx context.Context, id trial.ID, report protocol.Report) (protocol.Directive, error) {
	var directive protocol.Directive
	err := c.write(ctx, id, "reports", report, &directive)
	return directive, err
}

// CommitCheckpoint publishes an uploaded artifact as the trial's checkpoint.
func (c *Client) CommitCheckpoint(ctx context.Context, id trial.ID, commit protocol.CheckpointCommit) error {
	return c.write(ctx, id, "checkpoint", commit, nil)
}

// Finish ends a lease.
func (c *Client) Finish(ctx context.Context, id trial.ID, end protocol.FinishRequest) (protocol.FinishReply, error) {
	var reply protocol.FinishReply
	err := c.write(ctx, id, "finish", end, &reply)
	return reply, err
}

// AppendLog appends to the trial's log.
func (c *Client) AppendLog(ctx context.Context, id trial.ID, chunk protocol.LogChunk) error {
	return c.write(ctx, id, "log", chunk, nil)
}

// write makes a call under a lease. The lease epoch in it makes its content
// name the logical call, so the key is made of the content: a worker that
// calls again after it gave up, or was started anew, still repeats the same one.
func (c *Client) write(ctx context.Context, id trial.ID, what string, document, into any) error {
	r, err := post(path("trials", string(id), what), document)
	if err != nil {
		return err
	}
	name := sha256.Sum256(append([]byte(r.path+"\n"), r.body...))
	r.key = hex.EncodeToString(name[:])
	return c.call(ctx, r, into)
}
