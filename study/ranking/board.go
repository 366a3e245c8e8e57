package ranking

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// Board is a study's trials as they compete with each other.
//
// Most compete with what they were measured with. A configuration that the
// search trained again competes with the mean of its trainings, under the
// number of the trial that came first, and its repeats do not compete at all.
type Board struct {
	objectives []definition.Objective
	trials     []trial.Trial // by number
	// Standing has the same trials with what they compete with.
	Standing []trial.Trial
	// Repeated is what the repeated configurations came to, by trial.
	Repeated map[int]*protocol.Repeated
}

// Of makes the board of all trials of a study.
func Of(trials []trial.Trial, objectives []definition.Objective) Board {
	b := Board{objectives: objectives, trials: trials, Standing: trials}
	first := len(trial.Searched(trials))
	if first == len(trials) {
		return b
	}
	b.Standing, b.Repeated = make([]trial.Trial, len(trials)), make(map[int]*protocol.Repeated)
	copy(b.Standing, trials)
	groups := make(map[int][]int)
	for i := first; i < len(trials); i++ {
		t := &b.Standing[i]
		// One that ended without a result says nothing about its configuration.
		if len(t.Results) > 0 || !t.State.Terminal() {
			groups[*t.RepeatOf] = append(groups[*t.RepeatOf], i)
		}
		t.Results = nil
	}
	same := alike(trials[:first], groups)
	for of, repeats := range groups {
		b.gather(of, append(same[of], repeats...))
	}
	return b
}

// alike finds the trials that had the same configuration as a repeated one, and
// that one itself, by its number.
func alike(trials []trial.Trial, groups map[int][]int) map[int][]int {
	keys := make(map[string]int, len(groups))
	for of := range groups {
		keys[trials[of].Configuration.Key()] = of
	}
	same := make(map[int][]int, len(groups))
	for i := range trials {
		top := measuredRung(&trials[i])
		if top < 0 {
			continue
		}
		if of, ok := keys[trials[i].Configuration.Key()]; ok && top == measuredRung(&trials[of]) {
			same[of] = append(same[of], i)
		}
	}
	return same
}

// gather lets the trial stand for all trainings of its configuration.
func (b *Board) gather(of int, members []int) {
	t := &b.Standing[of]
	came, top := &protocol.Repeated{}, -1
	for _, i := range members { // the present settings may not have come to the top themselves
		top = max(top, measuredRung(&b.trials[i]))
	}
	var results []trial.Result
	for _, i := range members {
		if all := b.trials[i].Results; len(all) > 0 && measuredRung(&b.trials[i]) == top {
			came.Trials = append(came.Trials, i)
			results = append(results, all[len(all)-1])
		}
	}
	mean := results[0]
	mean.Values, mean.Estimated = make([]trial.Float, len(b.objectives)), false
	violations := make([]trial.Float, 0, len(results))
	for _, result := range results {
		violations = append(violations, result.Violation)
		mean.Estimated = mean.Estimated || result.Estimated
	}
	slices.Sort(violations)
	mean.Violation = violations[len(violations)/2] // one noisy training does not decide
	for i := range mean.Values {
		values := make([]float64, len(results))
		for at, result := range results {
			values[at] = float64(result.Values[i])
		}
		center, spread := Mean(values)
		mean.Values[i] = trial.Float(center)
		if len(results) > 1 {
			came.StandardErrors = append(came.StandardErrors, trial.Float(spread))
		}
	}
	came.Results, came.Mean = len(results), mean.Values
	below := slices.DeleteFunc(slices.Clone(t.Results), func(r trial.Result) bool { return r.Rung >= top })
	t.Results = append(below, mean)
	b.Repeated[of] = came
}

// Mean is the mean and its standard error: s / √n, with the n - 1 of an
// unbiased variance, and 0 if all are equal. Both are NaN if a value is.
func Mean(values []float64) (mean, standardError float64) {
	if len(values) > 1 && slices.Max(values) == slices.Min(values) {
		return values[0], 0 // not what rounding leaves
	}
	n := float64(len(values))
	for _, value := range values {
		mean += value / n
	}
	squares := 0.0
	for _, value := range values {
		squares += (value - mean) * (value - mean)
	}
	return mean, math.Sqrt(squares / (n - 1) / n)
}

// compareRepeated puts the configurations that were trained again first: a mean
// does not compare with one lucky training.
func (b *Board) compareRepeated(x, y *trial.Trial) int {
	if again := b.Repeated[x.Number] != nil; again != (b.Repeated[y.Number] != nil) {
		return trueFirst(again)
	}
	return 0
}

// LeaderOf is the number of the study's leading trial; nil if there is none.
func LeaderOf(now journal.View) *int {
	b := Of(now.Trials, now.Study.Definition.Objectives)
	leader := b.Leader()
	if leader == nil {
		return nil
	}
	return &leader.Number
}
