package ranking

import (
	"context"
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/approximation"
)

// Recommendation is the study's answer so far: the leading trial, what it cost,
// and plain sentences on how far to trust it.
func (q *Queries) Recommendation(ctx context.Context, ref string) (protocol.Recommendation, error) {
	now, err := q.options.Look(ctx, ref)
	if err != nil {
		return protocol.Recommendation{}, err
	}
	answer := recommend(now)
	if now.Study.Definition.Inference == nil || answer.Best == nil {
		return answer, nil
	}
	deployments, err := q.options.Deployments(ctx, ref, answer.Best.Number)
	switch {
	case problem.Is(err, problem.NotFound):
		answer.Notes = append(answer.Notes, "no deployment: "+err.Error())
	case err != nil:
		return answer, err
	}
	answer.Deployments = deployments.Devices
	if wanted := now.Study.Definition.Inference.Precision; len(wanted) > 0 && answer.FullBudget && now.Trials[answer.Best.Number].State.Terminal() && len(answer.Deployments) > 0 && len(answer.Deployments[0].Precisions) == 0 {
		answer.Notes = append(answer.Notes, fmt.Sprintf("the precisions %s were not compared: the log of trial %d says why", strings.Join(wanted, ", "), answer.Best.Number))
	}
	return answer, nil
}

func recommend(now journal.View) protocol.Recommendation {
	def := now.Study.Definition
	answer := protocol.Recommendation{
		Study: def.Name, Status: now.Study.Status, Best: BestOf(now.Trials, def.Objectives), System: def.System.Constants, Notes: []string{},
	}
	if !now.Study.Status.Over() {
		answer.Notes = append(answer.Notes, "the study is still "+string(now.Study.Status)+": a better trial may come")
	}
	if answer.Best == nil {
		answer.Notes = append(answer.Notes, withoutBest(now.Study))
		return answer
	}
	answer.Notes = append(answer.Notes, presentNotes(now, answer.Best)...)
	if answer.Best.Violation > 0 {
		answer.Notes = append(answer.Notes, Infeasible(answer.Best.Number, answer.Best.Violation))
	}
	if len(def.Objectives) > 1 {
		front := ParetoOf(now)
		answer.Pareto = &front
		if len(front.Trials) > 1 {
			answer.Notes = append(answer.Notes, fmt.Sprintf(
				"%d trials are on the Pareto front, where each is better than each other in some objective", len(front.Trials)), front.Why)
		}
	}
	winner := now.Trials[answer.Best.Number]
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
	answer.FullBudget = answer.Best.Rung == len(now.Ladder)-1 && approximation.LeftOutAt(winner, answer.Best.Rung) == 0
	if !answer.FullBudget {
		top := now.Ladder[len(now.Ladder)-1].Budget
		if top.Measured() {
			answer.Notes = append(answer.Notes, "not measured on the full budget: "+winner.Amounts())
		} else {
			answer.Notes = append(answer.Notes, fmt.Sprintf("measured after %s, not on the full budget of %s", trained(answer.Best.Budget), trained(top)))
		}
	}
	answer.Notes = append(answer.Notes, failureNotes(now.Trials, winner)...)
	if answer.Best.Estimated {
		answer.Notes = append(answer.Notes, answer.Best.Metric+" is an estimate: it stands on joules or inferences that were not measured")
	}
	answer.Notes = append(answer.Notes, inferenceNotes(def, winner.Inference)...)
	if winner.Energy.Estimated() {
		answer.Notes = append(answer.Notes, "the joules are an estimate, not a measurement ("+winner.Energy.Method+")")
	}
	answer.Notes = append(append(answer.Notes, Approximated(now).Notes(answer.Best)...), repeatNotes(now, answer.Best)...)
	if measured := measuredAt(now.Trials, answer.Best.Rung); measured == 1 {
		answer.Notes = append(answer.Notes, "it is the only trial measured with that budget")
	}
	return answer
}

// withoutBest says why a study has nothing to recommend.
func withoutBest(study journal.Study) string {
	if study.Status.Over() {
		return fmt.Sprintf("the study is %s: %s", study.Status, study.Reason)
	}
	return "no trial has been measured yet"
}

// inferenceNotes say what of inference is an estimate, in a study that is about it.
func inferenceNotes(def definition.Definition, i *trial.InferenceCost) []string {
	goals, err := GoalsOf(def)
	switch {
	case i == nil || i.Device == "" || err != nil || !goals.AtEdge():
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
func failureNotes(trials []trial.Trial, winner trial.Trial) []string {
	var notes []string
	if winner.State == trial.Failed {
		notes = append(notes, fmt.Sprintf("trial %d failed after this was measured: %s", winner.Number, trial.FirstLine(winner.Reason)))
	}
	failed, retried, all := 0, 0, trial.Searched(trials)
	for _, t := range all {
		if t.State == trial.Failed {
			failed++
		}
		if t.RetryOf != nil {
			retried++
		}
	}
	if failed > 0 && float64(failed) >= notableFailures*float64(len(all)) {
		notes = append(notes, fmt.Sprintf("%d of %d trials failed", failed, len(all)))
		if retried > 0 {
			notes[len(notes)-1] += fmt.Sprintf(", %d of them were retried", retried)
		}
	}
	return notes
}

// measuredAt counts the trials with a result at the rung.
func measuredAt(trials []trial.Trial, rung int) int {
	count := 0
	for _, t := range trial.Searched(trials) {
		for _, result := range t.Results {
			if result.Rung == rung {
				count++
			}
		}
	}
	return count
}
