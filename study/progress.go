package study

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/analysis"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/spending"
	"github.com/tandem-tune/tandem/study/system"
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
	p := protocol.Progress{
		Trials: make(map[trial.State]int), Created: len(trial.Searched(trials)), MaxTrials: study.Definition.Stop.Trials,
		ElapsedSeconds: study.ElapsedAt(now).Seconds(), Best: ranking.BestOf(trials, study.Definition.Objectives),
	}
	if p.MaxTrials == definition.MaxTrials { // which is to say: no bound
		p.MaxTrials = 0
	}
	p.RegretBound, p.Repeats = r.regret, len(trials)-p.Created
	for _, state := range trial.States() {
		p.Trials[state] = 0
	}
	for _, t := range trials {
		p.Trials[t.State]++
		p.Epochs += t.Epochs
		p.DataPasses += spending.DataPasses(r.ladder, t)
		p.TrialSeconds += float64(t.Seconds)
		p.Energy = p.Energy.Plus(t.Energy)
		p.Promotions += t.Promotions
		p.Resumes += t.Resumes
		p.Saved = p.Saved.Plus(t.Saved)
	}
	p.SystemUse, p.EpochsByPhase = r.use.list()
	if queue, ok := r.method.(search.Queue); ok && !study.Status.Over() {
		p.Enqueued = queue.Waiting()
	}
	if study.Status == protocol.StudyRunning {
		p.RemainingSeconds = r.remaining(study, trials, p)
	}
	return p
}

// remaining estimates the time left at the pace so far: what the plan has left,
// at least what is begun or not even started, and never more than the limits
// leave. Nil while nothing is known.
func (r *session) remaining(study Study, trials []trial.Trial, p protocol.Progress) *float64 {
	if p.DataPasses == 0 {
		return nil
	}
	var left *float64
	if r.ladder[0].Budget.Measured() {
		left = r.amountLeft(study, p)
	} else if planned := PlanOf(study.Definition).DataPasses; planned > 0 && study.Definition.Stop.Trials < definition.MaxTrials {
		done := r.passed(trials)
		passes := max(planned-done, r.begun(study, trials))
		estimate := passes / done * p.ElapsedSeconds
		left = &estimate
	}
	within := func(rest float64) {
		if rest = max(0, rest); left == nil || rest < *left {
			left = &rest
		}
	}
	if limit := study.Definition.Stop.Seconds; limit > 0 {
		within(limit - p.ElapsedSeconds)
	}
	for _, bound := range r.spending.Limits(study.Definition.Stop) {
		if bound.Used > 0 {
			within((bound.Limit/bound.Used - 1) * p.ElapsedSeconds)
		}
	}
	return left
}

// passed counts the data passes that the trials have behind them. Who reports only
// the last epoch of a budget has trained those before it as well: counted by
// reports, a study whose trials have all ended would have nine tenths before it.
func (r *session) passed(trials []trial.Trial) float64 {
	passes := 0.0
	for _, t := range trials {
		t.Epochs = max(t.Epochs, t.LastEpoch)
		passes += spending.DataPasses(r.ladder, t)
	}
	return passes
}

// begun counts the data passes that are left in any case: the trials that wait
// or run have to reach their budget, and each that is not created yet takes at
// least the first rung's.
func (r *session) begun(study Study, trials []trial.Trial) float64 {
	first := r.ladder[0].Budget
	passes := float64(max(0, study.Definition.Stop.Trials-len(trial.Searched(trials)))*first.Epochs) * first.DataFraction
	for _, t := range trials {
		if t.State == trial.Queued || t.State.Held() {
			passes += float64(max(0, t.Budget.Epochs-t.LastEpoch)) * t.Budget.DataFraction
		}
	}
	return passes
}

// amountLeft estimates the same where budgets are amounts of time or energy.
func (r *session) amountLeft(study Study, p protocol.Progress) *float64 {
	plan := PlanOf(study.Definition)
	planned, done := plan.Seconds, p.TrialSeconds
	if plan.Joules > 0 {
		planned, done = plan.Joules, float64(p.Energy.Joules)
	}
	if planned == 0 || done == 0 {
		return nil
	}
	left := max(0, planned-done) / done * p.ElapsedSeconds
	return &left
}

// PlanProgress compares the study's plan with what was done so far.
func (s *Service) PlanProgress(ctx context.Context, ref string) (protocol.PlanProgress, error) {
	return look(ctx, s, ref, func(r *session) (protocol.PlanProgress, error) {
		progress := r.progress(r.study, r.trials, s.options.Now())
		answer := protocol.PlanProgress{
			Study: r.study.Definition.Name, Plan: PlanOf(r.study.Definition), Trials: progress.Created, Repeats: progress.Repeats,
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

// use adds up under which system configurations a study's epochs ran. It is kept
// up to date with the trials: adding up thousands of them takes too long for a
// page that asks every second.
type use map[usedWith]trial.SystemUse

// usedWith is a configuration's key, and a phase.
type usedWith struct {
	configuration string
	phase         trial.Phase
}

// replace takes out what a trial had and puts in what it has now.
func (u use) replace(before, now []trial.SystemUse) {
	if len(before) == len(now) && (len(now) == 0 || &before[0] == &now[0]) {
		return // the list is made anew whenever it changes
	}
	for _, one := range before {
		u.add(one, -1)
	}
	for _, one := range now {
		u.add(one, 1)
	}
}

func (u use) add(one trial.SystemUse, sign int) {
	where := usedWith{system.Configuration(one.Configuration).Key(), one.Phase}
	sum, known := u[where]
	if !known {
		sum = trial.SystemUse{Configuration: one.Configuration, Phase: one.Phase}
	}
	one.Epochs *= sign
	one.Seconds *= trial.Float(sign)
	one.Joules *= trial.Float(sign)
	if one.Saved != nil {
		one.Saved = &trial.Saving{Seconds: one.Saved.Seconds * trial.Float(sign), Joules: one.Saved.Joules * trial.Float(sign)}
	}
	if sum = sum.Plus(one); sum.Epochs == 0 {
		delete(u, where)
		return
	}
	u[where] = sum
}

// list has those with the most epochs first, and counts the epochs of each phase.
// Both are nil where nothing was tuned.
func (u use) list() ([]trial.SystemUse, map[trial.Phase]int) {
	if len(u) == 0 {
		return nil, nil
	}
	var places []usedWith
	phases := make(map[trial.Phase]int)
	for where, one := range u {
		places = append(places, where)
		if where.phase != "" {
			phases[where.phase] += one.Epochs
		}
	}
	slices.SortFunc(places, func(a, b usedWith) int {
		return cmp.Or(cmp.Compare(u[b].Epochs, u[a].Epochs), cmp.Compare(a.configuration, b.configuration), cmp.Compare(a.phase, b.phase))
	})
	var sorted []trial.SystemUse
	for _, where := range places {
		sorted = append(sorted, u[where])
	}
	return sorted, phases
}
