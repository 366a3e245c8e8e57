package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// LeaseRef names the trial a worker holds.
type LeaseRef struct {
	Trial trial.ID `path:"trial" maxLength:"128" doc:"the trial's id"`
}

// leaseInput is a body about a trial that the worker holds.
type leaseInput[T any] struct {
	LeaseRef
	Content[T]
}

func (s workerAPI) report(ctx context.Context, input *leaseInput[protocol.Report]) (*jsonAnswer[protocol.Directive], error) {
	if err := s.Limits.TakeReport(input.Trial, input.Body); err != nil {
		return nil, err
	}
	return answered(s.studies.Report(ctx, input.Trial, input.Body))
}

func (s workerAPI) commitCheckpoint(ctx context.Context, input *leaseInput[protocol.CheckpointCommit]) (*nothing, error) {
	return nil, s.studies.CommitCheckpoint(ctx, input.Trial, input.Body)
}

func (s workerAPI) logArtifact(ctx context.Context, input *leaseInput[protocol.ArtifactLog]) (*nothing, error) {
	return nil, s.studies.LogArtifact(ctx, input.Trial, input.Body)
}

func (s workerAPI) appendLog(ctx context.Context, input *leaseInput[protocol.LogChunk]) (*nothing, error) {
	return nil, s.studies.AppendLog(ctx, input.Trial, input.Body)
}
