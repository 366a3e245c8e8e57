package analysis

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/importance"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// The least variations of a class: those of Rocha's figure 5.7 for what a model
// is worth, and of figure 5.6 for what it takes.
const (
	mediumOfWorth, highOfWorth = 0.01, 0.05
	mediumOfCost, highOfCost   = 0.1, 0.2
	// fewTrials is below how many a class may well be another one with others.
	fewTrials = 30
)

// Impact says how far each outcome of the study varies with each parameter alone.
//
// Rocha (section 5.3) varies one parameter at a time. A search varies all of them
// at once, so what one does alone is predicted by a surrogate; only knobs of the
// system, which change within a run, are compared as they were measured.
func (q *Queries) Impact(ctx context.Context, ref string) (protocol.Impact, error) {
	now, err := q.look(ctx, ref)
	if err != nil {
		return protocol.Impact{}, err
	}
	if err := q.gate.Enter(ctx); err != nil {
		return protocol.Impact{}, err
	}
	defer q.gate.Leave()
	knobs, err := q.knobImpacts(ctx, now)
	if err != nil {
		return protocol.Impact{}, err
	}
	def, trials := now.Study.Definition, trial.Searched(now.Trials)
	answer := protocol.Impact{Study: def.Name, Outcomes: []protocol.ImpactOutcome{}}
	for _, one := range outcomesOf(def, trials) {
		if one.Trials == 0 {
			continue
		}
		one.predict(def.Space)
		one.Parameters = append(one.Parameters, knobs[one.Name]...)
		answer.Outcomes = append(answer.Outcomes, one.ImpactOutcome)
	}
	return answer, nil
}

// outcome is one that is looked at, with what the trials came to.
type outcome struct {
	protocol.ImpactOutcome
	// larger says that a larger value is better.
	larger bool
	list   []importance.Observation
}

// outcomesOf are the study's objectives, and what training and inference took.
func outcomesOf(def definition.Definition, trials []trial.Trial) []outcome {
	var list []outcome
	for i, objective := range def.Objectives {
		list = append(list, outcomeOfObjective(trials, i, objective))
	}
	list = append(list, trainingOutcomes(def, trials)...)
	seconds := outcome{ImpactOutcome: ofCost("inference_seconds", "s", "time of one sample, in batches, with the best configuration on the first device")}
	joules := outcome{ImpactOutcome: ofCost("inference_joules", "J", "energy of one sample with the best configuration on the first device")}
	for _, t := range trials {
		if t.Inference == nil {
			continue
		}
		seconds.add(t, 1/float64(t.Inference.SamplesPerSecond), t.Inference.Estimated(), t.Inference.Method)
		if t.Inference.JoulesPerSample > 0 {
			joules.add(t, float64(t.Inference.JoulesPerSample), t.Inference.EnergyEstimated(), cmp.Or(t.Inference.EnergyMethod, t.Inference.Method))
		}
	}
	return append(list, seconds, joules)
}

func ofCost(name, unit, what string) protocol.ImpactOutcome {
	return protocol.ImpactOutcome{Name: name, Unit: unit, What: what, Medium: mediumOfCost, High: highOfCost, Parameters: []protocol.ParameterImpact{}, Notes: []string{}}
}

// add takes in what a trial came to, unless that is no number.
func (o *outcome) add(t trial.Trial, value float64, estimated bool, method string) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	if !o.larger {
		value = -value
	}
	o.list = append(o.list, importance.Observation{Configuration: t.Configuration, Score: value})
	o.Trials++
	if estimated {
		o.Estimated, o.Method = true, method
	}
}

// outcomeOfObjective is the objective at the rung where most trials were measured,
// of several the highest.
func outcomeOfObjective(trials []trial.Trial, at int, objective definition.Objective) outcome {
	counts := map[int]int{}
	rung := 0
	for i := range trials {
		for _, result := range trials[i].Results {
			counts[result.Rung]++
		}
	}
	for other, count := range counts {
		if count > counts[rung] || count == counts[rung] && other > rung {
			rung = other
		}
	}
	o := outcome{larger: objective.Direction == definition.Maximize, ImpactOutcome: protocol.ImpactOutcome{
		Name: objective.Label(), What: fmt.Sprintf("measured at rung %d", rung), Medium: mediumOfWorth, High: highOfWorth, Rung: &rung,
		Parameters: []protocol.ParameterImpact{}, Notes: []string{},
	}}
	for i := range trials {
		for _, result := range trials[i].Results {
			if result.Rung == rung && at < len(result.Values) {
				o.add(trials[i], float64(result.Values[at]), result.Estimated, "joules or inferences that were not measured went into values")
			}
		}
	}
	if rung > 0 && o.Trials > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("most trials came to rung %d because they were good below: it tells what matters among those", rung))
	}
	return o
}

