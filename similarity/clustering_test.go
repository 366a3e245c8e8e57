package similarity_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/similarity"
	"pgregory.net/rapid"
)

func clusterers() map[string]similarity.Clusterer {
	return map[string]similarity.Clusterer{
		"k-means, K=1":          similarity.KMeans{K: 1},
		"k-means, K=2":          similarity.KMeans{K: 2, Seed: 7},
		"k-means, K=5":          similarity.KMeans{K: 5, Restarts: 2},
		"k-means by silhouette": similarity.KMeans{},
		"agglomerative":         similarity.Agglomerative{Cut: 1.5},
		"agglomerative, no cut": similarity.Agglomerative{},
	}
}

func points() *rapid.Generator[[][]float64] {
	return rapid.Custom(func(t *rapid.T) [][]float64 {
		size := rapid.IntRange(1, 4).Draw(t, "dimensions")
		// Few values make ties and duplicates common.
		x := rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(0, 3).Draw(t, "x")) }))
		return rapid.SliceOfN(rapid.SliceOfN(x, size, size), 0, 40).Draw(t, "points")
	})
}

// TestClusteringsAreWhatTheySay: labels, means and their order.
func TestClusteringsAreWhatTheySay(t *testing.T) {
	for name, by := range clusterers() {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			list := points().Draw(t, "points")
			found := by.Cluster(list)
			if len(found.Labels) != len(list) {
				t.Fatalf("%d labels of %d points", len(found.Labels), len(list))
			}
			for cluster, centroid := range found.Centroids {
				mean := make([]float64, len(centroid))
				size := 0.0
				for i, label := range found.Labels {
					if label == cluster {
						size++
						for j, x := range list[i] {
							mean[j] += x
						}
					}
				}
				if size == 0 {
					t.Fatalf("cluster %d has no points", cluster)
				}
				for j := range mean {
					if d := mean[j]/size - centroid[j]; !(math.Abs(d) < 1e-6) {
						t.Fatalf("centroid %v is not the mean of its points", centroid)
					}
				}
			}
			if !slices.IsSortedFunc(found.Centroids, slices.Compare[[]float64]) {
				t.Fatalf("centroids are not in order: %v", found.Centroids)
			}
		}))
	}
}

func TestClusteringsDoNotDependOnTheOrderOfThePoints(t *testing.T) {
	for name, by := range clusterers() {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			list := points().Draw(t, "points")
			var order []int
			for i := range list {
				order = append(order, i)
			}
			order = rapid.Permutation(order).Draw(t, "order")
			var shuffled [][]float64
			for _, at := range order {
				shuffled = append(shuffled, list[at])
			}
			a, b := by.Cluster(list), by.Cluster(shuffled)
			for i, at := range order {
				if a.Labels[at] != b.Labels[i] {
					t.Fatalf("point %v: cluster %d, and shuffled %d", list[at], a.Labels[at], b.Labels[i])
				}
			}
			if !slices.EqualFunc(a.Centroids, b.Centroids, slices.Equal[[]float64]) {
				t.Fatalf("%v, and shuffled %v", a, b)
			}
		}))
	}
}

func TestEqualPointsAreInOneCluster(t *testing.T) {
	for name, by := range clusterers() {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			list := points().Draw(t, "points")
			labels := map[string]int{}
			for i, label := range by.Cluster(list).Labels {
				if before, seen := labels[fmt.Sprint(list[i])]; seen && before != label {
					t.Fatalf("%v is in the clusters %d and %d", list[i], before, label)
				}
				labels[fmt.Sprint(list[i])] = label
			}
		}))
	}
}

// blobs are tight groups of points around corners far from each other.
func blobs(groups, each int) (list [][]float64, groupOf []int) {
	for i := range groups * each {
		group := i % groups
		wobble := func(factor int) float64 { return 0.3 * math.Sin(float64(factor*i)) }
		list = append(list, []float64{10*float64(group&1) + wobble(1), 10*float64(group>>1&1) + wobble(2), 10*float64(group>>2) + wobble(3)})
		groupOf = append(groupOf, group)
	}
	return list, groupOf
}

// agree reports whether both partitions are the same.
func agree(a, b []int) bool {
	for i := range a {
		for j := range i {
			if (a[i] == a[j]) != (b[i] == b[j]) {
				return false
			}
		}
	}
	return true
}

