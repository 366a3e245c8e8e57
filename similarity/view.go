package similarity

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

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

// plane is spanned by two principal components around the mean, the largest part of
// each positive.
type plane struct{ mean, first, second []float64 }

func newPlane(points [][]float64) plane {
	size := len(points[0])
	p := plane{make([]float64, size), make([]float64, size), make([]float64, size)}
	all := mat.NewDense(len(points), size, nil)
	for i, point := range points {
		all.SetRow(i, point)
		floats.AddScaled(p.mean, 1/float64(len(points)), point)
	}
	var components stat.PC
	if !components.PrincipalComponents(all, nil) {
		return p
	}
	var directions mat.Dense
	components.VectorsTo(&directions)
	for c, into := range [][]float64{p.first, p.second} {
		if c < len(components.VarsTo(nil)) && components.VarsTo(nil)[c] > 1e-24 {
			mat.Col(into, c, &directions)
			if floats.Max(into) < -floats.Min(into) {
				floats.Scale(-1, into)
			}
		}
	}
	return p
}

func (p plane) place(point []float64) (x, y float64) {
	for i := range point {
		x += (point[i] - p.mean[i]) * p.first[i]
		y += (point[i] - p.mean[i]) * p.second[i]
	}
	return x, y
}
