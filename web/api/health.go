package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/tandem-tune/tandem/internal/problem"
)

type health struct {
	Status string `json:"status" enum:"ok"`
}

func (s healthAPI) health(context.Context, *nothing) (*jsonAnswer[health], error) {
	if s.healthy != nil && s.healthy() != nil {
		return nil, problem.New(problem.Unavailable, "the server does not acknowledge anything any more and has to be restarted: its log says why")
	}
	return answered(health{Status: "ok"}, nil)
}

// readiness is health, and that the server is not about to end and has room.
func (s healthAPI) readiness(ctx context.Context, input *nothing) (*jsonAnswer[health], error) {
	if s.ready != nil {
		if err := s.ready(); err != nil {
			return nil, problem.New(problem.Unavailable, "the server takes no further work: %v", err) // 503, whatever the cause
		}
	}
	return s.health(ctx, input)
}

func (s healthAPI) document(context.Context, *nothing) (*textAnswer, error) {
	return &textAnswer{ContentType: "application/json", Body: s.openAPI()}, nil
}

func (s healthAPI) metrics(context.Context, *nothing) (*huma.StreamResponse, error) {
	return &huma.StreamResponse{Body: func(framework huma.Context) {
		r, w := humachi.Unwrap(framework)
		s.Monitor.ServeHTTP(w, r)
	}}, nil
}
