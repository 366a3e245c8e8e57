package api

import (
	"context"

	"github.com/tandem-tune/tandem/protocol"
)

type architectureInput struct {
	LeaseRef
	Content[protocol.ArchitectureReport]
}

type architectureAnswer struct{ Body protocol.ArchitectureReply }

func (s *server) architecture(ctx context.Context, input *architectureInput) (*architectureAnswer, error) {
	reply, err := s.studies.Architecture(ctx, input.Trial, input.Body)
	return &architectureAnswer{Body: reply}, err
}

type inferencesInput struct {
	LeaseRef
	Content[protocol.InferenceReport]
}

type deploymentsAnswer struct{ Body protocol.Deployments }

func (s *server) inferences(ctx context.Context, input *inferencesInput) (*deploymentsAnswer, error) {
	reply, err := s.studies.Inferences(ctx, input.Trial, input.Body)
	return &deploymentsAnswer{Body: reply}, err
}

func (s *server) deployments(ctx context.Context, input *TrialRef) (*deploymentsAnswer, error) {
	answer, err := s.studies.Deployments(ctx, input.Study, input.Number)
	return &deploymentsAnswer{Body: answer}, err
}
