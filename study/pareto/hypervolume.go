package pareto

import (
	"cmp"
	"slices"
)

// Hypervolume is the volume of what the points dominate, bounded by a
// reference that should be worse than all of them: the larger, the better the
// set as a whole (Zitzler and Thiele 1998). Points that are not better than
// the reference in every objective add nothing.
//
// It is exact. With n points on the front and m objectives it takes about
// n·log n steps for two objectives, n² for three and n³ for four.
func Hypervolume(points []Point, reference Point) float64 {
	var inside []Point
	for _, point := range points {
		if better(point, reference) {
			inside = append(inside, point)
		}
	}
	return volume(inside, reference, len(reference))
}

func better(point, reference Point) bool {
	for i, value := range point {
		if !(value > reference[i]) {
			return false
		}
	}
	return true
}

// volume looks at the first m objectives. It cuts along the last of them:
// between two of its values the points above form a volume of one dimension
// less.
func volume(points []Point, reference Point, m int) float64 {
	if len(points) == 0 {
		return 0
	}
	last := m - 1
	if last == 0 {
		best, _ := extent(points, 0)
		return best - reference[0]
	}
	points = slices.Clone(points)
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(b[last], a[last]) })
	total := 0.0
	var base staircase
	for i, point := range points {
		below := reference[last]
		if i+1 < len(points) {
			below = points[i+1][last]
		}
		height := point[last] - below
		switch {
		case m == 3:
			base.add(point[0], point[1])
			if height > 0 {
				total += height * base.area(reference)
			}
		case height > 0:
			total += height * volume(points[:i+1], reference, last)
		}
	}
	return total
}

// staircase has the corners of a front of two objectives: the first falls, the
// second rises.
type staircase []Point

func (s *staircase) add(x, y float64) {
	corners := *s
	at, _ := slices.BinarySearchFunc(corners, x, func(corner Point, x float64) int { return cmp.Compare(x, corner[0]) })
	for at > 0 && corners[at-1][0] == x {
		at--
	}
	if at > 0 && corners[at-1][1] >= y || at < len(corners) && corners[at][0] == x && corners[at][1] >= y {
		return
	}
	end := at
	for end < len(corners) && corners[end][1] <= y {
		end++
	}
	*s = slices.Replace(corners, at, end, Point{x, y})
}

func (s staircase) area(reference Point) float64 {
	total, below := 0.0, reference[1]
	for _, corner := range s {
		total += (corner[0] - reference[0]) * (corner[1] - below)
		below = corner[1]
	}
	return total
}
