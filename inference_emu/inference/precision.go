package inference

import (
	"context"
	"slices"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// precisionFaults says what is wrong with a model that is told in a precision.
func precisionFaults(p *trial.Precision, def definition.Definition) error {
	if p == nil {
		return nil
	}
	faults := p.Faults()
	if len(faults) == 0 && (def.Inference == nil || !slices.Contains(def.Inference.Precision, p.Name)) {
		faults = append(faults, problem.Field{Path: "precision.name", Value: p.Name, Message: "is not in the study's inference.precision"})
	}
	if len(faults) > 0 {
		return problem.WithFields("the model in a precision is not valid", faults)
	}
	return nil
}

// inPrecision is the trained model that is told; nil where it is what the trial trains.
func inPrecision(report protocol.ArchitectureReport) *trial.Precision {
	if report.Precision == nil {
		return nil
	}
	told := *report.Precision
	told.Architecture = report.Key
	return &told
}

// variantsOf are the trained model in the precisions of which the architecture is known;
// none where there is nothing to compare with.
func (s *Service) variantsOf(ctx context.Context, t trial.Trial) (list []deployment.Variant, err error) {
	for _, one := range t.Precisions {
		a, err := s.store.Architecture(ctx, one.Architecture)
		if problem.Is(err, problem.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, deployment.Variant{Precision: one.Name, Architecture: a, Value: float64(one.Value), Samples: one.Samples})
	}
	if len(list) < 2 || list[0].Precision != trial.FP32 {
		return nil, nil
	}
	return list, nil
}

// tolerance is what a precision may cost in the study's metric.
func tolerance(def definition.Definition) deployment.Tolerance {
	one := def.Objectives[worth(def.Objectives)]
	return deployment.Tolerance{Loss: def.Inference.MayLose(), Minimize: !aboutInference(one) && one.Direction == definition.Minimize}
}

// compare is the answer for one device in the best precision and by the best execution
// provider, when no other search is made.
func (s *Service) compare(ctx context.Context, variants []deployment.Variant, target deployment.Target, others []emu.Architecture, def definition.Definition) (deployment.Deployment, error) {
	if err := s.searching.Enter(ctx); err != nil {
		return deployment.Deployment{}, problem.New(problem.Unavailable, "the caller gave up: %w", err)
	}
	defer s.searching.Leave()
	settings, err := def.Inference.Settings()
	if err != nil {
		return deployment.Deployment{}, err
	}
	return deployment.Compare(variants, target, others, settings, tolerance(def))
}