// trainingOutcomes are the time and the energy of trainings that had the same
// budgets: those that ended at one rung, the one with most of them. Others trained
// longer or shorter, mostly because they were good or bad.
func trainingOutcomes(def definition.Definition, trials []trial.Trial) []outcome {
	if len(def.Budget.Ladder()) > 0 && def.Budget.Ladder()[0].Budget.Measured() {
		return nil // every training gets the time or the energy that the rung says
	}
	byRung := map[int][]trial.Trial{}
	rung := 0
	for _, t := range trials {
		if t.MeasuredAt(t.Rung) && t.Parent == nil {
			byRung[t.Rung] = append(byRung[t.Rung], t)
		}
	}
	for other, list := range byRung {
		if len(list) > len(byRung[rung]) || len(list) == len(byRung[rung]) && other > rung {
			rung = other
		}
	}
	what := fmt.Sprintf("of the trainings that ended at rung %d, set-up included", rung)
	seconds := outcome{ImpactOutcome: ofCost("training_seconds", "s", "time "+what)}
	joules := outcome{ImpactOutcome: ofCost("training_joules", "J", "energy "+what)}
	seconds.Rung, joules.Rung = &rung, &rung
	for _, t := range byRung[rung] {
		seconds.add(t, float64(t.Seconds), false, "")
		if t.Energy.Method != "" {
			joules.add(t, float64(t.Energy.Joules), t.Energy.Estimated(), t.Energy.Method)
		}
	}
	return []outcome{seconds, joules}
}

// predict fills in what the space's parameters do, as far as that can be told.
func (o *outcome) predict(s space.Space) {
	forest := importance.Grow(s, o.list)
	if forest == nil {
		o.Notes = append(o.Notes, fmt.Sprintf("too few trials: %d have this outcome, and %d are needed", o.Trials, importance.Least))
		return
	}
	o.Surrogate = surrogateOf(forest)
	if forest.Explained < importance.Doubtful {
		o.Notes = append(o.Notes, fmt.Sprintf("from its %d trials a surrogate predicts %.0f%% of the variance of others, which is as good as nothing: no class is computed from it",
			forest.Trials, 100*max(0, forest.Explained)))
		return
	}
	chances := importance.Chances(s, o.list)
	for i, extent := range forest.Extents() {
		if !o.larger {
			extent.Lowest, extent.Highest = -extent.Highest+0, -extent.Lowest+0
			extent.LowestAt, extent.HighestAt = extent.HighestAt, extent.LowestAt
		}
		one := protocol.ParameterImpact{
			Name: extent.Parameter, Kind: s.Parameters[i].Kind, Variation: extent.Variation(), Lowest: extent.Lowest, Highest: extent.Highest,
			LowestAt: extent.LowestAt, HighestAt: extent.HighestAt, Chance: &chances[i],
		}
		one.Class = o.classOf(one.Variation)
		o.Parameters = append(o.Parameters, one)
	}
	if forest.Trials < fewTrials {
		o.Notes = append(o.Notes, fmt.Sprintf("%d trials are few: with others, classes may be others", forest.Trials))
	}
	if forest.Explained < 0.5 {
		o.Notes = append(o.Notes, fmt.Sprintf("the surrogate predicts only %.0f%% of the variance of trials it has not seen: take the classes as a hint", 100*forest.Explained))
	}
	if forest.Pulled > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("%d of %d values lie far outside of all others and were counted as the worst of these", forest.Pulled, forest.Used))
	}
}

func (o *outcome) classOf(variation float64) string {
	switch {
	case variation >= o.High:
		return protocol.HighImpact
	case variation >= o.Medium:
		return protocol.MediumImpact
	default:
		return protocol.LowImpact
	}
}
