package ranking

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/pareto"
	"github.com/tandem-tune/tandem/trial"
)

// Pareto is the front of the study's objectives. With one objective it is the
// best trial, with those that are as good.
func (q *Queries) Pareto(ctx context.Context, ref string) (protocol.Pareto, error) {
	now, err := q.options.Look(ctx, ref)
	if err != nil {
		return protocol.Pareto{}, err
	}
	return ParetoOf(now), nil
}

// ParetoOf is the front of the study.
func ParetoOf(now journal.View) protocol.Pareto {
	def := now.Study.Definition
	answer := protocol.Pareto{Study: def.Name, Trials: []protocol.ParetoTrial{}, Notes: []string{}}
	for _, one := range def.Objectives {
		answer.Objectives = append(answer.Objectives, protocol.ParetoObjective{
			Name: one.Label(), Direction: one.Direction, Reference: one.Reference, Given: one.Reference != nil,
		})
	}
	answer.Budget = now.Ladder[0].Budget
	b := Of(now.Trials, def.Objectives)
	first, made := b.front()
	switch {
	case len(first) == 0:
		answer.Notes = append(answer.Notes, "no trial has been measured with numbers yet")
		return answer
	case Violation(first[0]) > 0:
		answer.Notes = append(answer.Notes, Infeasible(first[0].Number, Violation(first[0])))
		return answer
	}
	answer.Rung = measuredRung(first[0])
	answer.Budget = now.Ladder[answer.Rung].Budget
	var points []pareto.Point
	for rank, t := range first {
		result := t.Results[len(t.Results)-1]
		answer.Trials = append(answer.Trials, protocol.ParetoTrial{
			Trial: t.ID, Number: t.Number, Rank: rank + 1, Values: result.Values, Estimated: result.Estimated, Params: t.Configuration,
			Repeated: b.Repeated[t.Number],
		})
		points = append(points, PointOf(result.Values, def.Objectives))
	}
	answer.Why = b.why(first, made)
	answer.Notes = append(answer.Notes, estimatesAmong(first, def.Objectives)...)
	feasible := feasiblePoints(b.Standing, answer.Rung, def.Objectives)
	answer.Measured = len(feasible)
	measureVolume(&answer, points, feasible)
	return answer
}

// estimatesAmong names the objectives whose values of some of the trials are estimates.
func estimatesAmong(trials []*trial.Trial, objectives []definition.Objective) []string {
	var notes []string
	for _, one := range objectives {
		formula, err := one.Formula()
		if err == nil && slices.ContainsFunc(trials, func(t *trial.Trial) bool { return protocol.Estimated(formula.Names(), t.Last, *t) }) {
			notes = append(notes, one.Label()+" is an estimate: joules or inferences that were not measured went into it")
		}
	}
	return notes
}

// Infeasible says that no trial keeps to the constraints.
func Infeasible(nearest int, by trial.Float) string {
	if math.IsInf(float64(by), 1) {
		return "no trial is known to keep to the constraints: in each result something was no number"
	}
	return fmt.Sprintf("no trial keeps to the constraints: trial %d comes nearest, with a violation of %.4g", nearest, float64(by))
}

// feasiblePoints are the points measured at the rung.
func feasiblePoints(trials []trial.Trial, rung int, objectives []definition.Objective) []pareto.Point {
	var points []pareto.Point
	for i := range trials {
		t := &trials[i]
		if measuredRung(t) != rung || Violation(t) > 0 {
			continue
		}
		if point := pointOf(t, objectives); point != nil {
			points = append(points, point)
		}
	}
	return points
}

// maxVolumePoints bounds the time of a hypervolume of four objectives, which
// grows with the cube of the points.
const maxVolumePoints = 1000

// measureVolume fills in the references that are not given, and the hypervolume.
func measureVolume(answer *protocol.Pareto, front, compared []pareto.Point) {
	reference := make(pareto.Point, len(answer.Objectives))
	worst := 0
	for i := range answer.Objectives {
		objective := &answer.Objectives[i]
		if objective.Given {
			reference[i] = objective.Direction.Score(trial.Float(*objective.Reference))
			continue
		}
		reference[i] = math.Inf(1)
		for _, point := range compared {
			reference[i] = min(reference[i], point[i])
		}
		if !math.IsInf(reference[i], 0) {
			value := objective.Direction.Score(trial.Float(reference[i])) // and back
			objective.Reference = &value
			worst++
		}
	}
	if len(front) > maxVolumePoints {
		answer.Notes = append(answer.Notes, fmt.Sprintf("the front has more than %d trials: its hypervolume is not computed", maxVolumePoints))
		return
	}
	volume := pareto.Hypervolume(front, reference)
	if math.IsInf(volume, 0) || math.IsNaN(volume) {
		answer.Notes = append(answer.Notes, "a value is infinite, and so the front has no hypervolume")
		return
	}
	answer.Hypervolume = &volume
	if worst > 0 {
		answer.Notes = append(answer.Notes, "the hypervolume is measured from the worst values so far where the study gives no reference: it can only be compared with one from the same reference")
	}
}
