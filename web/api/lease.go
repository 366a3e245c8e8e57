package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

type leaseInput struct {
	Content[protocol.LeaseRequest]
}

type leaseAnswer struct{ Body protocol.LeaseReply }

func (s workerAPI) lease(ctx context.Context, input *leaseInput) (*leaseAnswer, error) {
	reply, err := s.studies.Lease(ctx, input.Body)
	return &leaseAnswer{Body: reply}, err
}

// LeaseRef names the trial a worker holds.
type LeaseRef struct {
	Trial trial.ID `path:"trial" maxLength:"128" doc:"the trial's id"`
}

type reportInput struct {
	LeaseRef
	Content[protocol.Report]
}

type directiveAnswer struct{ Body protocol.Directive }

func (s workerAPI) report(ctx context.Context, input *reportInput) (*directiveAnswer, error) {
	if err := s.takeReport(input.Trial, input.Body); err != nil {
		return nil, err
	}
	directive, err := s.studies.Report(ctx, input.Trial, input.Body)
	return &directiveAnswer{Body: directive}, err
}

type checkpointInput struct {
	LeaseRef
	Content[protocol.CheckpointCommit]
}

func (s workerAPI) commitCheckpoint(ctx context.Context, input *checkpointInput) (*nothing, error) {
	return nil, s.studies.CommitCheckpoint(ctx, input.Trial, input.Body)
}

type finishInput struct {
	LeaseRef
	Content[protocol.FinishRequest]
}

type finishAnswer struct{ Body protocol.FinishReply }

func (s workerAPI) finish(ctx context.Context, input *finishInput) (*finishAnswer, error) {
	reply, err := s.studies.Finish(ctx, input.Trial, input.Body)
	return &finishAnswer{Body: reply}, err
}

type logInput struct {
	LeaseRef
	Content[protocol.LogChunk]
}

func (s workerAPI) appendLog(ctx context.Context, input *logInput) (*nothing, error) {
	return nil, s.studies.AppendLog(ctx, input.Trial, input.Body)
}
