package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/trial"
)

type leaseInput struct {
	Content[protocol.LeaseRequest]
}

type leaseAnswer struct{ Body protocol.LeaseReply }

func (s *server) lease(ctx context.Context, input *leaseInput) (*leaseAnswer, error) {
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

func (s *server) report(ctx context.Context, input *reportInput) (*directiveAnswer, error) {
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

func (s *server) commitCheckpoint(ctx context.Context, input *checkpointInput) (*nothing, error) {
	if err := s.checkUpload(input.Body); err != nil {
		return nil, err
	}
	return nil, s.studies.CommitCheckpoint(ctx, input.Trial, input.Body)
}

// checkUpload makes sure that the artifact is there: a checkpoint that was
// acknowledged can be resumed from.
func (s *server) checkUpload(commit protocol.CheckpointCommit) error {
	bytes, size, err := s.artifacts.Open(commit.Artifact)
	if problem.Is(err, problem.NotFound) {
		return problem.WithFields("the checkpoint is not valid", []problem.Field{{Path: "artifact", Value: commit.Artifact,
			Message: "was not uploaded: PUT it at " + prefix + "/artifacts first"}})
	}
	if err != nil {
		return err
	}
	if size != commit.Bytes {
		err = problem.WithFields("the checkpoint is not valid", []problem.Field{{Path: "bytes", Value: commit.Bytes,
			Message: fmt.Sprintf("must be %d, the size of the artifact that was uploaded", size)}})
	}
	return errors.Join(err, bytes.Close())
}

type finishInput struct {
	LeaseRef
	Content[protocol.FinishRequest]
}

type finishAnswer struct{ Body protocol.FinishReply }

func (s *server) finish(ctx context.Context, input *finishInput) (*finishAnswer, error) {
	reply, err := s.studies.Finish(ctx, input.Trial, input.Body)
	return &finishAnswer{Body: reply}, err
}

type logInput struct {
	LeaseRef
	Content[protocol.LogChunk]
}

func (s *server) appendLog(ctx context.Context, input *logInput) (*nothing, error) {
	return nil, s.studies.AppendLog(ctx, input.Trial, input.Body)
}
