package rest

import (
	"context"
	"errors"
	"net/http"
	"syscall"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Register introduces a worker; again with the same id is harmless.
func (c PoolCalls) Register(ctx context.Context, registration protocol.WorkerRegistration) (protocol.Timing, error) {
	return exchange[protocol.Timing](ctx, c.caller, path("workers"), registration, func(r *request) { r.features = registration.Features })
}

// Unregister takes leave.
func (c PoolCalls) Unregister(ctx context.Context, worker string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("workers", worker)}, nil)
}

// Heartbeat keeps the worker's leases alive; not_found means that it has to
// register again.
func (c PoolCalls) Heartbeat(ctx context.Context, worker string, beat protocol.Heartbeat) (protocol.HeartbeatReply, error) {
	if beat.Leases == nil {
		beat.Leases = []protocol.HeldLease{}
	}
	reply, err := exchange[protocol.HeartbeatReply](ctx, c.caller, path("workers", worker, "heartbeat"), beat)
	if errors.Is(err, syscall.ECONNREFUSED) {
		// No server is there to give a trial away, and one that starts renews all leases.
		err = protocol.Kept{Refusal: err}
	}
	return reply, err
}

// Workers returns the workers the server knows.
func (c PoolCalls) Workers(ctx context.Context) ([]protocol.Worker, error) {
	return list[protocol.Worker](ctx, c.caller, "workers", path("workers"))
}

// Pool returns who runs where and why.
func (c PoolCalls) Pool(ctx context.Context) (protocol.Pool, error) {
	return get[protocol.Pool](ctx, c.caller, path("pool"), "")
}
