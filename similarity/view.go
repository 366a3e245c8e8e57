package similarity

import (
	"maps"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/system"
)

// ClusterView is a known workload under one configuration, drawn in the plane in
// which the records differ most (their first two principal components).
// Distances in the plane are at most those that Match compares.
type ClusterView struct {
	Workload string `json:"workload"`
	Size     int    `json:"size"`
	// X and Y are the centroid's, Radius is the distance to it, in all
	// dimensions, within which a profile is similar.
	X      float64     `json:"x"`
	Y      float64     `json:"y"`
	Radius float64     `json:"radius"`
	Points []PointView `json:"points"`
}

// PointView is a record in the plane.
type PointView struct {
	ID string  `json:"id"`
	X  float64 `json:"x"`
	Y  float64 `json:"y"`
}

// Clusters are the workloads known under a configuration, those with most
// records first. Records that came since they were clustered and are like none
// of them are not shown.
func (m *Memory) Clusters(configuration system.Configuration) []ClusterView {
	known := m.model(configuration.Key())
	var points [][]float64
	for _, id := range slices.Sorted(maps.Keys(known.points)) {
		if !slices.ContainsFunc(known.points[id], math.IsNaN) {
			points = append(points, known.points[id])
		}
	}
	if len(points) == 0 {
		return nil
	}
	plane := newPlane(points)
	views := make([]ClusterView, len(known.clusters))
	for i, c := range known.clusters {
		views[i] = ClusterView{Workload: c.name, Radius: c.threshold()}
		views[i].X, views[i].Y = plane.place(c.centroid)
	}
	for _, r := range m.inOrder(maps.Keys(known.labels)) {
		label, point := known.labels[r.ID], known.points[r.ID]
		if label == unplaced || slices.ContainsFunc(point, math.IsNaN) {
			continue
		}
		x, y := plane.place(point)
		views[label].Points = append(views[label].Points, PointView{r.ID, x, y})
		views[label].Size++
	}
	views = slices.DeleteFunc(views, func(v ClusterView) bool { return v.Size == 0 })
	slices.SortStableFunc(views, func(a, b ClusterView) int { return b.Size - a.Size })
	return views
}

// plane is spanned by two principal components around the mean.
type plane struct{ mean, first, second []float64 }

func newPlane(points [][]float64) plane {
	size := len(points[0])
	p := plane{mean: make([]float64, size)}
	for _, point := range points {
		for i, x := range point {
			p.mean[i] += x / float64(len(points))
		}
	}
	covariance := make([][]float64, size)
	for i := range covariance {
		covariance[i] = make([]float64, size)
		for j := range covariance[i] {
			for _, point := range points {
				covariance[i][j] += (point[i] - p.mean[i]) * (point[j] - p.mean[j])
			}
		}
	}
	p.first = principal(covariance)
	deflate(covariance, p.first)
	p.second = principal(covariance)
	return p
}

func (p plane) place(point []float64) (x, y float64) {
	for i := range point {
		x += (point[i] - p.mean[i]) * p.first[i]
		y += (point[i] - p.mean[i]) * p.second[i]
	}
	return x, y
}

// principal is the direction of the largest eigenvalue, by powers of the matrix,
// its largest part positive; 0 where the matrix is.
func principal(matrix [][]float64) []float64 {
	const rounds = 200
	at := 0 // begins with the direction that has most of the variance
	for i := range matrix {
		if matrix[i][i] > matrix[at][at] {
			at = i
		}
	}
	direction := slices.Clone(matrix[at])
	for range rounds {
		if !normalize(direction) {
			return make([]float64, len(matrix))
		}
		next := make([]float64, len(matrix))
		for i, row := range matrix {
			for j, x := range row {
				next[i] += x * direction[j]
			}
		}
		direction = next
	}
	if !normalize(direction) {
		return make([]float64, len(matrix))
	}
	largest := 0
	for i, x := range direction {
		if math.Abs(x) > math.Abs(direction[largest]) {
			largest = i
		}
	}
	if direction[largest] < 0 {
		for i := range direction {
			direction[i] = -direction[i]
		}
	}
	return direction
}

// normalize makes the length 1; it reports false of what has none to speak of.
func normalize(direction []float64) bool {
	length := 0.0
	for _, x := range direction {
		length += x * x
	}
	length = math.Sqrt(length)
	if length < 1e-12 {
		return false
	}
	for i := range direction {
		direction[i] /= length
	}
	return true
}

// deflate takes the direction out of the matrix.
func deflate(matrix [][]float64, direction []float64) {
	value := 0.0
	for i, row := range matrix {
		for j, x := range row {
			value += direction[i] * x * direction[j]
		}
	}
	for i, row := range matrix {
		for j := range row {
			row[j] -= value * direction[i] * direction[j]
		}
	}
}
