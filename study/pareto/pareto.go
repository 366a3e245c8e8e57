// Package pareto compares what has several values: which points are beaten by
// others, and how good is a set of points as a whole?
//
// All values are "larger is better"; callers turn the signs. A NaN belongs to
// no point. The package is pure, and the same points give the same answer in
// whatever order they come.
package pareto

import (
	"cmp"
	"math"
	"slices"
)

// Point has one value for each objective, larger is better.
type Point []float64

// Dominates reports whether a is at least as good as b in every objective and
// better in one. It is a strict partial order.
func Dominates(a, b Point) bool {
	better := false
	for i, value := range a {
		switch {
		case value < b[i]:
			return false
		case value > b[i]:
			better = true
		}
	}
	return better
}

// Fronts sorts the points' places into fronts: the first has the points that
// none dominates, the next those that only points of the first dominate, and
// so on. Within a front the places ascend.
//
// It is the non-dominated sorting of NSGA-II (Deb, Pratap, Agarwal and
// Meyarivan 2002), computed in the order that Zhang, Tian, Cheng and Jin (2015,
// ENS-BS) use: once the points are sorted, one can only be dominated by an
// earlier one.
func Fronts(points []Point) [][]int {
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(slices.Compare(points[b], points[a]), cmp.Compare(a, b))
	})
	var fronts [][]int
	for _, place := range order {
		at, _ := slices.BinarySearchFunc(fronts, place, func(front []int, place int) int {
			if dominatedBy(points, front, place) {
				return -1
			}
			return 1
		})
		if at == len(fronts) {
			fronts = append(fronts, nil)
		}
		fronts[at] = append(fronts[at], place)
	}
	for _, front := range fronts {
		slices.Sort(front)
	}
	return fronts
}

// dominatedBy reports whether a member of the front dominates the point. The
// last to come is the most similar one.
func dominatedBy(points []Point, front []int, place int) bool {
	for i := len(front) - 1; i >= 0; i-- {
		if Dominates(points[front[i]], points[place]) {
			return true
		}
	}
	return false
}

// extent is the best and the worst value of the points in one objective.
func extent(points []Point, objective int) (best, worst float64) {
	best, worst = math.Inf(-1), math.Inf(1)
	for _, point := range points {
		best, worst = max(best, point[objective]), min(worst, point[objective])
	}
	return best, worst
}

// Crowding is each point's distance from its neighbours on their front, as
// NSGA-II measures it: the larger, the lonelier. The ends of the front are at
// infinity. Of equal points the one that comes first is nearer to the end.
func Crowding(front []Point) []float64 {
	distances := make([]float64, len(front))
	if len(front) == 0 {
		return distances
	}
	for objective := range front[0] {
		order := sortable(front, func(point Point) float64 { return point[objective] })
		last := len(order) - 1
		distances[order[0].place], distances[order[last].place] = math.Inf(1), math.Inf(1)
		span := order[0].value - order[last].value
		if !(span > 0) || math.IsInf(span, 1) {
			continue // all alike, or not to be measured
		}
		for i := 1; i < last; i++ {
			distances[order[i].place] += (order[i-1].value - order[i+1].value) / span
		}
	}
	return distances
}

// key is a value and where it came from.
type key struct {
	value float64
	place int
}

// sortable returns a value of each, the largest first, and of equals the one
// that stood first.
func sortable[T any](list []T, value func(T) float64) []key {
	keys := make([]key, len(list))
	for i, one := range list {
		keys[i] = key{value(one), i}
	}
	slices.SortFunc(keys, func(a, b key) int {
		switch {
		case a.value > b.value:
			return -1
		case a.value < b.value:
			return 1
		}
		return a.place - b.place
	})
	return keys
}
