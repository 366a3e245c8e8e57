package rest

import (
	"context"
	"strconv"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// Architecture says what a trial trains.
func (c PoolCalls) Architecture(ctx context.Context, id trial.ID, report protocol.ArchitectureReport) (protocol.ArchitectureReply, error) {
	return write[protocol.ArchitectureReply](ctx, c.caller, id, "architecture", report)
}

// Inferences reports what real inferences of it took on the worker.
func (c PoolCalls) Inferences(ctx context.Context, id trial.ID, report protocol.InferenceReport) (protocol.ArchitecturesImported, error) {
	return write[protocol.ArchitecturesImported](ctx, c.caller, id, "inferences", report)
}

// AskBoard asks for a model to measure on a board.
func (c PoolCalls) AskBoard(ctx context.Context, ask emu.BoardAsk) (emu.BoardReply, error) {
	return exchange[emu.BoardReply](ctx, c.caller, path("boards", "ask"), ask, once)
}

// ReportBoard reports what it took there.
func (c PoolCalls) ReportBoard(ctx context.Context, runs emu.BoardRuns) (protocol.ArchitecturesImported, error) {
	return exchange[protocol.ArchitecturesImported](ctx, c.caller, path("boards", "runs"), runs)
}

// Boards are those that asked in the last day.
func (c PoolCalls) Boards(ctx context.Context) ([]emu.Board, error) {
	return list[emu.Board](ctx, c.caller, "boards", path("boards"))
}

// Deployments says how to run the trial's model on the study's devices.
func (c PoolCalls) Deployments(ctx context.Context, study string, number int) (protocol.Deployments, error) {
	return get[protocol.Deployments](ctx, c.caller, path("studies", study, "trials", strconv.Itoa(number), "deployments"), "")
}

// ImportArchitectures gives the server what inferences took, one architecture in
// a request: graphs are large.
func (c PoolCalls) ImportArchitectures(ctx context.Context, all []emu.Architecture) (protocol.ArchitecturesImported, error) {
	var sum protocol.ArchitecturesImported
	for _, one := range all {
		reply, err := exchange[protocol.ArchitecturesImported](ctx, c.caller, path("architectures"), protocol.Architectures{Architectures: []emu.Architecture{one}})
		if err != nil {
			return sum, err
		}
		sum.Architectures += reply.Architectures
		sum.Runs += reply.Runs
	}
	return sum, nil
}
