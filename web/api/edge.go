package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
)

type architectureInput struct {
	LeaseRef
	Content[protocol.ArchitectureReport]
}

type architectureAnswer struct{ Body protocol.ArchitectureReply }

func (s knowledgeAPI) architecture(ctx context.Context, input *architectureInput) (*architectureAnswer, error) {
	reply, err := s.studies.Architecture(ctx, input.Trial, input.Body)
	return &architectureAnswer{Body: reply}, err
}

type inferencesInput struct {
	LeaseRef
	Content[protocol.InferenceReport]
}

type deploymentsAnswer struct{ Body protocol.Deployments }

func (s knowledgeAPI) inferences(ctx context.Context, input *inferencesInput) (*deploymentsAnswer, error) {
	reply, err := s.studies.Inferences(ctx, input.Trial, input.Body)
	return &deploymentsAnswer{Body: reply}, err
}

func (s knowledgeAPI) deployments(ctx context.Context, input *TrialRef) (*deploymentsAnswer, error) {
	answer, err := s.studies.Deployments(ctx, input.Study, input.Number)
	return &deploymentsAnswer{Body: answer}, err
}

type architecturesInput struct {
	Limit int `query:"limit" default:"100" minimum:"1" maximum:"1000"`
}

type architecturesAnswer struct{ Body protocol.Architectures }

func (s knowledgeAPI) architectures(ctx context.Context, input *architecturesInput) (*architecturesAnswer, error) {
	found, err := s.studies.Architectures(ctx, input.Limit)
	found.Architectures = orEmpty(found.Architectures)
	return &architecturesAnswer{Body: found}, err
}

type importArchitecturesInput struct {
	Content[protocol.Architectures]
}

type architecturesImportedAnswer struct {
	Body protocol.ArchitecturesImported
}

func (s knowledgeAPI) importArchitectures(ctx context.Context, input *importArchitecturesInput) (*architecturesImportedAnswer, error) {
	reply, err := s.studies.ImportArchitectures(ctx, input.Body)
	return &architecturesImportedAnswer{Body: reply}, err
}
