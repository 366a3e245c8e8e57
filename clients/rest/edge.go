package rest

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/backend"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// Architecture says what a trial trains.
func (c EdgeCalls) Architecture(ctx context.Context, id trial.ID, report protocol.ArchitectureReport) (protocol.ArchitectureReply, error) {
	return write[protocol.ArchitectureReply](ctx, c.caller, id, "architecture", report)
}

// Inferences reports what real inferences of it took on the worker.
func (c EdgeCalls) Inferences(ctx context.Context, id trial.ID, report protocol.InferenceReport) (protocol.ArchitecturesImported, error) {
	return write[protocol.ArchitecturesImported](ctx, c.caller, id, "inferences", report)
}

// AskBoard asks for a model to measure on a board.
func (c EdgeCalls) AskBoard(ctx context.Context, ask emu.BoardAsk) (emu.BoardReply, error) {
	return exchange[emu.BoardReply](ctx, c.caller, path("boards", "ask"), ask, once)
}

// ReportBoard reports what it took there.
func (c EdgeCalls) ReportBoard(ctx context.Context, runs emu.BoardRuns) (protocol.ArchitecturesImported, error) {
	return exchange[protocol.ArchitecturesImported](ctx, c.caller, path("boards", "runs"), runs)
}

// Boards are those that asked in the last day.
func (c EdgeCalls) Boards(ctx context.Context) ([]emu.Board, error) {
	return list[emu.Board](ctx, c.caller, "boards", path("boards"))
}

// Backends are the places to deploy at a price.
func (c EdgeCalls) Backends(ctx context.Context) ([]backend.Backend, error) {
	return list[backend.Backend](ctx, c.caller, "backends", path("backends"))
}

// SetBackend adds one, or replaces it; it takes an admin's token.
func (c EdgeCalls) SetBackend(ctx context.Context, name string, offer backend.BackendOffer) (backend.Backend, error) {
	return exchange[backend.Backend](ctx, c.caller, path("backends", name), offer, func(r *request) { r.method = http.MethodPut })
}

// RemoveBackend removes one; it takes an admin's token.
func (c EdgeCalls) RemoveBackend(ctx context.Context, name string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: path("backends", name)}, nil)
}

// ChooseBackend says on which a model of the study is served best: that of the trial, of the
// recommended one if it is below 0; by the priority, the study's if it is empty.
func (c EdgeCalls) ChooseBackend(ctx context.Context, study string, trial int, priority string) (backend.BackendChoice, error) {
	query := url.Values{}
	if trial >= 0 {
		query.Set("trial", strconv.Itoa(trial))
	}
	if priority != "" {
		query.Set("priority", priority)
	}
	return get[backend.BackendChoice](ctx, c.caller, path("studies", study, "backend"), query.Encode())
}

// Deployments says how to run the trial's model on the study's devices.
func (c EdgeCalls) Deployments(ctx context.Context, study string, number int) (protocol.Deployments, error) {
	return get[protocol.Deployments](ctx, c.caller, path("studies", study, "trials", strconv.Itoa(number), "deployments"), "")
}
