package similarity

import (
	"cmp"
	"math"
	"slices"
)

// Clusterer groups points, all of the same dimension and of finite values. The
// groups do not depend on the points' order, and equal points are in one group.
//
// The thesis's similarity function is pluggable (Rocha, section 6.3.4); this is
// where another one goes.
type Clusterer interface {
	Cluster(points [][]float64) Clustering
}

// Clustering is what a Clusterer found.
type Clustering struct {
	// Labels has the cluster of each point: an index of Centroids.
	Labels []int
	// Centroids are the means of the clusters, in the order of their first
	// coordinates, so that the numbers do not depend on the points' order.
	Centroids [][]float64
}

// clustering makes means and their order of labels, which may have gaps.
func clustering(points [][]float64, labels []int) Clustering {
	sums, sizes := map[int][]float64{}, map[int]int{}
	for _, at := range ordered(points) { // sums round the same way in any order
		label := labels[at]
		if sums[label] == nil {
			sums[label] = make([]float64, len(points[at]))
		}
		for i, x := range points[at] {
			sums[label][i] += x
		}
		sizes[label]++
	}
	type group struct {
		label int
		mean  []float64
	}
	var groups []group
	for label, sum := range sums {
		for i := range sum {
			sum[i] /= float64(sizes[label])
		}
		groups = append(groups, group{label, sum})
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(slices.Compare(a.mean, b.mean), cmp.Compare(a.label, b.label))
	})
	c := Clustering{Labels: make([]int, len(points))}
	numbers := map[int]int{}
	for number, one := range groups {
		numbers[one.label] = number
		c.Centroids = append(c.Centroids, one.mean)
	}
	for at, label := range labels {
		c.Labels[at] = numbers[label]
	}
	return c
}

// ordered are the points' indices by their coordinates.
func ordered(points [][]float64) []int {
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(points[a], points[b]) })
	return order
}

// canonical returns the distinct points in order, how often each occurs, and
// which of them each point is.
func canonical(points [][]float64) (distinct [][]float64, weights []float64, which []int) {
	which = make([]int, len(points))
	for _, at := range ordered(points) {
		if last := len(distinct) - 1; last < 0 || !slices.Equal(distinct[last], points[at]) {
			distinct, weights = append(distinct, points[at]), append(weights, 0)
		}
		which[at] = len(distinct) - 1
		weights[len(distinct)-1]++
	}
	return distinct, weights, which
}

// spreadLabels gives every point the label of its distinct one.
func spreadLabels(labels, which []int) []int {
	all := make([]int, len(which))
	for i, at := range which {
		all[i] = labels[at]
	}
	return all
}

func squaredDistance(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return sum
}

func distance(a, b []float64) float64 { return math.Sqrt(squaredDistance(a, b)) }
