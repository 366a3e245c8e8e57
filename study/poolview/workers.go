package poolview

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Workers returns the registered workers, each with what it has to do with
// studies that the caller sees.
func (s *Views) Workers(ctx context.Context) []protocol.Worker {
	workers := s.registered()
	caller := access.CallerOf(ctx)
	if caller.Sight == access.All {
		return workers
	}
	for i, worker := range workers {
		workers[i].Trials = slices.DeleteFunc(worker.Trials, func(id trial.ID) bool {
			study, _, _ := strings.Cut(string(id), "-")
			return !s.of.Sessions.SeenBy(caller, study)
		})
		refuses := maps.Clone(worker.Refuses) // the registry's own
		maps.DeleteFunc(refuses, func(study, _ string) bool { return !s.of.Sessions.SeenBy(caller, study) })
		workers[i].Refuses = refuses
		maps.DeleteFunc(worker.Excluded, func(study string, _ protocol.Exclusion) bool { return !s.of.Sessions.SeenBy(caller, study) })
	}
	return workers
}

// registered returns the registered workers.
func (s *Views) registered() []protocol.Worker {
	workers, all := []protocol.Worker{}, s.of.Allocator.Snapshot()
	for _, one := range all.Workers {
		shown := protocol.Worker{
			WorkerRegistration: one.Registration, Build: one.Registration.Program, LastSeenSeconds: all.Now.Sub(one.LastSeen).Seconds(),
			Alive: one.Alive, Load: one.Load, Sprint: one.Sprint, Trials: one.Trials, Refuses: one.Refuses, Drained: one.Drain,
		}
		for study, excluded := range one.Excluded {
			if shown.Excluded == nil {
				shown.Excluded = make(map[string]protocol.Exclusion)
			}
			shown.Excluded[study] = ShownExclusion(excluded)
		}
		workers = append(workers, shown)
	}
	return workers
}

// WorkerHistory returns how busy the worker's machine was in the last hour, as
// its heartbeats have told. It is in memory only: a server that has just started
// knows nothing. The error is not_found for a worker that is not registered.
func (s *Views) WorkerHistory(_ context.Context, worker string) (protocol.WorkerHistory, error) {
	steps, known := s.of.Allocator.History(worker)
	if !known {
		return protocol.WorkerHistory{}, UnknownWorker(worker)
	}
	return protocol.WorkerHistory{StepSeconds: pool.HistoryStep.Seconds(), Steps: steps}, nil
}

func UnknownWorker(worker string) error {
	return problem.New(problem.NotFound, "worker %q is not registered: register it (again) with POST /api/v1/workers", worker)
}

// ShownExclusion is the exclusion as workers and people are told.
func ShownExclusion(one pool.Exclusion) protocol.Exclusion {
	return protocol.Exclusion{Reason: one.Reason, Since: one.Since, Until: one.Until}
}