func TestSeparateGroupsAreFound(t *testing.T) {
	for groups := 1; groups <= 8; groups++ {
		list, groupOf := blobs(groups, 12)
		for name, by := range map[string]similarity.Clusterer{
			"k-means":               similarity.KMeans{K: groups},
			"k-means by silhouette": similarity.KMeans{},
			"agglomerative":         similarity.Agglomerative{Cut: 3},
		} {
			t.Run(fmt.Sprintf("%d groups, %s", groups, name), func(t *testing.T) {
				if found := by.Cluster(list); !agree(found.Labels, groupOf) {
					t.Errorf("%d clusters, labels %v", len(found.Centroids), found.Labels)
				}
			})
		}
	}
}

// TestKMeansHasTheLeastInertia compares with all ways to part a few points. The
// points are always the same: on some others no restart finds the least.
func TestKMeansHasTheLeastInertia(t *testing.T) {
	for set := range 20 {
		var list [][]float64
		for i := range 8 {
			list = append(list, []float64{10 * math.Sin(float64(set*31+i*i)), 10 * math.Cos(float64(set*17+i*i*i))})
		}
		found := similarity.KMeans{K: 2, Restarts: 20}.Cluster(list)
		least := math.Inf(1)
		for mask := range 1 << (len(list) - 1) {
			least = min(least, inertiaOf(list, mask))
		}
		if own := inertia(list, found); own > least*1.0000001 {
			t.Errorf("set %d: inertia %v of %v, least %v", set, own, found.Labels, least)
		}
	}
}

// TestKMeansLeavesNoPointWithTheFartherCentroid: what Lloyd's method ends with.
func TestKMeansLeavesNoPointWithTheFartherCentroid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := points().Draw(t, "points")
		found := similarity.KMeans{K: 3, Restarts: 2}.Cluster(list)
		for i, point := range list {
			own := math.Sqrt(squared(point, found.Centroids[found.Labels[i]]))
			for _, centroid := range found.Centroids {
				if other := math.Sqrt(squared(point, centroid)); other < own*(1-1e-9)-1e-9 {
					t.Fatalf("%v is %v from its centroid and %v from %v", point, own, other, centroid)
				}
			}
		}
	})
}

func squared(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return sum
}

// inertia is the sum of the squared distances of points to their centroids.
func inertia(list [][]float64, found similarity.Clustering) (sum float64) {
	for i, label := range found.Labels {
		sum += squared(list[i], found.Centroids[label])
	}
	return sum
}

func inertiaOf(list [][]float64, mask int) float64 {
	total := 0.0
	for side := range 2 {
		var part [][]float64
		for i, point := range list {
			if mask>>i&1 == side {
				part = append(part, point)
			}
		}
		if len(part) > 0 {
			total += inertia(part, similarity.KMeans{K: 1}.Cluster(part))
		}
	}
	return total
}

// TestAgglomerativeJoinsAsTheGreedyMethodDoes compares with the obvious cubic one.
func TestAgglomerativeJoinsAsTheGreedyMethodDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(-10, 10), 2, 2), 1, 25).Draw(t, "points")
		for i := range list { // no ties, which may be joined either way
			list[i][0] += 0.1 * math.Sin(float64(i*i+1))
		}
		cut := rapid.Float64Range(0, 15).Draw(t, "cut")
		if found := (similarity.Agglomerative{Cut: cut}).Cluster(list); !agree(found.Labels, greedy(list, cut)) {
			t.Fatalf("cut %v: %v, greedily %v", cut, found.Labels, greedy(list, cut))
		}
	})
}

func greedy(list [][]float64, cut float64) []int {
	var clusters [][]int
	for i := range list {
		clusters = append(clusters, []int{i})
	}
	apart := func(a, b []int) float64 {
		sum := 0.0
		for _, i := range a {
			for _, j := range b {
				sum += math.Hypot(list[i][0]-list[j][0], list[i][1]-list[j][1])
			}
		}
		return sum / float64(len(a)*len(b))
	}
	for len(clusters) > 1 {
		a, b, least := 0, 0, math.Inf(1)
		for i := range clusters {
			for j := range i {
				if d := apart(clusters[i], clusters[j]); d < least {
					a, b, least = i, j, d
				}
			}
		}
		if least > cut {
			break
		}
		clusters[b] = append(clusters[b], clusters[a]...)
		clusters = slices.Delete(clusters, a, a+1)
	}
	labels := make([]int, len(list))
	for label, members := range clusters {
		for _, i := range members {
			labels[i] = label
		}
	}
	return labels
}
