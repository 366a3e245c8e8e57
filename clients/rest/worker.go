package rest

import (
	"context"
	"net/http"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Register introduces a worker; again with the same id is harmless.
func (c *Client) Register(ctx context.Context, registration protocol.WorkerRegistration) (protocol.Timing, error) {
	return exchange[protocol.Timing](ctx, c, path("workers"), registration)
}

// Unregister takes leave.
func (c *Client) Unregister(ctx context.Context, worker string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("workers", worker)}, nil)
}

// Heartbeat keeps the worker's leases alive; not_found means that it has to
// register again.
func (c *Client) Heartbeat(ctx context.Context, worker string, beat protocol.Heartbeat) (protocol.HeartbeatReply, error) {
	if beat.Leases == nil {
		beat.Leases = []protocol.HeldLease{}
	}
	return exchange[protocol.HeartbeatReply](ctx, c, path("workers", worker, "heartbeat"), beat)
}

// Workers returns the workers the server knows.
func (c *Client) Workers(ctx context.Context) ([]protocol.Worker, error) {
	list, err := get[struct {
		Workers []protocol.Worker `json:"workers"`
	}](ctx, c, path("workers"), "")
	return list.Workers, err
}

// Pool returns who runs where and why.
func (c *Client) Pool(ctx context.Context) (protocol.Pool, error) {
	return get[protocol.Pool](ctx, c, path("pool"), "")
}
