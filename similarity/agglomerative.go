package similarity

import "math"

// Agglomerative joins the two nearest clusters, by the mean distance of their
// points, as long as that is at most Cut. How many clusters there are follows
// from how far apart two points of one cluster may be, and does not grow with
// the number of points, as it does where k-means is to reach some inertia.
type Agglomerative struct {
	// Cut is a distance. [Memory] scales features so that two runs of one
	// workload are about 1 apart.
	Cut float64
}

// Cluster implements Clusterer. It takes time and memory quadratic in the
// number of points: some 0.1 s and 16 MB of 2,000.
func (a Agglomerative) Cluster(points [][]float64) Clustering {
	if len(points) == 0 {
		return Clustering{}
	}
	distinct, weights, which := canonical(points)
	chain := newChain(distinct, weights)
	labels := make([]int, len(distinct))
	for i := range labels {
		labels[i] = i
	}
	for _, join := range chain.joins() {
		if join.distance <= a.Cut {
			union(labels, join.a, join.b)
		}
	}
	for i := range labels {
		labels[i] = root(labels, i)
	}
	return clustering(points, spreadLabels(labels, which))
}

func root(labels []int, at int) int {
	for labels[at] != at {
		at = labels[at]
	}
	return at
}

func union(labels []int, a, b int) {
	a, b = root(labels, a), root(labels, b)
	labels[max(a, b)] = min(a, b)
}

type join struct {
	a, b     int
	distance float64
}

// chain is the nearest-neighbour chain method (Benzécri 1982, Murtagh 1983): it
// follows nearest neighbours until two are each other's. For the mean distance
// it finds the joins of the greedy method in quadratic time.
type chain struct {
	distances [][]float64 // of i to each j < i
	sizes     []float64   // 0: joined into another
	left      int
}

func newChain(points [][]float64, weights []float64) *chain {
	c := &chain{sizes: append([]float64(nil), weights...), left: len(points)}
	for i := range points {
		row := make([]float64, i)
		for j := range row {
			row[j] = distance(points[i], points[j])
		}
		c.distances = append(c.distances, row)
	}
	return c
}

func (c *chain) distance(i, j int) *float64 { return &c.distances[max(i, j)][min(i, j)] }

func (c *chain) joins() []join {
	var list []join
	var path []int
	next := 0
	for c.left > 1 {
		if len(path) == 0 {
			for c.sizes[next] == 0 {
				next++
			}
			path = append(path, next)
		}
		at := path[len(path)-1]
		before := -1
		if len(path) > 1 {
			before = path[len(path)-2]
		}
		to, apart := c.nearest(at, before)
		if to != before {
			path = append(path, to)
			continue
		}
		list = append(list, join{at, to, apart})
		path = path[:len(path)-2]
		c.merge(at, to)
	}
	return list
}

// nearest prefers the one before, so that equal distances do not go in circles.
func (c *chain) nearest(at, before int) (to int, apart float64) {
	to, apart = before, math.Inf(1)
	if before >= 0 {
		apart = *c.distance(at, before)
	}
	for j, size := range c.sizes {
		if size > 0 && j != at && *c.distance(at, j) < apart {
			to, apart = j, *c.distance(at, j)
		}
	}
	return to, apart
}

// merge joins b into a: a mean distance is the mean over both parts.
func (c *chain) merge(a, b int) {
	total := c.sizes[a] + c.sizes[b]
	for j, size := range c.sizes {
		if size > 0 && j != a && j != b {
			d := c.distance(a, j)
			*d = (c.sizes[a]**d + c.sizes[b]**c.distance(b, j)) / total
		}
	}
	c.sizes[a], c.sizes[b] = total, 0
	c.left--
}
