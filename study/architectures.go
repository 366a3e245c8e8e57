package study

import (
	"context"
	"fmt"

	"github.com/tandem-tune/tandem/edge"
	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/protocol"
)

// Architectures returns those that are known, the newest first.
func (s *Service) Architectures(ctx context.Context, limit int) (protocol.Architectures, error) {
	list, err := s.store.Architectures(ctx, limit)
	return protocol.Architectures{Architectures: list}, err
}

// ImportArchitectures takes in what inferences took elsewhere: all of it, or
// nothing if any of it has a fault. Runs of a machine, a batch and a number of
// threads that are known are replaced.
func (s *Service) ImportArchitectures(ctx context.Context, sent protocol.Architectures) (protocol.ArchitecturesImported, error) {
	var reply protocol.ArchitecturesImported
	if faults := importFaults(sent); len(faults) > 0 {
		return reply, problem.WithFields("the architectures have faults", faults)
	}
	if err := s.emulating.enter(ctx); err != nil {
		return reply, problem.New(problem.Unavailable, "the caller gave up: %w", err)
	}
	defer s.emulating.leave()
	now := s.options.Now()
	var change Change
	for _, one := range sent.Architectures {
		known, err := s.store.Architecture(ctx, one.Key)
		if problem.Is(err, problem.NotFound) {
			known, err = edge.Architecture{Key: one.Key, Graph: one.Graph, ActivationBytes: one.ActivationBytes, StoredBytes: one.StoredBytes}, nil
		}
		if err != nil {
			return reply, err
		}
		for i := range one.Runs {
			one.Runs[i].At = now
		}
		known.Seen = now
		change.Architectures = append(change.Architectures, known.With(one.Runs))
		reply.Architectures++
		reply.Runs += len(one.Runs)
	}
	var err error
	if change.Receipt, err = receiptOf(ctx, reply, now); err != nil {
		return reply, err
	}
	if err := s.store.Apply(context.WithoutCancel(ctx), change); err != nil {
		_, err := overtaken(ctx, s, err, &reply)
		return reply, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	clear(s.deployed) // runs calibrate all estimates
	return reply, nil
}

func importFaults(sent protocol.Architectures) []problem.Field {
	var faults []problem.Field
	seen := make(map[string]bool)
	for i, one := range sent.Architectures {
		at := fmt.Sprintf("architectures[%d].", i)
		for _, fault := range append(one.Faults(), edge.RunFaults(one.Runs)...) {
			fault.Path = at + fault.Path
			faults = append(faults, fault)
		}
		for j, run := range one.Runs {
			if run.Machine == "" || len(run.Machine) > 1024 {
				faults = append(faults, problem.Field{Path: fmt.Sprintf("%sruns[%d].machine", at, j), Value: run.Machine, Message: "must name a device or a type of machine, in at most 1,024 bytes"})
			}
		}
		if seen[one.Key] {
			faults = append(faults, problem.Field{Path: at + "key", Value: one.Key, Message: "comes twice"})
		}
		seen[one.Key] = true
	}
	return faults
}
