package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
)

type registerInput struct {
	Content[protocol.WorkerRegistration]
}

type timingAnswer struct{ Body protocol.Timing }

func (s workerAPI) registerWorker(ctx context.Context, input *registerInput) (*timingAnswer, error) {
	token, err := s.authenticator.Bind(ctx, tokenOf(ctx), input.Body.Name)
	if err != nil {
		return nil, err
	}
	timing, err := s.studies.RegisterWorker(study.WithCaller(ctx, callerOf(token)), input.Body)
	return &timingAnswer{Body: timing}, err
}

type workerList struct {
	Workers []protocol.Worker `json:"workers"`
}

type workersAnswer struct{ Body workerList }

func (s workerAPI) listWorkers(ctx context.Context, _ *nothing) (*workersAnswer, error) {
	return &workersAnswer{Body: workerList{Workers: orEmpty(s.studies.Workers(ctx))}}, nil
}

// WorkerRef names a worker in a path.
type WorkerRef struct {
	Worker string `path:"worker" maxLength:"64" doc:"the id the worker registered with"`
}

type workerHistoryAnswer struct{ Body protocol.WorkerHistory }

func (s workerAPI) workerHistory(ctx context.Context, input *WorkerRef) (*workerHistoryAnswer, error) {
	history, err := s.studies.WorkerHistory(ctx, input.Worker)
	return &workerHistoryAnswer{Body: history}, err
}

type heartbeatInput struct {
	WorkerRef
	Content[protocol.Heartbeat]
}

type heartbeatAnswer struct{ Body protocol.HeartbeatReply }

func (s workerAPI) heartbeat(ctx context.Context, input *heartbeatInput) (*heartbeatAnswer, error) {
	reply, err := s.studies.Heartbeat(ctx, input.Worker, input.Body)
	reply.Lost = orEmpty(reply.Lost)
	return &heartbeatAnswer{Body: reply}, err
}

func (s workerAPI) removeWorker(ctx context.Context, input *WorkerRef) (*nothing, error) {
	return nil, s.studies.RemoveWorker(ctx, input.Worker)
}
