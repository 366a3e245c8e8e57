package study

import (
	"context"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/inference"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Architecture is [inference.Service.Architecture].
func (s *Service) Architecture(ctx context.Context, id trial.ID, report protocol.ArchitectureReport) (protocol.ArchitectureReply, error) {
	return s.inference.Architecture(ctx, id, report)
}

// Inferences takes in what real inferences took on the trial's worker.
func (s *Service) Inferences(ctx context.Context, id trial.ID, report protocol.InferenceReport) (protocol.Deployments, error) {
	return s.inference.Inferences(ctx, id, report)
}

// ImportArchitectures takes in what inferences took elsewhere.
func (s *Service) ImportArchitectures(ctx context.Context, sent protocol.Architectures) (protocol.ArchitecturesImported, error) {
	return s.inference.Import(ctx, sent)
}

// Architectures returns those that are known, the newest first.
func (s *Service) Architectures(ctx context.Context, limit int) (protocol.Architectures, error) {
	list, err := s.store.Architectures(ctx, limit)
	return protocol.Architectures{Architectures: list}, err
}

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
	var err error
	if change.Receipt, err = receiptOf(ctx, *reply, s.options.Now()); err != nil {
		return err
	}
	if err := s.store.Apply(context.WithoutCancel(ctx), change); err != nil {
		return overtaken(ctx, s, err, reply)
	}
	return nil
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

// Deployments are how the trial's model is best run on the study's devices. The
// error is not_found for a trial whose script saved no model, and for a study
// without an inference section.
func (s *Service) Deployments(ctx context.Context, ref string, number int) (protocol.Deployments, error) {
	answer := protocol.Deployments{Trial: number, Devices: []deployment.Deployment{}}
	var def definition.Definition
	t, err := look(ctx, s, ref, func(r *session) (trial.Trial, error) {
		def = r.study.Definition
		if number < 0 || number >= len(r.trials) {
			return trial.Trial{}, problem.New(problem.NotFound, "study %s has no trial %d", def.Name, number)
		}
		return r.trials[number], nil
	})
	if err != nil {
		return answer, err
	}
	switch {
	case def.Inference == nil:
		return answer, problem.New(problem.NotFound, "study %s has no inference section: write one with the devices (docs/edge.md)", def.Name)
	case t.Inference == nil:
		return answer, problem.New(problem.NotFound, "trial %d of study %s has no model: its script has to call trial.save_model", number, def.Name)
	}
	a, err := s.store.Architecture(ctx, t.Inference.Architecture)
	if err != nil {
		return answer, err
	}
	answer.Architecture = a.Key
	found, err := s.inference.Deploy(ctx, a, def, t.Inference.Machine)
	answer.Devices = append(answer.Devices, found...)
	return answer, err
}
