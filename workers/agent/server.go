package agent

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/artifact"
	"github.com/tandem-tune/tandem/workers/agent/flush"
)

// Server is what an agent needs of the study server. clients/rest implements it
// over HTTP.
//
// Errors are *problem.Error where the server answered; unavailable, internal
// and any other error count as passing faults and are tried again. not_found
// for the worker means that the server was restarted: the agent registers
// again. lease_lost, and not_found for a trial, end the run at once.
// Implementations are safe for concurrent use.
type Server interface {
	// Identity says whose the token is that all calls are made with.
	Identity(ctx context.Context) (protocol.Identity, error)
	// Register introduces the worker; registering again with the same id is
	// harmless.
	Register(ctx context.Context, registration protocol.WorkerRegistration) (protocol.Timing, error)
	Unregister(ctx context.Context, worker string) error
	Heartbeat(ctx context.Context, worker string, beat protocol.Heartbeat) (protocol.HeartbeatReply, error)
	// Lease waits up to the request's WaitSeconds for a trial.
	Lease(ctx context.Context, request protocol.LeaseRequest) (protocol.LeaseReply, error)
	// Report stores an epoch; the same epoch again changes nothing.
	Report(ctx context.Context, id trial.ID, report protocol.Report) (protocol.Directive, error)
	Finish(ctx context.Context, id trial.ID, request protocol.FinishRequest) (protocol.FinishReply, error)
	flush.Server
	artifact.Server
	artifact.ModelServer
}
