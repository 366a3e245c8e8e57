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
	sharingAPI   struct{ *server } // quotas, reservations, drains and groups
	knowledgeAPI struct{ *server } // ground truth, architectures and backends
	accessAPI    struct{ *server } // tokens, sessions and links
	artifactAPI  struct{ *server } // artifacts
	forecastAPI  struct{ *server } // forecasts
	hookAPI      struct{ *server } // hooks
	launcherAPI  struct{ *server } // what launchers start
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

// ofList makes a handler of a use case that returns a list, which becomes the field of L.
func ofList[T, L any](do func(context.Context) ([]T, error), field func([]T) L) func(context.Context, *nothing) (*jsonAnswer[L], error) {
	return func(ctx context.Context, _ *nothing) (*jsonAnswer[L], error) {
		list, err := do(ctx)
		return answered(field(orEmpty(list)), err)
	}
}

// named is the input of a handler that is only asked for an object by its name.
type named interface{ name() string }

func (r StudyRef) name() string       { return r.Study }
func (r UserRef) name() string        { return r.User }
func (r WorkerRef) name() string      { return r.Worker }
func (r NamedWorkerRef) name() string { return r.Worker }
func (r ReservationRef) name() string { return r.Reservation }
func (r tokenRef) name() string       { return r.Token }
func (r HookRef) name() string        { return r.Hook }
func (r GroupRef) name() string       { return r.Group }
func (r BlobRef) name() string        { return r.SHA256 }
func (r BackendRef) name() string     { return r.Backend }

// ofNamed makes a handler of a use case that is asked for an object by its name.
func ofNamed[R named, T any](do func(context.Context, string) (T, error)) func(context.Context, *R) (*jsonAnswer[T], error) {
	return func(ctx context.Context, input *R) (*jsonAnswer[T], error) { return answered(do(ctx, (*input).name())) }
}

// remove makes a handler of a use case that removes an object by its name.
func remove[R named](do func(context.Context, string) error) func(context.Context, *R) (*nothing, error) {
	return func(ctx context.Context, input *R) (*nothing, error) { return nil, do(ctx, (*input).name()) }
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
