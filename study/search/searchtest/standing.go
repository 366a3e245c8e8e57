package searchtest

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/search"
)

// outcome is what a trial was measured with at a rung.
type outcome struct {
	// lost says that it failed or diverged: there is nothing to compare.
	lost bool
	// point has the objectives, larger is better.
	point     []float64
	violation float64
}

// outcomeOf is the outcome an event tells.
func (r *referee) outcomeOf(e search.Event) outcome {
	if e.Kind == search.Failed || math.IsInf(float64(e.Violation), 1) {
		return outcome{lost: true}
	}
	o := outcome{violation: float64(e.Violation)}
	for i, value := range e.Values {
		score := float64(value)
		if !r.settings.Maximize[i] {
			score = -score
		}
		if math.IsNaN(score) || math.IsInf(score, -1) {
			return outcome{lost: true}
		}
		o.point = append(o.point, score)
	}
	return o
}

// beaten reports whether the other outcome is at least as good in everything
// and better in something.
func (o outcome) beaten(other outcome) bool {
	better := false
	for i, score := range o.point {
		if other.point[i] < score {
			return false
		}
		better = better || other.point[i] > score
	}
	return better
}

// levels ranks the trials that have an outcome at the rung: the lower, the
// better. Trials on one level may be ranked in any order.
//
// Feasible trials come first, peeled off front by front; then the infeasible
// ones, by their violations; then those that have nothing to compare.
func (r *referee) levels(rung int, belongs func(watched) bool) map[int]int {
	levels := make(map[int]int)
	var feasible, infeasible []int
	for number, t := range r.trials {
		o, there := t.outcomes[rung]
		switch {
		case !there || !belongs(t):
		case o.lost:
			levels[number] = math.MaxInt
		case o.violation > 0:
			infeasible = append(infeasible, number)
		default:
			feasible = append(feasible, number)
		}
	}
	level := 0
	for ; len(feasible) > 0; level++ {
		front := slices.DeleteFunc(slices.Clone(feasible), func(number int) bool {
			return slices.ContainsFunc(feasible, func(other int) bool {
				return r.trials[number].outcomes[rung].beaten(r.trials[other].outcomes[rung])
			})
		})
		for _, number := range front {
			levels[number] = level
		}
		feasible = slices.DeleteFunc(feasible, func(number int) bool { return slices.Contains(front, number) })
	}
	for _, number := range infeasible {
		levels[number] = level
		for _, other := range infeasible {
			if r.trials[other].outcomes[rung].lessInfeasible(r.trials[number].outcomes[rung]) {
				levels[number]++
			}
		}
	}
	return levels
}

// lessInfeasible compares infeasible outcomes. At equal violations one
// objective decides; several do not.
func (o outcome) lessInfeasible(other outcome) bool {
	if o.violation != other.violation {
		return o.violation < other.violation
	}
	return len(o.point) == 1 && o.point[0] > other.point[0]
}
