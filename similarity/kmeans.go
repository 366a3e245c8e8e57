package similarity

import (
	"math"
	"slices"
)

const (
	defaultRestarts = 8
	// maxChosen bounds a number of clusters that is chosen by silhouette.
	maxChosen = 24
	// silhouetteSample bounds the points a silhouette is taken over.
	silhouetteSample = 400
	// structure is the mean silhouette from which points are said to have more
	// than one cluster (Kaufman and Rousseeuw call 0.51 to 0.7 a reasonable one).
	structure = 0.5
	maxRounds = 100
)

// KMeans is Lloyd's method from k-means++ seeds, the best of some restarts: the
// thesis's choice, with K = 2 (Rocha, section 6.3.4).
type KMeans struct {
	// K is the number of clusters; fewer where there are fewer distinct points.
	// 0: the number with the largest mean silhouette, and one cluster where that
	// stays below 0.5.
	K int
	// Restarts is how often to begin anew; 8 when 0.
	Restarts int
	Seed     uint64
}

// Cluster implements Clusterer.
func (k KMeans) Cluster(points [][]float64) Clustering {
	if len(points) == 0 {
		return Clustering{}
	}
	distinct, weights, which := canonical(points)
	if k.K > 0 {
		return clustering(points, spreadLabels(k.fit(distinct, weights, k.K), which))
	}
	best, most := make([]int, len(distinct)), structure
	for count := 2; count <= min(maxChosen, len(distinct)-1); count++ {
		labels := k.fit(distinct, weights, count)
		if score := silhouette(distinct, weights, labels); score > most {
			best, most = labels, score
		}
	}
	return clustering(points, spreadLabels(best, which))
}

// fit labels the points with the least inertia of all restarts.
func (k KMeans) fit(points [][]float64, weights []float64, count int) []int {
	count = min(count, len(points))
	restarts := k.Restarts
	if restarts <= 0 {
		restarts = defaultRestarts
	}
	g := generator{k.Seed ^ uint64(count)<<32}
	var best []int
	least := math.Inf(1)
	for range restarts {
		labels, inertia := lloyd(points, weights, plusPlus(points, weights, count, &g))
		if inertia < least {
			best, least = labels, inertia
		}
	}
	return best
}

// plusPlus chooses far-off points (Arthur and Vassilvitskii 2007).
func plusPlus(points [][]float64, weights []float64, count int, g *generator) [][]float64 {
	first := g.choose(weights)
	centroids := [][]float64{slices.Clone(points[first])}
	nearest := make([]float64, len(points))
	for i := range points {
		nearest[i] = weights[i] * squaredDistance(points[i], points[first])
	}
	for len(centroids) < count {
		next := g.choose(nearest)
		centroids = append(centroids, slices.Clone(points[next]))
		for i := range points {
			nearest[i] = min(nearest[i], weights[i]*squaredDistance(points[i], points[next]))
		}
	}
	return centroids
}

// lloyd moves the centroids until none moves any more. A centroid that loses all
// its points stays where it is.
func lloyd(points [][]float64, weights []float64, centroids [][]float64) (labels []int, inertia float64) {
	labels = make([]int, len(points))
	for range maxRounds {
		inertia = 0
		for i, point := range points {
			at, squared := closest(point, centroids)
			labels[i] = at
			inertia += weights[i] * squared
		}
		if !recentre(points, weights, labels, centroids) {
			break
		}
	}
	return labels, inertia
}

func closest(point []float64, centroids [][]float64) (at int, squared float64) {
	squared = math.Inf(1)
	for c, centroid := range centroids {
		if d := squaredDistance(point, centroid); d < squared {
			at, squared = c, d
		}
	}
	return at, squared
}

// recentre reports whether a centroid moved.
func recentre(points [][]float64, weights []float64, labels []int, centroids [][]float64) bool {
	moved := false
	sums, sizes := make([][]float64, len(centroids)), make([]float64, len(centroids))
	for i, point := range points {
		label := labels[i]
		if sums[label] == nil {
			sums[label] = make([]float64, len(point))
		}
		for j, x := range point {
			sums[label][j] += weights[i] * x
		}
		sizes[label] += weights[i]
	}
	for c, sum := range sums {
		for j := range sum {
			if mean := sum[j] / sizes[c]; mean != centroids[c][j] {
				centroids[c][j], moved = mean, true
			}
		}
	}
	return moved
}

// silhouette is the mean over the points of how much nearer they are to their
// own cluster than to the next one, from -1 to 1; of a cluster's only point 0
// (Rousseeuw 1987). With many points it is that of a part of them, evenly taken.
func silhouette(points [][]float64, weights []float64, labels []int) float64 {
	count := slices.Max(labels) + 1
	step := (len(points) + silhouetteSample - 1) / silhouetteSample
	sizes := make([]float64, count)
	for i := 0; i < len(points); i += step {
		sizes[labels[i]] += weights[i]
	}
	sum, total := 0.0, 0.0
	for i := 0; i < len(points); i += step {
		own := labels[i]
		total += weights[i]
		if sizes[own] <= 1 {
			continue
		}
		means := make([]float64, count)
		for j := 0; j < len(points); j += step {
			means[labels[j]] += weights[j] * distance(points[i], points[j])
		}
		inside, outside := means[own]/(sizes[own]-1), math.Inf(1)
		for c, mean := range means {
			if c != own && sizes[c] > 0 {
				outside = min(outside, mean/sizes[c])
			}
		}
		if widest := max(inside, outside); widest > 0 && !math.IsInf(outside, 1) {
			sum += weights[i] * (outside - inside) / widest
		}
	}
	return sum / total
}

// generator is SplitMix64 (Steele, Lea and Flood 2014).
type generator struct{ state uint64 }

func (g *generator) uniform() float64 {
	g.state += 0x9e3779b97f4a7c15
	z := g.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// choose picks an index with a chance proportional to its weight.
func (g *generator) choose(weights []float64) int {
	total := 0.0
	for _, weight := range weights {
		total += weight
	}
	left := g.uniform() * total
	last := 0
	for i, weight := range weights {
		if weight <= 0 {
			continue
		}
		last = i
		if left -= weight; left < 0 {
			return i
		}
	}
	return last
}
