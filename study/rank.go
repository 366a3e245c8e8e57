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
// [board.fronts]); NaN is last, and equal trials go by number. Configurations
// that were trained again come first in their rung, by their means; a repeat has
// no rank, as the trial that it repeats has one.
func rank(trials []trial.Trial, objectives []definition.Objective) []place {
	b := boardOf(trials, objectives)
	order := b.ordered()
	places := make([]place, len(order))
	for i, t := range order {
		places[i] = place{trial: &trials[t.Number], repeated: b.repeated[t.Number]}
		if len(t.Results) > 0 {
			places[i].rank = i + 1
		}
	}
	return places
}

// place is a trial on the leaderboard.
type place struct {
	trial *trial.Trial
	rank  int // 0 for a trial that has none
	// repeated is there for a trial that was repeated.
	repeated *protocol.Repeated
}

func (p place) ranked() protocol.RankedTrial {
	return protocol.RankedTrial{Trial: *p.trial, Rank: p.rank, Repeated: p.repeated}
}

func (b *board) ordered() []*trial.Trial {
	order := make([]*trial.Trial, len(b.standing))
	for i := range b.standing {
		order[i] = &b.standing[i]
	}
	if len(b.objectives) > 1 {
		return b.fronts(order)
	}
	slices.SortFunc(order, b.compareRank)
	return order
}

// rankOf is one of the trials with its rank; 0 if it was not measured, or
// repeats another one.
func rankOf(number int, trials []trial.Trial, objectives []definition.Objective) protocol.RankedTrial {
	b := boardOf(trials, objectives)
	ranked := protocol.RankedTrial{Trial: trials[number], Repeated: b.repeated[number]}
	t := &b.standing[number]
	if len(t.Results) == 0 {
		return ranked
	}
	if len(objectives) > 1 {
		ranked.Rank = 1 + slices.Index(b.ordered(), t)
		return ranked
	}
	ranked.Rank = 1
	for i := range b.standing {
		if b.compareRank(&b.standing[i], t) < 0 {
			ranked.Rank++
		}
	}
	return ranked
}

func (b *board) compareRank(x, y *trial.Trial) int {
	return cmp.Or(
		compareClass(x, y),
		compareDiverged(x, y),
		b.compareRepeated(x, y),
		cmp.Compare(violation(x), violation(y)),
		compareValue(x, y, b.objectives[0].Direction),
		cmp.Compare(x.Number, y.Number),
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
	}
	return compareFloats(x, y, direction)
}

// compareFloats puts the better value first, and NaN behind every number.
func compareFloats(x, y trial.Float, direction definition.Direction) int {
	switch {
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
	b := boardOf(trials, objectives)
	leader := b.leader()
	if leader == nil {
		return nil
	}
	result := leader.Results[len(leader.Results)-1]
	best := &protocol.Best{
		Trial: leader.ID, Number: leader.Number, Metric: objectives[0].Label(), Value: result.Values[0],
		Violation: result.Violation, Estimated: result.Estimated,
		Rung: result.Rung, Budget: result.Budget, Params: leader.Configuration, Repeated: b.repeated[leader.Number],
	}
	if len(objectives) > 1 {
		best.Values = result.Values
	}
	return best
}

// leader is the leading trial with what it competes with.
func (b *board) leader() *trial.Trial {
	if len(b.objectives) > 1 {
		if first := b.front(); len(first) > 0 {
			return first[0]
		}
		return nil
	}
	var leader *trial.Trial
	for i := range b.standing {
		t := &b.standing[i]
		if value, measured := t.Value(0); !measured || value.IsNaN() {
			continue
		}
		if leader == nil || b.compareRank(t, leader) < 0 {
			leader = t
		}
	}
	return leader
}
