package workload

import "slices"

// shape is how many points there are, in how many dimensions.
type shape struct{ count, dimensions int }

var (
	// 1 MiB, which the second cache of a core holds or nearly so.
	cachedPoints = shape{8192, 32}
	// 64 MiB, a cache line each: most of them are in no cache when they are
	// asked for.
	scatteredPoints = shape{1 << 20, 16}
)

func (s shape) bytes() int64 { return int64(s.count) * int64(s.dimensions) * bytesOfNumber }

func (s shape) make() points { return points{s, numbers(s.count*s.dimensions, 1)} }

type points struct {
	shape
	values []float32
}

func (p points) at(i int) []float32 { return p.values[i*p.dimensions : (i+1)*p.dimensions] }

// sums are what the points that belong to each of the clusters add up to.
type sums struct {
	totals []float32
	counts []int
	// distance is the sum of the squares of the distances.
	distance float64
}

func newSums(clusters, dimensions int) *sums {
	return &sums{totals: make([]float32, clusters*dimensions), counts: make([]int, clusters)}
}

// take adds a point to the cluster whose center is nearest to it.
func (s *sums) take(point, centers []float32) {
	width := len(point)
	nearest, least := 0, float32(0)
	for cluster := range s.counts {
		center := centers[cluster*width : (cluster+1)*width]
		// Four sums at once, so that no addition waits for the one before.
		var a, b, c, d float32
		for j := 0; j+4 <= len(center) && j+4 <= len(point); j += 4 {
			p, q := point[j:j+4:j+4], center[j:j+4:j+4]
			w, x, y, z := p[0]-q[0], p[1]-q[1], p[2]-q[2], p[3]-q[3]
			a, b, c, d = a+w*w, b+x*x, c+y*y, d+z*z
		}
		if distance := a + b + c + d; cluster == 0 || distance < least {
			nearest, least = cluster, distance
		}
	}
	total := s.totals[nearest*width : (nearest+1)*width]
	for j, x := range point {
		total[j] += x
	}
	s.counts[nearest]++
	s.distance += float64(least)
}

func (s *sums) add(other *sums) {
	for j, x := range other.totals {
		s.totals[j] += x
	}
	for cluster, count := range other.counts {
		s.counts[cluster] += count
	}
	s.distance += other.distance
}

// centers are the means; a cluster without a point keeps its center.
func (s *sums) centers(before []float32) []float32 {
	after := slices.Clone(before)
	width := len(before) / len(s.counts)
	for cluster, count := range s.counts {
		for j := range width {
			if count > 0 {
				after[cluster*width+j] = s.totals[cluster*width+j] / float32(count)
			}
		}
	}
	return after
}

// lloyd is k-means by Lloyd's algorithm (IEEE Transactions on Information Theory
// 28, 1982): every round gives all points to their nearest centers, which then
// move to the middle of theirs. The answer is the last round's mean squared
// distance.
func lloyd(p points, clusters, rounds int) func(threads int) float64 {
	return func(threads int) float64 {
		centers := slices.Clone(p.values[:clusters*p.dimensions])
		mean := 0.0
		for range rounds {
			all := each(p.count, threads, clusters, p.dimensions, func(part *sums, first, end int) {
				for i := first; i < end; i++ {
					part.take(p.at(i), centers)
				}
			})
			centers, mean = all.centers(centers), all.distance/float64(p.count)
		}
		return mean
	}
}

// sampled is k-means on points that are drawn at random, as mini-batch k-means
// does (Sculley, WWW 2010), with all draws in one batch: there is little to
// compute for a point, and the next one lies anywhere.
func sampled(p points, clusters, draws int) func(threads int) float64 {
	return func(threads int) float64 {
		centers := slices.Clone(p.values[:clusters*p.dimensions])
		all := each(draws, threads, clusters, p.dimensions, func(part *sums, first, end int) {
			for i := first; i < end; i++ {
				// The same draw for the same number, whichever thread it falls to.
				draw := generator{uint64(i)}
				part.take(p.at(int(draw.next()%uint64(p.count))), centers)
			}
		})
		return all.distance / float64(draws)
	}
}

// each adds up what the threads' parts of the items come to, in their order.
func each(items, threads, clusters, dimensions int, part func(into *sums, first, end int)) *sums {
	parts := make([]*sums, max(1, min(threads, items)))
	split(items, len(parts), func(thread, first, end int) {
		parts[thread] = newSums(clusters, dimensions)
		part(parts[thread], first, end)
	})
	all := newSums(clusters, dimensions)
	for _, one := range parts {
		all.add(one)
	}
	return all
}
