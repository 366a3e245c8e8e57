package pareto

import (
	"math"
	"slices"
)

// A value is no outlier up to so many interquartile ranges outside the quartiles
// (Tukey 1977).
const fence = 1.5

// enough is how many points, besides outliers, say what is usual; of a few none is
// taken for an outlier.
const (
	enough = 8
	few    = 5
)

// Range is the usual range of an objective.
type Range struct{ Best, Worst float64 }

// Usual is the range of each objective among the points of the first fronts, of as
// many as have eight together. A point with an outlier in any objective does not
// count, so no single one stretches a range.
func Usual(points []Point, fronts [][]int) []Range {
	var near, kept []Point
	for _, front := range fronts {
		for _, place := range front {
			near = append(near, points[place])
		}
		if kept = ordinary(near); len(kept) >= enough {
			break
		}
	}
	if len(kept) == 0 {
		return nil
	}
	ranges := make([]Range, len(kept[0]))
	for objective := range ranges {
		finite := slices.DeleteFunc(slices.Clone(kept), func(point Point) bool { return math.IsInf(point[objective], 0) })
		if len(finite) > 0 {
			ranges[objective].Best, ranges[objective].Worst = extent(finite, objective)
		}
	}
	return ranges
}

// ordinary are the points without outliers. The furthest one is taken out until none
// is left, so what is kept does not depend on how far away it was. Of a few points
// none is an outlier.
func ordinary(points []Point) []Point {
	kept := slices.Clone(points)
	for len(kept) > few {
		furthest, most := -1, fence
		for objective := range kept[0] {
			for i, by := range outside(kept, objective) {
				if by > most {
					furthest, most = i, by
				}
			}
		}
		if furthest < 0 {
			break
		}
		kept = slices.Delete(kept, furthest, furthest+1)
	}
	return kept
}

// outside is how far each point is outside the quartiles of an objective, in parts of
// the distance between them. Where that is nothing, only an infinity is outside.
func outside(points []Point, objective int) []float64 {
	values := make([]float64, len(points))
	for i, point := range points {
		values[i] = point[objective]
	}
	slices.Sort(values)
	low, high := quantile(values, 0.25), quantile(values, 0.75)
	for i, point := range points {
		by := max(low-point[objective], point[objective]-high, 0)
		switch {
		case math.IsInf(by, 0):
			values[i] = by
		case high > low && by > 0:
			values[i] = by / (high - low)
		default:
			values[i] = 0
		}
	}
	return values
}

// quantile is that of values that ascend, between two of them by their distances.
func quantile(values []float64, part float64) float64 {
	at := part * float64(len(values)-1)
	below := int(at)
	above := min(below+1, len(values)-1)
	rest := at - float64(below)
	if rest == 0 || values[below] == values[above] { // also of infinities
		return values[below]
	}
	return values[below] + rest*(values[above]-values[below])
}

// Farness is each point's distance from the ideal, which has the best usual value
// in every objective: the smaller, the better the compromise. Every objective is
// measured in parts of its usual range. What is better than that range is as good
// as its best; what is worse is further than 1.
func Farness(front []Point, usual []Range) []float64 {
	distances := make([]float64, len(front))
	for i, point := range front {
		for objective, value := range point {
			best, span := usual[objective].Best, usual[objective].Best-usual[objective].Worst
			if value < best && span > 0 {
				distances[i] = math.Hypot(distances[i], (best-value)/span)
			}
		}
	}
	return distances
}

// Band is what a value may be, from the lowest to the highest; of a value that is
// known exactly both are the value.
type Band struct{ Low, High float64 }

// has reports whether the band has the value.
func (b Band) has(value float64) bool { return b.Low <= value && value <= b.High }

// Judged is a point with the bands of its values.
type Judged struct {
	Point Point
	Bands []Band
}

// Compare says in which objectives a is better, in which it is worse, and in which
// nobody can tell: there one of the values differs, but lies within the other's band.
func Compare(a, b Judged) (better, worse, tied []int) {
	for i, value := range a.Point {
		other := b.Point[i]
		switch {
		case value == other:
		case a.Bands[i].has(other) || b.Bands[i].has(value):
			tied = append(tied, i)
		case value > other:
			better = append(better, i)
		default:
			worse = append(worse, i)
		}
	}
	return better, worse, tied
}

// Choose is the place of the best compromise among points of which the nearest to
// the ideal stands first: that one, unless others are better than it in an objective
// and worse in none, as far as that can be told. Of these it is the first that no
// other of them is better than in the same sense.
func Choose(near []Judged) int {
	beats := func(a, b int) bool {
		better, worse, _ := Compare(near[a], near[b])
		return len(better) > 0 && len(worse) == 0
	}
	var rivals []int
	for i := 1; i < len(near); i++ {
		if beats(i, 0) {
			rivals = append(rivals, i)
		}
	}
	for _, one := range rivals {
		if !slices.ContainsFunc(rivals, func(other int) bool { return beats(other, one) }) {
			return one
		}
	}
	if len(rivals) > 0 { // each beats another
		return rivals[0]
	}
	return 0
}
