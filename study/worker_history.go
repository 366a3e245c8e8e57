package study

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/pool"
)

// WorkerHistory returns how busy the worker's machine was in the last hour, as
// its heartbeats have told. It is in memory only: a server that has just started
// knows nothing. The error is not_found for a worker that is not registered.
func (s *Service) WorkerHistory(_ context.Context, worker string) (protocol.WorkerHistory, error) {
	steps, known := s.allocator.History(worker)
	if !known {
		return protocol.WorkerHistory{}, unknownWorker(worker)
	}
	return protocol.WorkerHistory{StepSeconds: pool.HistoryStep.Seconds(), Steps: steps}, nil
}
