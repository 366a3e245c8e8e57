package study

import (
	"context"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/inference"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// holder is the definition of the study of a trial that is held under the lease,
// and the type of machine of its worker.
func (s *Service) holder(ctx context.Context, id trial.ID, epoch trial.LeaseEpoch) (definition.Definition, string, error) {
	r, t, err := s.lockedTrial(ctx, id)
	if err != nil {
		return definition.Definition{}, "", err
	}
	def := r.study.Definition
	r.mutex.Unlock()
	if err := holds(t, epoch); err != nil {
		return def, "", err
	}
	return def, s.allocator.SiteOf(t.Worker, id).Machine, nil
}

// recordInference makes what became known of a trial's model durable.
func (s *Service) recordInference(ctx context.Context, result inference.Result, answer any) error {
	switch answer := answer.(type) {
	case *protocol.ArchitectureReply:
		return emulated(ctx, s, result, answer)
	case *protocol.Deployments:
		return emulated(ctx, s, result, answer)
	default:
		return problem.New(problem.Internal, "an inference is answered with %T", answer)
	}
}

// importArchitectures makes what came from elsewhere durable.
func (s *Service) importArchitectures(ctx context.Context, change Change, reply *protocol.ArchitecturesImported) error {
	_, err := apply(ctx, s, change, reply)
	return err
}

// emulated writes the architecture, and what it means for the trial and for
// others of the same architecture on such a machine.
func emulated[T any](ctx context.Context, s *Service, e inference.Result, answer *T) error {
	r, t, err := s.lockedTrial(ctx, e.Trial)
	if err != nil {
		return err
	}
	defer r.leave()
	if err := holds(t, e.Lease); err != nil {
		return refusal(r, err)
	}
	tx := s.begin(r)
	tx.change.Architectures = []emu.Architecture{e.Architecture}
	for _, other := range r.trials {
		same := other.Number == t.Number || other.Inference != nil && other.Inference.Architecture == e.Inference.Architecture && other.Inference.Machine == e.Inference.Machine
		if !same || other.Inference != nil && other.Inference.Same(e.Inference) {
			continue
		}
		now := e.Inference
		other.Inference = &now
		tx.log(Event{Kind: Emulated, Trial: other.ID, State: string(other.State), Worker: other.Worker}, other.Inference)
		tx.stage(other)
	}
	tx.then(e.Then)
	return commit(ctx, s, tx, answer)
}
