package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
)

type poolAnswer struct{ Body protocol.Pool }

func (s workerAPI) pool(ctx context.Context, _ *nothing) (*poolAnswer, error) {
	found, err := s.studies.Pool(ctx)
	return &poolAnswer{Body: found}, err
}
