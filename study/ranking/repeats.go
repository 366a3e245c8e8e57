package ranking

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/regression"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/approximation"
)

// repeatNotes say what the repeats of the leading trial, and of those next to
// it, mean for its value.
func repeatNotes(now journal.View, best *protocol.Best) []string {
	if best.Repeated == nil {
		return unrepeatedNotes(now)
	}
	var notes []string
	came := *best.Repeated
	switch {
	case came.Results == 1:
		notes = append(notes, "its value is that of one training: none of its repeats has ended yet")
	case came.StandardErrors[0] == 0:
		notes = append(notes, fmt.Sprintf("mean of %d trainings, which all came to the same %s: if the command does not use its seed, repeats tell nothing", came.Results, best.Metric))
	default:
		notes = append(notes, fmt.Sprintf("mean of %d trainings, standard error %.2g", came.Results, float64(came.StandardErrors[0])))
	}
	if alone := repeatsAlone(now.Trials, best.Number); len(alone) > 0 && len(best.Values) == 0 {
		mean, _ := Mean(alone)
		notes = append(notes, fmt.Sprintf("among them is the training it was chosen for, which mostly is a lucky one: the mean of its repeats alone is %.6g", mean))
	}
	if failed := failedRepeats(now.Trials, best.Number); failed > 0 {
		notes = append(notes, fmt.Sprintf("%d of its repeats failed and are not in the mean", failed))
	}
	if len(best.Values) == 0 {
		notes = append(notes, level(now, best)...)
	}
	return notes
}

// presentNotes compare the recommendation with the present settings, by repeats alone:
// what it was chosen for is mostly lucky.
func presentNotes(now journal.View, best *protocol.Best) []string {
	def := now.Study.Definition
	again := def.Search.Repeats
	if again == nil || !again.Present || len(best.Values) > 0 {
		return nil
	}
	if best.Params.Key() == now.Trials[0].Configuration.Key() {
		return []string{"no settings were found that are better than your present ones (trial 0)"}
	}
	present := repeatsAlone(now.Trials, 0)
	found := regression.Compare(repeatsAlone(now.Trials, best.Number), present, again.Trials, again.Looks())
	base, _ := Mean(present)
	if found.Pairs < 2 || base == 0 {
		return []string{"not compared with your present settings (trial 0): that takes two repeats of each"}
	}
	percent, low, high := 100*found.Difference/math.Abs(base), 100*found.Low/math.Abs(base), 100*found.High/math.Abs(base)
	if def.Objectives[0].Direction == definition.Minimize {
		percent, low, high = -percent, -high, -low
	}
	interval := fmt.Sprintf("95%% interval %s to %s, from %d repeats of each", signed(low), signed(high), found.Pairs)
	switch {
	case low > 0:
		return []string{fmt.Sprintf("%.1f%% better than your present settings (trial 0): %s", percent, interval)}
	case high < 0:
		return []string{fmt.Sprintf("%.1f%% worse than your present settings (trial 0): %s", -percent, interval)}
	}
	return []string{fmt.Sprintf("no difference found to your present settings (trial 0): %s, %s; a larger search.repeats.times shows smaller ones", signed(percent), interval)}
}

// signed is a percentage, as exactly as it matters.
func signed(percent float64) string {
	if math.Abs(percent) < 10 {
		return fmt.Sprintf("%+.1f%%", percent)
	}
	return fmt.Sprintf("%+.0f%%", percent)
}

// unrepeatedNotes say why the recommendation of a study with repeats stands on
// one training. While the study runs, that goes without saying.
func unrepeatedNotes(now journal.View) []string {
	if again := now.Study.Definition.Search.Repeats; again == nil || again.Times == 1 || !now.Study.Status.Over() {
		return nil
	}
	if len(trial.Searched(now.Trials)) == len(now.Trials) {
		return []string{"the study ended before its best trials were repeated: the value is that of one training"}
	}
	return []string{"no repeat of this trial has a result: the value is that of one training"}
}

// repeatsAlone are the values of a trial's repeats in the first objective.
func repeatsAlone(trials []trial.Trial, of int) []float64 {
	var values []float64
	for _, t := range trials[len(trial.Searched(trials)):] {
		if value, measured := t.Value(0); measured && *t.RepeatOf == of {
			values = append(values, float64(value))
		}
	}
	return values
}

func failedRepeats(trials []trial.Trial, of int) int {
	failed := 0
	for _, t := range trials[len(trial.Searched(trials)):] {
		if *t.RepeatOf == of && (t.State == trial.Failed || t.State == trial.Lost) {
			failed++
		}
	}
	return failed
}

// level names the repeated trials whose means differ from the best one's by
// less than a standard error of the difference.
func level(now journal.View, best *protocol.Best) []string {
	if best.Repeated.Results < 2 {
		return nil
	}
	mean, spread := float64(best.Value), float64(best.Repeated.StandardErrors[0])
	b := Of(now.Trials, now.Study.Definition.Objectives)
	var notes []string
	for number, other := range b.Repeated {
		if number == best.Number || other.Results < 2 || Violation(&b.Standing[number]) != best.Violation {
			continue
		}
		if behind := math.Abs(float64(other.Mean[0]) - mean); behind < math.Hypot(spread, float64(other.StandardErrors[0])) {
			notes = append(notes, fmt.Sprintf("trial %d is as good within the noise: mean %.6g of %d trainings, standard error %.2g",
				number, float64(other.Mean[0]), other.Results, float64(other.StandardErrors[0])))
		}
	}
	slices.Sort(notes) // the map has no order
	return notes
}

// Approximated is what became of the study's trials that left data out.
func Approximated(now journal.View) approximation.Outcome {
	return approximation.Outcome{
		Definition: now.Study.Definition, Trials: now.Trials, Rungs: len(now.Ladder),
		Repeats: func(of int) []float64 { return repeatsAlone(now.Trials, of) },
	}
}

// BestOf is the leading trial, if any was measured with a number.
func BestOf(trials []trial.Trial, objectives []definition.Objective) *protocol.Best {
	b := Of(trials, objectives)
	leader := b.Leader()
	if leader == nil {
		return nil
	}
	result := leader.Results[len(leader.Results)-1]
	best := &protocol.Best{
		Trial: leader.ID, Number: leader.Number, Metric: objectives[0].Label(), Value: result.Values[0],
		Violation: result.Violation, Estimated: result.Estimated,
		Rung: result.Rung, Budget: result.Budget, Params: leader.Configuration, Repeated: b.Repeated[leader.Number],
	}
	if len(objectives) > 1 {
		best.Values = result.Values
	}
	return best
}
