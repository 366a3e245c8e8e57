package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
)

func (s knowledgeAPI) deployments(ctx context.Context, input *TrialRef) (*jsonAnswer[protocol.Deployments], error) {
	return answered(s.studies.Deployments(ctx, input.Study, input.Number))
}

type architecturesInput struct {
	Limit int `query:"limit" default:"100" minimum:"1" maximum:"1000"`
}

func (s knowledgeAPI) architectures(ctx context.Context, input *architecturesInput) (*jsonAnswer[protocol.Architectures], error) {
	found, err := s.studies.Architectures(ctx, input.Limit)
	found.Architectures = orEmpty(found.Architectures)
	return answered(found, err)
}
