package study

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/analysis"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

// PlanProgress compares the study's plan with what was done so far.
func (s *Service) PlanProgress(ctx context.Context, ref string) (protocol.PlanProgress, error) {
	return registry.Look(ctx, s.sessions, ref, func(r *session.Session) (protocol.PlanProgress, error) {
		progress := r.Progress(r.Study, r.Trials, s.options.Now())
		answer := protocol.PlanProgress{
			Study: r.Study.Definition.Name, Plan: r.Study.Definition.Plan(), Trials: progress.Created, Repeats: progress.Repeats,
			Epochs: progress.Epochs, DataPasses: progress.DataPasses, Seconds: progress.TrialSeconds,
			Joules: float64(progress.Energy.Joules), EnergyMethod: progress.Energy.Method,
			Stages: make([]protocol.StageProgress, len(r.Ladder)),
		}
		for rung := range answer.Stages {
			answer.Stages[rung].Rung = rung
		}
		for _, stage := range answer.Plan.Stages {
			answer.Stages[stage.Index].Planned = stage.Started + stage.Promoted
		}
		for _, t := range trial.Searched(r.Trials) {
			analysis.CountStages(answer.Stages, t)
		}
		return answer, nil
	})
}
