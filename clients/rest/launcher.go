package rest

import (
	"context"
	"net/http"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
)

// Gone says that the job of a worker has ended, as the engine that ran it knows; what it
// held waits for others at once.
func (c LauncherCalls) Gone(ctx context.Context, worker string, told protocol.Gone) (protocol.GoneReply, error) {
	return exchange[protocol.GoneReply](ctx, c.caller, path("workers", worker, "gone"), told)
}

// ReportLauncher tells what a launcher has asked its engine for, and returns what it is
// asked for in turn.
func (c LauncherCalls) ReportLauncher(ctx context.Context, launcher string, report crew.LauncherReport) (crew.LauncherReply, error) {
	return exchange[crew.LauncherReply](ctx, c.caller, path("pool", "launchers", launcher), report, func(r *request) { r.method = http.MethodPut })
}

// Launches returns what launchers start, and what became of it.
func (c LauncherCalls) Launches(ctx context.Context) ([]crew.Launcher, error) {
	answer, err := get[crew.Launches](ctx, c.caller, path("pool", "launches"), "")
	return answer.Launchers, err
}

// TryAgain asks a launcher, by its id, not to wait for the end of a shape's hold.
func (c LauncherCalls) TryAgain(ctx context.Context, launcher, shape string) (crew.Launcher, error) {
	return exchange[crew.Launcher](ctx, c.caller, path("pool", "launchers", launcher, "try-again"), crew.TryAgain{Shape: shape})
}

// PoolWanted says what studies would start now if there were workers for it.
func (c LauncherCalls) PoolWanted(ctx context.Context) (crew.PoolWanted, error) {
	return get[crew.PoolWanted](ctx, c.caller, path("pool", "wanted"), "")
}

// Enrol makes a token for the worker of each launch, to be used once.
func (c LauncherCalls) Enrol(ctx context.Context, ask crew.EnrolmentRequest) ([]crew.Enrolment, error) {
	made, err := exchange[crew.Enrolments](ctx, c.caller, path("enrolments"), ask)
	return made.Enrolments, err
}

// ExchangeEnrolment gets a worker's token for the client's own, an enrolment. With the
// same nonce it may be called again.
func (c LauncherCalls) ExchangeEnrolment(ctx context.Context, nonce string) (crew.LaunchedToken, error) {
	return exchange[crew.LaunchedToken](ctx, c.caller, path("enrolments", "exchange"), crew.EnrolmentExchange{Nonce: nonce})
}
