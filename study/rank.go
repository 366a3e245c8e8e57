package study

import (
	"cmp"
	"slices"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// rank orders the measured trials as the leaderboard does: values measured
// with different budgets do not compare, so the highest rung comes first, and
// within a rung the best value; NaN is last, and equal trials go by number.
func rank(trials []trial.Trial, direction definition.Direction) []protocol.RankedTrial {
	order := make([]*trial.Trial, len(trials))
	for i := range trials {
		order[i] = &trials[i]
	}
	slices.SortFunc(order, func(a, b *trial.Trial) int { return compareRank(a, b, direction) })
	ranked := make([]protocol.RankedTrial, len(order))
	for i, t := range order {
		ranked[i].Trial = *t
		if len(t.Results) > 0 {
			ranked[i].Rank = i + 1
		}
	}
	return ranked
}

// rankOf is the rank of one of the trials; 0 if it was not measured.
func rankOf(number int, trials []trial.Trial, direction definition.Direction) int {
	if len(trials[number].Results) == 0 {
		return 0
	}
	place := 1
	for i := range trials {
		if compareRank(&trials[i], &trials[number], direction) < 0 {
			place++
		}
	}
	return place
}

func compareRank(a, b *trial.Trial, direction definition.Direction) int {
	if c := cmp.Compare(measuredRung(b), measuredRung(a)); c != 0 {
		return c
	}
	if c := compareValue(a, b, direction); c != 0 {
		return c
	}
	return cmp.Compare(a.Number, b.Number)
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
	objective := r.study.Definition.Objectives[0]
	var leader *trial.Trial
	for i := range trials {
		t := &trials[i]
		value, measured := t.Value(0)
		if !measured || value.IsNaN() {
			continue
		}
		if leader == nil || compareRank(t, leader, objective.Direction) < 0 {
			leader = t
		}
	}
	if leader == nil {
		return nil
	}
	result := leader.Results[len(leader.Results)-1]
	return &protocol.Best{
		Trial: leader.ID, Number: leader.Number, Metric: objective.Label(), Value: result.Values[0], Estimated: result.Estimated,
		Rung: result.Rung, Budget: result.Budget, Params: leader.Configuration,
	}
}
