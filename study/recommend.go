package study

import (
	"context"
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/approximation"
)

// Recommendation is the study's answer so far: the leading trial, what it cost,
// and plain sentences on how far to trust it.
func (s *Service) Recommendation(ctx context.Context, ref string) (protocol.Recommendation, error) {
	emulates := false
	answer, err := look(ctx, s, ref, func(r *session) (protocol.Recommendation, error) {
		emulates = r.study.Definition.Inference != nil
		return r.recommendation(), nil
	})
	if err != nil || !emulates || answer.Best == nil {
		return answer, err
	}
	deployments, err := s.Deployments(ctx, ref, answer.Best.Number)
	switch {
	case problem.Is(err, problem.NotFound):
		answer.Notes = append(answer.Notes, "no deployment: "+err.Error())
	case err != nil:
		return answer, err
	}
	answer.Deployments = deployments.Devices
	return answer, nil
}

func (r *session) recommendation() protocol.Recommendation {
	def := r.study.Definition
	answer := protocol.Recommendation{
		Study: def.Name, Status: r.study.Status, Best: r.best(r.trials), System: def.System.Constants, Notes: []string{},
	}
	if !r.study.Status.Over() {
		answer.Notes = append(answer.Notes, "the study is still "+string(r.study.Status)+": a better trial may come")
	}
	if answer.Best == nil {
		answer.Notes = append(answer.Notes, withoutBest(r.study))
		return answer
	}
	if answer.Best.Violation > 0 {
		answer.Notes = append(answer.Notes, ranking.Infeasible(answer.Best.Number, answer.Best.Violation))
	}
	if len(def.Objectives) > 1 {
		front := ranking.ParetoOf(r.frozen())
		answer.Pareto = &front
		if len(front.Trials) > 1 {
			answer.Notes = append(answer.Notes, fmt.Sprintf(
				"%d trials are on the Pareto front, where each is better than each other in some objective", len(front.Trials)), front.Why)
		}
	}
	winner := r.trials[answer.Best.Number]
	if winner.Setting != nil {
		answer.System = winner.Setting.Configuration
		if alone := system.Configuration(winner.Setting.Alone); len(alone) > 0 && !alone.Equal(winner.Setting.Configuration) {
			answer.System = alone
			answer.Notes = append(answer.Notes, "system parameters: the best known for a training that has the machine for itself; beside others it ran with "+system.Configuration(winner.Setting.Configuration).Key())
		}
		answer.Notes = append(answer.Notes, "system parameters: "+winner.Setting.Why)
	}
	answer.Metrics, answer.Checkpoint = winner.Last, winner.Checkpoint
	answer.Seconds, answer.Energy = winner.Seconds, winner.Energy
	answer.FullBudget = answer.Best.Rung == len(r.ladder)-1 && approximation.LeftOutAt(winner, answer.Best.Rung) == 0
	if !answer.FullBudget {
		top := r.ladder[len(r.ladder)-1].Budget
		if top.Measured() {
			answer.Notes = append(answer.Notes, "not measured on the full budget: "+amounts(winner))
		} else {
			answer.Notes = append(answer.Notes, fmt.Sprintf("measured after %s, not on the full budget of %s", trained(answer.Best.Budget), trained(top)))
		}
	}
	answer.Notes = append(answer.Notes, r.failureNotes(winner)...)
	if answer.Best.Estimated {
		answer.Notes = append(answer.Notes, answer.Best.Metric+" is an estimate: it stands on joules or inferences that were not measured")
	}
	answer.Notes = append(answer.Notes, r.inferenceNotes(winner.Inference)...)
	if winner.Energy.Estimated() {
		answer.Notes = append(answer.Notes, "the joules are an estimate, not a measurement ("+winner.Energy.Method+")")
	}
	answer.Notes = append(append(answer.Notes, r.approximated().Notes(answer.Best)...), r.repeatNotes(answer.Best)...)
	if measured := r.measuredAt(answer.Best.Rung); measured == 1 {
		answer.Notes = append(answer.Notes, "it is the only trial measured with that budget")
	}
	return answer
}

// withoutBest says why a study has nothing to recommend.
func withoutBest(study Study) string {
	if study.Status.Over() {
		return fmt.Sprintf("the study is %s: %s", study.Status, study.Reason)
	}
	return "no trial has been measured yet"
}

// inferenceNotes say what of inference is an estimate, in a study that is about it.
func (r *session) inferenceNotes(i *trial.InferenceCost) []string {
	switch {
	case i == nil || i.Device == "" || !r.aimsAtEdge():
		return nil
	case i.Estimated():
		return []string{"what inference on " + i.Device + " takes is an " + i.Method}
	case i.EnergyEstimated():
		return []string{"the joules of inference on " + i.Device + " are an " + i.EnergyMethod}
	}
	return nil
}

// trained is a budget of epochs in words.
func trained(b budget.Budget) string {
	epochs := "1 epoch"
	if b.Epochs != 1 {
		epochs = fmt.Sprintf("%d epochs", b.Epochs)
	}
	if b.DataFraction == 1 {
		return epochs
	}
	return fmt.Sprintf("%s on %.4g%% of the data", epochs, 100*b.DataFraction)
}

// notableFailures is the share of failed trials from which on the answer says so.
const notableFailures = 0.1

// failureNotes say what speaks against an answer that came of trials which failed:
// a script that breaks at its third epoch leaves results of the first.
func (r *session) failureNotes(winner trial.Trial) []string {
	var notes []string
	if winner.State == trial.Failed {
		notes = append(notes, fmt.Sprintf("trial %d failed after this was measured: %s", winner.Number, firstLine(winner.Reason)))
	}
	failed, all := 0, trial.Searched(r.trials)
	for _, t := range all {
		if t.State == trial.Failed {
			failed++
		}
	}
	if failed > 0 && float64(failed) >= notableFailures*float64(len(all)) {
		notes = append(notes, fmt.Sprintf("%d of %d trials failed", failed, len(all)))
	}
	return notes
}

// firstLine of a reason says what happened; what stands behind it is the end of a
// script's standard error.
func firstLine(reason string) string {
	first, _, _ := strings.Cut(reason, "\n")
	return first
}

// measuredAt counts the trials with a result at the rung.
func (r *session) measuredAt(rung int) int {
	count := 0
	for _, t := range trial.Searched(r.trials) {
		for _, result := range t.Results {
			if result.Rung == rung {
				count++
			}
		}
	}
	return count
}

// Checkpoints returns the artifacts that checkpoints in studies refer to which the caller
// sees. If it sees all, other artifacts are garbage once their upload is long over.
func (s *Service) Checkpoints(ctx context.Context) (map[string]bool, error) {
	caller := callerOf(ctx)
	studies, err := s.store.Studies(ctx)
	if err != nil {
		return nil, err
	}
	used := make(map[string]bool)
	for _, study := range studies {
		if !caller.Sees(study.ID, study.Owner) {
			continue
		}
		trials, err := s.store.Trials(ctx, study.ID)
		if err != nil {
			return nil, err
		}
		for _, t := range trials {
			for _, checkpoint := range t.Kept(study.Status.Over()) {
				used[checkpoint.Artifact] = true
			}
		}
	}
	return used, nil
}
