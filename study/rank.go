package study

import (
	"cmp"
	"slices"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// rank orders the measured trials as the leaderboard does. Feasible trials come
// first. Values measured with different budgets do not compare, so the highest
// rung comes next, and within a rung the best value (of several objectives see
// [fronts]); NaN is last, and equal trials go by number.
func rank(trials []trial.Trial, objectives []definition.Objective) []protocol.RankedTrial {
	order := ordered(trials, objectives)
	ranked := make([]protocol.RankedTrial, len(order))
	for i, t := range order {
		ranked[i].Trial = *t
		if len(t.Results) > 0 {
			ranked[i].Rank = i + 1
		}
	}
	return ranked
}

func ordered(trials []trial.Trial, objectives []definition.Objective) []*trial.Trial {
	order := make([]*trial.Trial, len(trials))
	for i := range trials {
		order[i] = &trials[i]
	}
	if len(objectives) > 1 {
		return fronts(order, objectives)
	}
	slices.SortFunc(order, func(a, b *trial.Trial) int { return compareRank(a, b, objectives[0].Direction) })
	return order
}

// rankOf is the rank of one of the trials; 0 if it was not measured.
func rankOf(number int, trials []trial.Trial, objectives []definition.Objective) int {
	if len(trials[number].Results) == 0 {
		return 0
	}
	if len(objectives) > 1 {
		return 1 + slices.Index(ordered(trials, objectives), &trials[number])
	}
	place := 1
	for i := range trials {
		if compareRank(&trials[i], &trials[number], objectives[0].Direction) < 0 {
			place++
		}
	}
	return place
}

func compareRank(a, b *trial.Trial, direction definition.Direction) int {
	return cmp.Or(
		compareClass(a, b),
		compareDiverged(a, b),
		cmp.Compare(violation(a), violation(b)),
		compareValue(a, b, direction),
		cmp.Compare(a.Number, b.Number),
	)
}

// compareClass puts what was measured first, of that what is feasible, and of
// that the highest rung.
func compareClass(a, b *trial.Trial) int {
	if measured := len(a.Results) > 0; measured != (len(b.Results) > 0) {
		return trueFirst(measured)
	}
	if feasible := violation(a) == 0; feasible != (violation(b) == 0) {
		return trueFirst(feasible)
	}
	return cmp.Compare(measuredRung(b), measuredRung(a))
}

// compareDiverged puts a trial whose first objective is NaN behind.
func compareDiverged(a, b *trial.Trial) int {
	x, _ := a.Value(0)
	y, _ := b.Value(0)
	if x.IsNaN() == y.IsNaN() {
		return 0
	}
	return trueFirst(!x.IsNaN())
}

// violation is that of the trial's newest result.
func violation(t *trial.Trial) trial.Float {
	if len(t.Results) == 0 {
		return 0
	}
	return t.Results[len(t.Results)-1].Violation
}

// measuredRung is the highest rung the trial was measured at, or -1.
func measuredRung(t *trial.Trial) int {
	if len(t.Results) == 0 {
		return -1
	}
	return t.Results[len(t.Results)-1].Rung
}

// compareValue puts the better value of the first objective first, NaN behind
// every number, and a trial without a value last.
func compareValue(a, b *trial.Trial, direction definition.Direction) int {
	x, hasX := a.Value(0)
	y, hasY := b.Value(0)
	switch {
	case hasX != hasY:
		return trueFirst(hasX)
	case !hasX:
		return 0
	case x.IsNaN() || y.IsNaN():
		if x.IsNaN() == y.IsNaN() {
			return 0
		}
		return trueFirst(!x.IsNaN())
	case direction == definition.Maximize:
		return cmp.Compare(y, x)
	default:
		return cmp.Compare(x, y)
	}
}

func trueFirst(first bool) int {
	if first {
		return -1
	}
	return 1
}

// best is the leading trial, if any was measured with a number.
func (r *runtime) best(trials []trial.Trial) *protocol.Best {
	objectives := r.study.Definition.Objectives
	leader := leaderOf(trials, objectives)
	if leader == nil {
		return nil
	}
	result := leader.Results[len(leader.Results)-1]
	best := &protocol.Best{
		Trial: leader.ID, Number: leader.Number, Metric: objectives[0].Label(), Value: result.Values[0],
		Violation: result.Violation, Estimated: result.Estimated,
		Rung: result.Rung, Budget: result.Budget, Params: leader.Configuration,
	}
	if len(objectives) > 1 {
		best.Values = result.Values
	}
	return best
}

func leaderOf(trials []trial.Trial, objectives []definition.Objective) *trial.Trial {
	if len(objectives) > 1 {
		if first := front(trials, objectives); len(first) > 0 {
			return first[0]
		}
		return nil
	}
	var leader *trial.Trial
	for i := range trials {
		t := &trials[i]
		if value, measured := t.Value(0); !measured || value.IsNaN() {
			continue
		}
		if leader == nil || compareRank(t, leader, objectives[0].Direction) < 0 {
			leader = t
		}
	}
	return leader
}
