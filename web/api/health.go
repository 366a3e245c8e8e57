package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/problem"
)

type health struct {
	Status string `json:"status" enum:"ok"`
}

func (s healthAPI) health(context.Context, *nothing) (*jsonAnswer[health], error) {
	if err := s.healthy(); err != nil {
		return nil, problem.New(problem.Unavailable, "the server does not acknowledge anything any more and has to be restarted: its log says why")
	}
	return answered(health{Status: "ok"}, nil)
}

// readiness is health, and that the server is not about to end.
func (s healthAPI) readiness(ctx context.Context, input *nothing) (*jsonAnswer[health], error) {
	if err := s.ready(); err != nil {
		return nil, problem.New(problem.Unavailable, "the server takes no further work: %w", err)
	}
	return s.health(ctx, input)
}

func (s healthAPI) document(context.Context, *nothing) (*textAnswer, error) {
	return &textAnswer{ContentType: "application/json", Body: s.openAPI()}, nil
}
