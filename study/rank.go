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
	keys := make([]rankKey, len(b.standing))
	for i := range keys {
		keys[i] = b.rankKey(i)
	}
	slices.SortFunc(keys, b.compareRank)
	for i, key := range keys {
		order[i] = &b.standing[key.at]
	}
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
	key := b.rankKey(number)
	for i := range b.standing {
		if b.compareRank(b.rankKey(i), key) < 0 {
			ranked.Rank++
		}
	}
	return ranked
}

// rankKey is what a trial of one objective ranks by, taken out of it: trials are
// large, and a sort looks at each many times.
type rankKey struct {
	at                                     int // the trial's place on the board
	measured, feasible, diverged, repeated bool
	rung, number                           int
	violation, value                       trial.Float
}

func (b *board) rankKey(at int) rankKey {
	t := &b.standing[at]
	key := rankKey{at: at, rung: -1, feasible: true, number: t.Number, repeated: b.repeated[t.Number] != nil}
	if len(t.Results) > 0 {
		newest := &t.Results[len(t.Results)-1]
		key.measured, key.rung, key.violation, key.feasible = true, newest.Rung, newest.Violation, newest.Violation == 0
		key.value, _ = t.Value(0)
		key.diverged = key.value.IsNaN()
	}
	return key
}

// compareRank puts what was measured first, of that what is feasible, of that the
// highest rung, and there what diverged last and what was trained again first:
// then the smaller violation, the better value, and the lower number.
func (b *board) compareRank(x, y rankKey) int {
	switch {
	case x.measured != y.measured:
		return trueFirst(x.measured)
	case x.feasible != y.feasible:
		return trueFirst(x.feasible)
	case x.rung != y.rung:
		return cmp.Compare(y.rung, x.rung)
	case x.diverged != y.diverged:
		return trueFirst(y.diverged)
	case x.repeated != y.repeated:
		return trueFirst(x.repeated)
	case x.violation != y.violation:
		return cmp.Compare(x.violation, y.violation)
	}
	return cmp.Or(compareFloats(x.value, y.value, b.objectives[0].Direction), cmp.Compare(x.number, y.number))
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
		if first, _ := b.front(); len(first) > 0 {
			return first[0]
		}
		return nil
	}
	best := rankKey{at: -1}
	for i := range b.standing {
		key := b.rankKey(i)
		if key.measured && !key.diverged && (best.at < 0 || b.compareRank(key, best) < 0) {
			best = key
		}
	}
	if best.at < 0 {
		return nil
	}
	return &b.standing[best.at]
}
