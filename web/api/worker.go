package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/guard"
)

type registerInput struct {
	Features string `header:"Tandem-Features" maxLength:"1024" doc:"fields of leases that the worker does not pass over (datasets precisions processes secrets), with blanks between; none of them: none; absent: those named here. A study is offered to workers that know what it wants"`
	Content[protocol.WorkerRegistration]
}

func (s workerAPI) registerWorker(ctx context.Context, input *registerInput) (*jsonAnswer[protocol.Timing], error) {
	token, err := s.Authenticator.Bind(ctx, guard.TokenOf(ctx), input.Body.Name)
	if err != nil {
		return nil, err
	}
	if token.Launched() && token.Subject != input.Body.Launch {
		return nil, problem.New(problem.Forbidden, "this token is for the worker of the launch %q, and this one is of %q: start it as its launcher does", token.Subject, input.Body.Launch)
	}
	input.Body.Program, input.Body.Features = access.CallerOf(ctx).Program, protocol.ParseFeatures(input.Features)
	return answered(s.studies.RegisterWorker(access.WithCaller(ctx, guard.CallerOf(token)), input.Body))
}

type workerList struct {
	Workers []protocol.Worker `json:"workers"`
}

// WorkerRef names a worker in a path.
type WorkerRef struct {
	Worker string `path:"worker" maxLength:"64" doc:"the id the worker registered with"`
}

type goneInput struct {
	WorkerRef
	Content[protocol.Gone]
}

func (s workerAPI) workerGone(ctx context.Context, input *goneInput) (*jsonAnswer[protocol.GoneReply], error) {
	reply, err := s.studies.Gone(ctx, input.Worker, input.Body)
	if err == nil {
		err = accessAPI(s).endLaunches(ctx, input.Body.Launch)
	}
	return answered(reply, err)
}

// removeWorker lets a worker take leave. If a launcher started it, its token ends, too.
func (s workerAPI) removeWorker(ctx context.Context, input *WorkerRef) (*nothing, error) {
	err := s.studies.RemoveWorker(ctx, input.Worker)
	if err == nil {
		err = s.Authenticator.Left(ctx, guard.TokenOf(ctx))
	}
	return nil, err
}

type heartbeatInput struct {
	WorkerRef
	Content[protocol.Heartbeat]
}

func (s workerAPI) heartbeat(ctx context.Context, input *heartbeatInput) (*jsonAnswer[protocol.HeartbeatReply], error) {
	reply, err := s.studies.Heartbeat(ctx, input.Worker, input.Body)
	reply.Lost = orEmpty(reply.Lost)
	return answered(reply, err)
}
