package pareto

import (
	"cmp"
	"slices"
)

// Layers keeps the fronts of points that come one by one, each front with its
// loneliest point first (see [Crowding]). A new point costs one comparison
// with each of the others at most (Li, Deb, Zhang, Suganthan and Chen 2017,
// "efficient non-domination level update").
//
// The zero value is empty.
type Layers struct {
	fronts []layer
	size   int
}

// layer is one front.
type layer struct {
	members []member // by number
	order   []int    // numbers, the loneliest first; nil when it has to be found again
}

// member is a point under the caller's number.
type member struct {
	number int
	point  Point
}

// Len is how many points there are.
func (l *Layers) Len() int { return l.size }

// Add puts a point in under a number of the caller's, which must be new. It
// returns the place in [Layers.Order] before which nothing has changed.
func (l *Layers) Add(number int, point Point) (unchanged int) {
	l.size++
	at := 0
	for ; at < len(l.fronts) && dominates(l.fronts[at].members, point); at++ {
		unchanged += len(l.fronts[at].members)
	}
	// Those that the newcomers of a front dominate go to the next one, where
	// they may dominate others.
	for newcomers := []member{{number, point}}; len(newcomers) > 0; at++ {
		if at == len(l.fronts) {
			l.fronts = append(l.fronts, layer{})
		}
		newcomers = l.fronts[at].take(newcomers)
	}
	return unchanged
}

func dominates(front []member, point Point) bool {
	return slices.ContainsFunc(front, func(one member) bool { return Dominates(one.point, point) })
}

// take puts the newcomers in and returns those that one of them dominates.
func (l *layer) take(newcomers []member) (leave []member) {
	l.order = nil
	stay := l.members[:0]
	for _, m := range l.members {
		if dominates(newcomers, m.point) {
			leave = append(leave, m)
		} else {
			stay = append(stay, m)
		}
	}
	for _, m := range newcomers {
		at, _ := slices.BinarySearchFunc(stay, m.number, func(m member, number int) int { return cmp.Compare(m.number, number) })
		stay = slices.Insert(stay, at, m)
	}
	l.members = stay
	return leave
}

// arrange finds the order within the front; of equals the lowest number comes
// first.
func (l *layer) arrange() {
	points := make([]Point, len(l.members))
	for i, m := range l.members {
		points[i] = m.point
	}
	keys := sortable(Crowding(points), func(distance float64) float64 { return distance })
	l.order = make([]int, len(keys))
	for i, k := range keys {
		l.order[i] = l.members[k.place].number
	}
}

// Order appends the numbers to a list, from the best: front by front, and
// within each the loneliest first.
func (l *Layers) Order(list []int) []int {
	for i := range l.fronts {
		if l.fronts[i].order == nil {
			l.fronts[i].arrange()
		}
		list = append(list, l.fronts[i].order...)
	}
	return list
}
