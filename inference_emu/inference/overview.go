package inference

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/trial"
)

// maxOverviewed bounds the architectures that are searched for one overview.
const maxOverviewed = 24

// Architectures returns those that are known, the newest first.
func (s *Service) Architectures(ctx context.Context, limit int) (protocol.Architectures, error) {
	list, err := s.store.Architectures(ctx, limit)
	return protocol.Architectures{Architectures: list}, err
}

// EdgeOverview shows how the models of the study's trials do on its devices, the
// best trial of each architecture. Of a study without an inference section it shows
// nothing, and says so.
func (s *Service) EdgeOverview(ctx context.Context, ref string) (protocol.EdgeOverview, error) {
	now, err := s.options.Look(ctx, ref)
	if err != nil {
		return protocol.EdgeOverview{}, err
	}
	recommended := ranking.LeaderOf(now)
	def := now.Study.Definition
	at := worth(def.Objectives)
	answer := protocol.EdgeOverview{
		Study: def.Name, Metric: def.Objectives[at].Label(), Direction: def.Objectives[at].Direction,
		Devices: []string{}, Recommended: recommended, Trials: []protocol.EdgeTrial{}, Notes: []string{},
	}
	if def.Inference == nil {
		answer.Notes = append(answer.Notes, "the study has no inference section: write one with the devices (docs/edge.md)")
		return answer, nil
	}
	answer.Devices = def.Inference.Names()
	if spent, err := s.Unmeasured(ctx, WantedBy(now.Study, now.Trials)); err != nil {
		return answer, err
	} else if spent != "" {
		answer.Notes = append(answer.Notes, spent)
	}
	var ranked []protocol.RankedTrial
	for _, one := range ranking.Rank(now.Trials, def.Objectives) {
		ranked = append(ranked, one.Ranked())
	}
	var trained []trial.Trial // by place in the answer
	for _, one := range leadersOf(ranked, recommended) {
		last := one.trial.Results[len(one.trial.Results)-1]
		answer.Trials = append(answer.Trials, protocol.EdgeTrial{
			Number: one.trial.Number, Rank: one.trial.Rank, Rung: last.Rung, Value: last.Values[at],
			Architecture: one.trial.Inference.Architecture, Sharing: one.sharing,
		})
		trained = append(trained, one.trial.Trial)
	}
	answer.Architectures = len(architecturesOf(ranked))
	if len(answer.Trials) == 0 {
		answer.Notes = append(answer.Notes, "no measured trial has a model: the script has to call trial.save_model")
	}
	if answer.Architectures > maxOverviewed {
		answer.Notes = append(answer.Notes, fmt.Sprintf("%d architectures were measured: the %d with the best trials are shown", answer.Architectures, maxOverviewed))
	}
	for i := range answer.Trials {
		if answer.Trials[i].Deployments, err = s.overviewed(ctx, trained[i], def); err != nil {
			return protocol.EdgeOverview{}, err
		}
	}
	return answer, nil
}

// overviewed is how the trial's model does on the devices.
func (s *Service) overviewed(ctx context.Context, one trial.Trial, def definition.Definition) ([]deployment.Deployment, error) {
	a, err := s.store.Architecture(ctx, one.Inference.Architecture)
	if problem.Is(err, problem.NotFound) {
		return []deployment.Deployment{}, nil // so many newer ones were seen that it went
	}
	if err != nil {
		return nil, err
	}
	if err := s.options.Gate.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.options.Gate.Leave()
	variants, err := s.variantsOf(ctx, one)
	if err != nil {
		return nil, err
	}
	found, err := s.Deploy(ctx, a, variants, def, one.Inference.Machine)
	return append([]deployment.Deployment{}, found...), err
}

// worth is the place of the objective that says what a model is worth: the first
// that is not about inference.
func worth(objectives []definition.Objective) int {
	return max(0, slices.IndexFunc(objectives, func(one definition.Objective) bool {
		return !aboutInference(one)
	}))
}

func aboutInference(one definition.Objective) bool {
	about := one.Metric + " " + one.Expression
	return strings.Contains(about, "edge.") || strings.Contains(about, "inference_")
}

// leading is the best trial of an architecture.
type leading struct {
	trial   protocol.RankedTrial
	sharing int
}

// leadersOf has the best measured trial of each of the first architectures in the
// order of their ranks, and the recommended one.
func leadersOf(ranked []protocol.RankedTrial, recommended *int) []leading {
	sharing := architecturesOf(ranked)
	met := make(map[string]bool)
	var list []leading
	for _, one := range ranked {
		if !hasModel(one) {
			continue
		}
		chosen := recommended != nil && one.Number == *recommended
		if !chosen && (met[one.Inference.Architecture] || len(met) >= maxOverviewed) {
			continue
		}
		met[one.Inference.Architecture] = true
		list = append(list, leading{one, sharing[one.Inference.Architecture]})
	}
	return list
}

// architecturesOf counts the measured trials of each architecture.
func architecturesOf(ranked []protocol.RankedTrial) map[string]int {
	counts := make(map[string]int)
	for _, one := range ranked {
		if hasModel(one) {
			counts[one.Inference.Architecture]++
		}
	}
	return counts
}

// hasModel reports whether the trial ranks and its script saved a model.
func hasModel(one protocol.RankedTrial) bool { return one.Rank > 0 && one.Inference != nil }

// Deployments are how the trial's model is best run on the study's devices. The
// error is not_found for a trial whose script saved no model, and for a study
// without an inference section.
func (s *Service) Deployments(ctx context.Context, ref string, number int) (protocol.Deployments, error) {
	answer := protocol.Deployments{Trial: number, Devices: []deployment.Deployment{}}
	now, err := s.options.Look(ctx, ref)
	if err != nil {
		return answer, err
	}
	def := now.Study.Definition
	t, err := now.Trial(number)
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
	variants, err := s.variantsOf(ctx, t)
	if err != nil {
		return answer, err
	}
	found, err := s.Deploy(ctx, a, variants, def, t.Inference.Machine)
	answer.Devices = append(answer.Devices, found...)
	return answer, err
}
