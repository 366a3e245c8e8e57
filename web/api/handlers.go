package api

import (
	"context"

	"github.com/tandem-tune/tandem/trial"
)

// The handlers, by what they are about. Each sees the whole server.
type (
	studyAPI     struct{ *server } // studies
	trialAPI     struct{ *server } // trials
	analysisAPI  struct{ *server } // analyses and charts
	workerAPI    struct{ *server } // workers and their leases
	sharingAPI   struct{ *server } // quotas, reservations and drains
	knowledgeAPI struct{ *server } // ground truth and architectures
	accessAPI    struct{ *server } // tokens, sessions and links
	artifactAPI  struct{ *server } // artifacts
	forecastAPI  struct{ *server } // forecasts
	healthAPI    struct{ *server } // health, metrics and the document
)

// jsonAnswer is an answer with a JSON body.
type jsonAnswer[T any] struct{ Body T }

// answered makes the answer of a handler from the result of a use case.
func answered[T any](result T, err error) (*jsonAnswer[T], error) {
	return &jsonAnswer[T]{Body: result}, err
}

// ofAll makes a handler of a use case that is asked nothing further.
func ofAll[T any](do func(context.Context) (T, error)) func(context.Context, *nothing) (*jsonAnswer[T], error) {
	return func(ctx context.Context, _ *nothing) (*jsonAnswer[T], error) { return answered(do(ctx)) }
}

// ofStudy makes a handler of a use case that is asked about a study.
func ofStudy[T any](do func(context.Context, string) (T, error)) func(context.Context, *StudyRef) (*jsonAnswer[T], error) {
	return func(ctx context.Context, input *StudyRef) (*jsonAnswer[T], error) {
		return answered(do(ctx, input.Study))
	}
}

// ofBody makes a handler of a use case that takes the request's body.
func ofBody[I, T any](do func(context.Context, I) (T, error)) func(context.Context, *Content[I]) (*jsonAnswer[T], error) {
	return func(ctx context.Context, input *Content[I]) (*jsonAnswer[T], error) {
		return answered(do(ctx, input.Body))
	}
}

// ofLease makes a handler of a use case that takes a body about a trial that is held.
func ofLease[I, T any](do func(context.Context, trial.ID, I) (T, error)) func(context.Context, *leaseInput[I]) (*jsonAnswer[T], error) {
	return func(ctx context.Context, input *leaseInput[I]) (*jsonAnswer[T], error) {
		return answered(do(ctx, input.Trial, input.Body))
	}
}
