package inference

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
)

// ImportArchitectures takes in what inferences took elsewhere: all of it, or nothing if any of
// it has a fault. Runs of a machine, a batch and a number of threads that are known
// are replaced.
func (s *Service) ImportArchitectures(ctx context.Context, sent protocol.Architectures) (protocol.ArchitecturesImported, error) {
	var reply protocol.ArchitecturesImported
	if faults := importFaults(sent); len(faults) > 0 {
		return reply, problem.WithFields("the architectures have faults", faults)
	}
	var change journal.Change
	// In one order for all, so that two imports do not wait for each other.
	slices.SortFunc(sent.Architectures, func(a, b emu.Architecture) int { return strings.Compare(a.Key, b.Key) })
	for _, one := range sent.Architectures {
		leave, err := s.enter(ctx, one.Key)
		if err != nil {
			return reply, err
		}
		defer leave() // once all of it is durable
	}
	now := s.options.Now()
	for _, one := range sent.Architectures {
		known, err := s.store.Architecture(ctx, one.Key)
		if problem.Is(err, problem.NotFound) {
			known, err = emu.Architecture{Key: one.Key, Graph: one.Graph, ActivationBytes: one.ActivationBytes, StoredBytes: one.StoredBytes, Skeleton: one.Skeleton}, nil
		}
		if err != nil {
			return reply, err
		}
		for i := range one.Runs {
			run := &one.Runs[i]
			run.At, run.First, run.Drift, run.Repeated = now, now, nil, 0
		}
		known.Seen = now
		change.Architectures = append(change.Architectures, known.With(one.Runs))
		reply.Architectures++
		reply.Runs += len(one.Runs)
	}
	if err := s.options.Import(ctx, change, &reply); err != nil {
		return reply, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calibrated()
	return reply, nil
}

func importFaults(sent protocol.Architectures) []problem.Field {
	var faults []problem.Field
	seen := make(map[string]bool)
	for i, one := range sent.Architectures {
		at := fmt.Sprintf("architectures[%d].", i)
		for _, fault := range append(one.Faults(), emu.RunFaults(one.Runs)...) {
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
