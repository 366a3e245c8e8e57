package study

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/analysis"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
)

// view is the study as clients see it at the time.
func (r *session) view(now time.Time) protocol.StudyView { return r.viewOf(r.study, r.trials, now) }

// view is the study as it will be once the transaction is committed.
func (tx *transaction) view() protocol.StudyView {
	study := tx.session.study
	if tx.study != nil {
		study = *tx.study
	}
	return tx.session.viewOf(study, slices.Collect(tx.all()), tx.now)
}

func (r *session) viewOf(study Study, trials []trial.Trial, now time.Time) protocol.StudyView {
	reason := study.Reason
	if r.broken != nil && !study.Status.Over() {
		reason = r.broken.Error()
	}
	return protocol.StudyView{
		ID: study.ID, Name: study.Definition.Name, Owner: cmp.Or(study.Owner, Administrators), Status: study.Status, Reason: reason,
		Created: study.Created, Finished: study.Finished, Definition: study.Definition,
		Rungs: r.ladder, Progress: r.progress(study, trials, now), Annotation: study.Annotation,
	}
}

func (r *session) progress(study Study, trials []trial.Trial, now time.Time) protocol.Progress {
	p := ranking.Progress{Study: study, Trials: trials, Ladder: r.ladder, Spending: r.spending, Use: r.use, Now: now}.Show()
	p.RegretBound = r.regret
	if queue, ok := r.method.(search.Queue); ok && !study.Status.Over() {
		p.Enqueued = queue.Waiting()
	}
	return p
}

// PlanProgress compares the study's plan with what was done so far.
func (s *Service) PlanProgress(ctx context.Context, ref string) (protocol.PlanProgress, error) {
	return look(ctx, s, ref, func(r *session) (protocol.PlanProgress, error) {
		progress := r.progress(r.study, r.trials, s.options.Now())
		answer := protocol.PlanProgress{
			Study: r.study.Definition.Name, Plan: r.study.Definition.Plan(), Trials: progress.Created, Repeats: progress.Repeats,
			Epochs: progress.Epochs, DataPasses: progress.DataPasses, Seconds: progress.TrialSeconds,
			Joules: float64(progress.Energy.Joules), EnergyMethod: progress.Energy.Method,
			Stages: make([]protocol.StageProgress, len(r.ladder)),
		}
		for rung := range answer.Stages {
			answer.Stages[rung].Rung = rung
		}
		for _, stage := range answer.Plan.Stages {
			answer.Stages[stage.Index].Planned = stage.Started + stage.Promoted
		}
		for _, t := range trial.Searched(r.trials) {
			analysis.CountStages(answer.Stages, t)
		}
		return answer, nil
	})
}
