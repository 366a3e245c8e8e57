package ranking

import (
	"cmp"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/pareto"
	"github.com/tandem-tune/tandem/trial"
)

// fronts orders trials with several objectives in place: within a rung front
// by front (see package pareto), and within a front the nearest to the ideal
// first; before all others stands the best compromise. Infeasible trials go by
// their violations; those with an objective that diverged come last.
//
// A search prefers the lonely ones of a front instead: it wants to know what
// else there is, a reader which one to take.
func (b *Board) fronts(order []*trial.Trial) []*trial.Trial {
	points := make(map[*trial.Trial]pareto.Point, len(order))
	for _, t := range order {
		if point := pointOf(t, b.objectives); point != nil {
			points[t] = point
		}
	}
	slices.SortFunc(order, func(x, y *trial.Trial) int {
		return cmp.Or(b.compareGroup(x, y, points), cmp.Compare(x.Number, y.Number))
	})
	for first := 0; first < len(order); {
		next := first + 1
		for next < len(order) && b.compareGroup(order[first], order[next], points) == 0 {
			next++
		}
		if Violation(order[first]) == 0 && points[order[first]] != nil {
			b.arrange(order[first:next], points)
		}
		first = next
	}
	return order
}

// compareGroup orders what no objective decides.
func (b *Board) compareGroup(x, y *trial.Trial, points map[*trial.Trial]pareto.Point) int {
	if c := compareClass(x, y); c != 0 {
		return c
	}
	if usable := points[x] != nil; usable != (points[y] != nil) {
		return trueFirst(usable)
	}
	return cmp.Compare(Violation(x), Violation(y))
}

// arrange orders feasible trials of one rung, and returns how many of them are
// on the first front, and why its first is there. Within a front those that were
// trained again come first: how good they are is better known.
func (b *Board) arrange(group []*trial.Trial, points map[*trial.Trial]pareto.Point) (int, compromise) {
	list := make([]pareto.Point, len(group))
	for i, t := range group {
		list[i] = points[t]
	}
	sorted := make([]*trial.Trial, 0, len(group))
	layers := pareto.Fronts(list)
	usual := pareto.Usual(list, layers)
	far := pareto.Farness(list, usual)
	for _, members := range layers {
		slices.SortStableFunc(members, func(x, y int) int {
			return cmp.Or(b.compareRepeated(group[x], group[y]), cmp.Compare(far[x], far[y]))
		})
		for _, place := range members {
			sorted = append(sorted, group[place])
		}
	}
	copy(group, sorted)
	front := group[:len(layers[0])]
	return len(front), b.choose(front, points, usual)
}

// front are the trials that no other beats, the best compromise first, of the
// highest rung with a feasible measurement. As long as there is none it is the
// least infeasible trial alone. It is empty before the first measurement.
func (b *Board) front() ([]*trial.Trial, compromise) {
	points := make(map[*trial.Trial]pareto.Point)
	var group []*trial.Trial
	for i := range b.Standing {
		t := &b.Standing[i]
		point := pointOf(t, b.objectives)
		if point == nil {
			continue
		}
		points[t] = point
		if len(group) > 0 {
			c := b.compareGroup(t, group[0], points)
			if c > 0 {
				continue
			}
			if c < 0 {
				group = group[:0]
			}
		}
		group = append(group, t)
	}
	if len(group) == 0 || Violation(group[0]) > 0 {
		return group[:min(1, len(group))], compromise{}
	}
	first, why := b.arrange(group, points)
	return group[:first], why
}

// pointOf is the trial's newest result as a point to compare; nil if there is
// none, or one of its objectives diverged.
func pointOf(t *trial.Trial, objectives []definition.Objective) pareto.Point {
	if len(t.Results) == 0 {
		return nil
	}
	return PointOf(t.Results[len(t.Results)-1].Values, objectives)
}

// PointOf is the values as a point to compare; nil if one of them diverged.
func PointOf(values []trial.Float, objectives []definition.Objective) pareto.Point {
	point := make(pareto.Point, len(objectives))
	for i, objective := range objectives {
		if i >= len(values) {
			return nil
		}
		point[i] = objective.Direction.Score(values[i])
		if math.IsNaN(point[i]) || math.IsInf(point[i], -1) {
			return nil
		}
	}
	return point
}
