package similarity

import (
	"maps"
	"math"
	"slices"
)

const (
	// presence is the part of the records that must have a feature.
	presence = 0.8
	// alike is the correlation beyond which one of two features is left out.
	alike = 0.98
	// evidence is how many workloads must be known before features are left
	// out as alike: of two workloads any two features are.
	evidence = 4
	// belief is how many records the expected spreads are worth, and leeway by
	// what factor the records' own may differ from them.
	belief = 30
	leeway = 3
)

// scaling makes points of features. Every feature is divided by what it differs
// among runs of one workload, so that chance counts the same in all of them,
// multiplied by the root of its weight, and divided by a number that makes two
// such runs about 1 apart.
type scaling struct {
	names   []string
	spreads []float64
	// constant features are the same in all records. They tell what is new, and
	// nothing of how far apart two runs are.
	constant []bool
}

// newScaling uses the features that most of the records have.
func newScaling(all []map[string]float64) scaling {
	counts := map[string]int{}
	for _, features := range all {
		for name := range features {
			counts[name]++
		}
	}
	var s scaling
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if float64(counts[name]) >= presence*float64(len(all)) {
			s.names = append(s.names, name)
			s.spreads = append(s.spreads, ruleFor(name).spread)
			s.constant = append(s.constant, constant(all, name))
		}
	}
	return s
}

// constant says that a feature differs by less than chance does.
func constant(all []map[string]float64, name string) bool {
	least, most := math.Inf(1), math.Inf(-1)
	for _, features := range all {
		if x, has := features[name]; has {
			least, most = min(least, x), max(most, x)
		}
	}
	return most-least < ruleFor(name).spread/leeway
}

// unit is what a feature is divided by.
func (s scaling) unit(i int) float64 {
	total := 0.0
	for j, name := range s.names {
		if !s.constant[j] {
			total += ruleFor(name).weight
		}
	}
	if total == 0 {
		total = 1
	}
	return s.spreads[i] * math.Sqrt(2*total/ruleFor(s.names[i]).weight)
}

// point has NaN for what is missing; few says that too much is to compare.
func (s scaling) point(features map[string]float64) (point []float64, few bool) {
	point = make([]float64, len(s.names))
	missing := 0
	for i, name := range s.names {
		x, has := features[name]
		if !has || !finite(x) {
			x = math.NaN()
			missing++
		}
		point[i] = x / s.unit(i)
	}
	return point, len(point) == 0 || 2*missing > len(point)
}

// points of all, with what is missing taken from the nearest one that has it.
func (s scaling) points(all []map[string]float64) [][]float64 {
	var points [][]float64
	for _, features := range all {
		point, _ := s.point(features)
		points = append(points, point)
	}
	whole := slices.Clone(points)
	for i, point := range points {
		if !slices.ContainsFunc(point, math.IsNaN) {
			continue
		}
		whole[i] = slices.Clone(point)
		for j := range point {
			if math.IsNaN(point[j]) {
				whole[i][j] = borrowed(points, point, j)
			}
		}
	}
	return whole
}

// borrowed is coordinate j of the nearest points that have it, the mean where
// several are as near.
func borrowed(points [][]float64, point []float64, j int) float64 {
	least, sum, count := math.Inf(1), 0.0, 0.0
	for _, other := range points {
		if math.IsNaN(other[j]) {
			continue
		}
		d := partialDistance(point, other)
		if d < least {
			least, sum, count = d, 0, 0
		}
		if d == least {
			sum, count = sum+other[j], count+1
		}
	}
	if count == 0 {
		return 0
	}
	return sum / count
}

// partialDistance is the squared distance over what both have, as if the rest
// differed as much. It is infinite where they have nothing in common.
func partialDistance(a, b []float64) float64 {
	sum, shared := 0.0, 0
	for i := range a {
		if d := a[i] - b[i]; !math.IsNaN(d) {
			sum += d * d
			shared++
		}
	}
	if shared == 0 {
		return math.Inf(1)
	}
	return sum * float64(len(a)) / float64(shared)
}

// learned has the spreads within the clusters of the points, drawn to what was
// expected where there are few records, and without features that say the same
// as another one.
func (s scaling) learned(points [][]float64, c Clustering) scaling {
	inside := make([][]float64, len(points)) // differences to the workload's mean
	for i, point := range points {
		inside[i] = make([]float64, len(point))
		for j := range point {
			inside[i][j] = point[j] - c.Centroids[c.Labels[i]][j]
		}
	}
	freedom := float64(len(points) - len(c.Centroids))
	next := scaling{constant: s.constant}
	for j, name := range s.names {
		expected := ruleFor(name).spread
		sum := 0.0
		for i := range inside {
			sum += inside[i][j] * inside[i][j]
		}
		sum *= s.unit(j) * s.unit(j)
		spread := math.Sqrt((belief*expected*expected + sum) / (belief + freedom))
		next.names = append(next.names, name)
		next.spreads = append(next.spreads, min(max(spread, expected/leeway), expected*leeway))
	}
	if len(c.Centroids) < evidence {
		return next
	}
	return next.without(redundant(points, inside))
}

func (s scaling) without(dropped []bool) scaling {
	var left scaling
	for j, name := range s.names {
		if !dropped[j] {
			left.names, left.spreads, left.constant = append(left.names, name), append(left.spreads, s.spreads[j]), append(left.constant, s.constant[j])
		}
	}
	return left
}

// redundant marks the later, by name, of two features that go together over all
// records and within workloads too. Two that differ between the workloads alike,
// but not within them, are two signs of a workload and both stay.
func redundant(points, inside [][]float64) []bool {
	dropped := make([]bool, len(points[0]))
	for a := range dropped {
		for b := a + 1; b < len(dropped) && !dropped[a]; b++ {
			if !dropped[b] && math.Abs(correlation(points, a, b)) > alike && math.Abs(correlation(inside, a, b)) > alike {
				dropped[b] = true
			}
		}
	}
	return dropped
}

// correlation is Pearson's, 0 where a feature is constant.
func correlation(points [][]float64, a, b int) float64 {
	n := float64(len(points))
	meanA, meanB := 0.0, 0.0
	for _, point := range points {
		meanA, meanB = meanA+point[a]/n, meanB+point[b]/n
	}
	ab, aa, bb := 0.0, 0.0, 0.0
	for _, point := range points {
		da, db := point[a]-meanA, point[b]-meanB
		ab, aa, bb = ab+da*db, aa+da*da, bb+db*db
	}
	if scale := math.Sqrt(aa * bb); scale > 0 {
		return ab / scale
	}
	return 0
}

func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }
