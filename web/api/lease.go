package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// LeaseRef names the trial a worker holds.
type LeaseRef struct {
	Trial trial.ID `path:"trial" maxLength:"128" doc:"the trial's id"`
}

// leaseInput is a body about a trial that the worker holds.
type leaseInput[T any] struct {
	LeaseRef
	Content[T]
}

func (s workerAPI) report(ctx context.Context, input *leaseInput[protocol.Report]) (*jsonAnswer[protocol.Directive], error) {
	if err := s.Limits.TakeReport(input.Trial, input.Body); err != nil {
		return nil, err
	}
	return answered(s.studies.Report(ctx, input.Trial, input.Body))
}

// under is a call under a lease that answers nothing.
func under[I any](do func(context.Context, trial.ID, I) error) func(context.Context, *leaseInput[I]) (*nothing, error) {
	return func(ctx context.Context, input *leaseInput[I]) (*nothing, error) {
		return nil, do(ctx, input.Trial, input.Body)
	}
}
