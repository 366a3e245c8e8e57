package ranking

import (
	"cmp"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Rank orders the measured trials as the leaderboard does. Feasible trials come
// first. Values measured with different budgets do not compare, so the highest
// rung comes next, and within a rung the best value (of several objectives see
// [Board.fronts]); NaN is last, and equal trials go by number. Configurations
// that were trained again come first in their rung, by their means; a repeat has
// no rank, as the trial that it repeats has one.
func Rank(trials []trial.Trial, objectives []definition.Objective) []Place {
	b := Of(trials, objectives)
	order := b.ordered()
	places := make([]Place, len(order))
	for i, t := range order {
		places[i] = Place{trial: &trials[t.Number], repeated: b.Repeated[t.Number]}
		if len(t.Results) > 0 {
			places[i].rank = i + 1
		}
	}
	return places
}

// Place is a trial on the leaderboard.
type Place struct {
	trial *trial.Trial
	rank  int // 0 for a trial that has none
	// repeated is there for a trial that was repeated.
	repeated *protocol.Repeated
}

// Ranked is the trial with its rank.
func (p Place) Ranked() protocol.RankedTrial {
	return protocol.RankedTrial{Trial: *p.trial, Rank: p.rank, Repeated: p.repeated}
}

func (b *Board) ordered() []*trial.Trial {
	order := make([]*trial.Trial, len(b.Standing))
	for i := range b.Standing {
		order[i] = &b.Standing[i]
	}
	if len(b.objectives) > 1 {
		return b.fronts(order)
	}
	keys := make([]rankKey, len(b.Standing))
	for i := range keys {
		keys[i] = b.rankKey(i)
	}
	slices.SortFunc(keys, b.compareRank)
	for i, key := range keys {
		order[i] = &b.Standing[key.at]
	}
	return order
}

// RankOf is one of the trials with its rank; 0 if it was not measured, or
// repeats another one.
func RankOf(number int, trials []trial.Trial, objectives []definition.Objective) protocol.RankedTrial {
	b := Of(trials, objectives)
	ranked := protocol.RankedTrial{Trial: trials[number], Repeated: b.Repeated[number]}
	t := &b.Standing[number]
	if len(t.Results) == 0 {
		return ranked
	}
	if len(objectives) > 1 {
		ranked.Rank = 1 + slices.Index(b.ordered(), t)
		return ranked
	}
	ranked.Rank = 1
	key := b.rankKey(number)
	for i := range b.Standing {
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

func (b *Board) rankKey(at int) rankKey {
	t := &b.Standing[at]
	key := rankKey{at: at, rung: -1, feasible: true, number: t.Number, repeated: b.Repeated[t.Number] != nil}
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
func (b *Board) compareRank(x, y rankKey) int {
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
	return cmp.Or(b.objectives[0].Direction.Compare(x.value, y.value), cmp.Compare(x.number, y.number))
}

// compareClass puts what was measured first, of that what is feasible, and of
// that the highest rung.
func compareClass(a, b *trial.Trial) int {
	if measured := len(a.Results) > 0; measured != (len(b.Results) > 0) {
		return trueFirst(measured)
	}
	if feasible := Violation(a) == 0; feasible != (Violation(b) == 0) {
		return trueFirst(feasible)
	}
	return cmp.Compare(measuredRung(b), measuredRung(a))
}

// Violation is that of the trial's newest result.
func Violation(t *trial.Trial) trial.Float {
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

func trueFirst(first bool) int {
	if first {
		return -1
	}
	return 1
}

// Leader is the leading trial with what it competes with.
func (b *Board) Leader() *trial.Trial {
	if len(b.objectives) > 1 {
		if first, _ := b.front(); len(first) > 0 {
			return first[0]
		}
		return nil
	}
	best := rankKey{at: -1}
	for i := range b.Standing {
		key := b.rankKey(i)
		if key.measured && !key.diverged && (best.at < 0 || b.compareRank(key, best) < 0) {
			best = key
		}
	}
	if best.at < 0 {
		return nil
	}
	return &b.Standing[best.at]
}
