package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
)

type trajectoryAnswer struct{ Body protocol.Trajectory }

func (s analysisAPI) trajectory(ctx context.Context, input *StudyRef) (*trajectoryAnswer, error) {
	answer, err := s.studies.Trajectory(ctx, input.Study)
	return &trajectoryAnswer{Body: answer}, err
}

type edgeOverviewAnswer struct{ Body protocol.EdgeOverview }

func (s analysisAPI) edgeOverview(ctx context.Context, input *StudyRef) (*edgeOverviewAnswer, error) {
	answer, err := s.studies.EdgeOverview(ctx, input.Study)
	return &edgeOverviewAnswer{Body: answer}, err
}

type impactAnswer struct{ Body protocol.Impact }

func (s analysisAPI) impact(ctx context.Context, input *StudyRef) (*impactAnswer, error) {
	answer, err := s.studies.Impact(ctx, input.Study)
	return &impactAnswer{Body: answer}, err
}
