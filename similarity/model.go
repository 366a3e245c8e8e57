package similarity

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
)

const (
	// defaultCut joins what is at most so far apart, in units of what two runs
	// of a workload are.
	defaultCut = 1.4
	// reach is how many times its radius a workload reaches.
	reach = 2.3
	// driftReach is how far, in expected spreads, an epoch may be from the
	// mean of its run.
	driftReach = 2
	// growth is how much the files that are mapped may grow within a run, in
	// logarithms: code is read in when it is used first.
	growth = 0.004
	// usual is the squared distance of a run to its workload's mean where two
	// runs are 1 apart, and weight how many records that is worth against the
	// inertia of the cluster.
	usual  = 0.5
	weight = 4
	// unplaced is the label of what belongs to no cluster.
	unplaced = -1
)

// model is what the records under one configuration look like.
type model struct {
	scaling  scaling
	clusters []cluster
	// points and labels have every record, also those that came since the fit,
	// fitted the points as they were fitted.
	points, fitted map[string][]float64
	labels, home   map[string]int
	fresh          map[string]bool // came or changed since the fit
}

type cluster struct {
	name     string
	centroid []float64
	size     float64
	inertia  float64
}

// fit makes the model of records, the oldest first.
func fit(records []Record, key string, by Clusterer) *model {
	m := &model{points: map[string][]float64{}, fitted: map[string][]float64{}, labels: map[string]int{}, home: map[string]int{}, fresh: map[string]bool{}}
	var all []map[string]float64
	for _, r := range records {
		features := average(r, key)
		all = append(all, features)
	}
	m.scaling = newScaling(all)
	if len(m.scaling.names) == 0 {
		for _, r := range records {
			m.labels[r.ID] = unplaced
		}
		return m
	}
	found := by.Cluster(m.scaling.points(all))
	m.scaling = m.scaling.learned(m.scaling.points(all), found)
	points := m.scaling.points(all)
	found = merged(records, points, by.Cluster(points))
	for _, centroid := range found.Centroids {
		m.clusters = append(m.clusters, cluster{centroid: centroid})
	}
	for i, r := range records {
		c := &m.clusters[found.Labels[i]]
		if c.name == "" {
			c.name = nameOf(r.ID)
		}
		c.size++
		c.inertia += squaredDistance(points[i], c.centroid)
		m.points[r.ID], m.labels[r.ID] = points[i], found.Labels[i]
	}
	m.fitted, m.home = maps.Clone(m.points), maps.Clone(m.labels)
	return m
}

// merged joins the clusters that the runs of one script with the same files are in, as
// long as those are no further apart than runs of a script may be: the profiles of one
// workload scatter with the machine's load and with child processes.
func merged(records []Record, points [][]float64, found Clustering) Clustering {
	labels := slices.Clone(found.Labels)
	for {
		a, b, ok := oneWorkload(records, labels, clustersOf(points, labels))
		if !ok {
			return clustering(points, labels)
		}
		for i, label := range labels {
			if label == b {
				labels[i] = a
			}
		}
	}
}

// oneWorkload finds two clusters with runs of one script that are not too far apart.
func oneWorkload(records []Record, labels []int, clusters map[int]cluster) (a, b int, ok bool) {
	type script struct{ command, code string }
	of := map[script][]int{} // the clusters of each script
	for i, r := range records {
		same := script{r.Script, r.Code}
		if r.Script == "" || slices.Contains(of[same], labels[i]) {
			continue
		}
		for _, other := range of[same] {
			one, two := clusters[other], clusters[labels[i]]
			if math.Sqrt(squaredDistance(one.centroid, two.centroid)) <= scatter*max(one.threshold(), two.threshold()) {
				return other, labels[i], true
			}
		}
		of[same] = append(of[same], labels[i])
	}
	return 0, 0, false
}

func clustersOf(points [][]float64, labels []int) map[int]cluster {
	list := map[int]cluster{}
	for i, label := range labels {
		c, known := list[label]
		if !known {
			c.centroid = make([]float64, len(points[i]))
		}
		c.size++
		for j, x := range points[i] {
			c.centroid[j] += (x - c.centroid[j]) / c.size
		}
		list[label] = c
	}
	for i, label := range labels {
		c := list[label]
		c.inertia += squaredDistance(points[i], c.centroid)
		list[label] = c
	}
	return list
}

// nameOf is a short name that tells nothing.
func nameOf(id string) string {
	h := fnv.New32a()
	h.Write([]byte(id)) //nolint:errcheck // never fails
	return fmt.Sprintf("w%06x", h.Sum32()&0xffffff)
}

func (m *model) stale() bool {
	strange := 0
	for id := range m.fresh {
		if m.labels[id] == unplaced {
			strange++
		}
	}
	known := len(m.labels)
	return len(m.fresh) > known/20 || strange > known/100
}

// changed takes note of a record that came or was replaced.
func (m *model) changed(id string, features map[string]float64) {
	point, few := m.scaling.point(features)
	if before, known := m.points[id]; known && slices.Equal(before, point) {
		return
	}
	m.fresh[id] = true
	m.points[id], m.labels[id] = point, unplaced
	if at, near, ok := m.nearest(point, id); ok && !few && near.distance <= near.threshold {
		m.labels[id] = at
	}
}

func (m *model) forget(id string) {
	delete(m.points, id)
	delete(m.labels, id)
	delete(m.fresh, id)
}

func (m *model) cluster(id string) int {
	if label, known := m.labels[id]; known {
		return label
	}
	return unplaced
}

// without is the cluster as it were without one of its records.
func (m *model) without(at int, id string) cluster {
	c := m.clusters[at]
	point, known := m.fitted[id]
	if !known || m.home[id] != at {
		return c
	}
	if c.size--; c.size <= 0 {
		return cluster{}
	}
	rest := make([]float64, len(c.centroid))
	for i := range rest {
		rest[i] = c.centroid[i] + (c.centroid[i]-point[i])/c.size
	}
	c.inertia = max(0, c.inertia-(c.size+1)/c.size*squaredDistance(point, c.centroid))
	c.centroid = rest
	return c
}

// nearness is how far a point is from a cluster, and how far it may be.
type nearness struct{ distance, threshold float64 }

func (n nearness) ratio() float64 { return n.distance / n.threshold }

// threshold compares with the inertia (Rocha, section 6.3.6), drawn to what is
// usual where the cluster has few members, and widened as their mean is unsure.
func (c cluster) threshold() float64 {
	squared := (weight*usual + c.inertia) / (weight + c.size - 1)
	return reach * math.Sqrt(squared*(1+1/c.size))
}

func (m *model) nearest(point []float64, except string) (at int, best nearness, ok bool) {
	all := m.near(point, except)
	at = unplaced
	for i, one := range all {
		if one.threshold > 0 && (at == unplaced || one.ratio() < best.ratio()) {
			at, best = i, one
		}
	}
	return at, best, at != unplaced
}

// LeastKin is how many records there must be before a profile can be unlike them.
const LeastKin = 3

// kinReach is how many times as far as a member of a workload a profile may be from
// records of the same script, which are thought to be of one workload.
const kinReach = 2

// scatter is how many times as far as a member two clusters of one script may be apart
// to be one workload. Clusters that are tight by chance have small thresholds.
const scatter = 4

// akin compares a profile with the mean of records by their own inertia.
func (m *model) akin(features map[string]float64, records []Record) bool {
	point, few := m.scaling.point(features)
	var points [][]float64
	for _, r := range records {
		if known, has := m.points[r.ID]; has && len(known) == len(point) {
			points = append(points, known)
		}
	}
	if few || len(points) < LeastKin {
		return true
	}
	kin := cluster{centroid: make([]float64, len(point)), size: float64(len(points))}
	for i := range kin.centroid {
		known := 0.0
		for _, one := range points {
			if !math.IsNaN(one[i]) {
				known++
				kin.centroid[i] += (one[i] - kin.centroid[i]) / known
			}
		}
	}
	for _, one := range points {
		kin.inertia += partialDistance(one, kin.centroid)
	}
	return math.Sqrt(partialDistance(point, kin.centroid)) <= kinReach*kin.threshold()
}

// near compares with every cluster; a threshold of 0 is of one without members.
func (m *model) near(point []float64, except string) []nearness {
	list := make([]nearness, len(m.clusters))
	for i := range m.clusters {
		if c := m.without(i, except); c.size > 0 {
			list[i] = nearness{math.Sqrt(partialDistance(point, c.centroid)), c.threshold()}
		}
	}
	return list
}

func (m *model) match(features map[string]float64, except string, minimum int) (Match, int) {
	others := len(m.labels)
	if _, own := m.labels[except]; own {
		others--
	}
	point, few := m.scaling.point(features)
	if others < minimum || few {
		return Match{}, unplaced
	}
	at, best, ok := m.nearest(point, except)
	if !ok {
		return Match{}, unplaced
	}
	return Match{
		Similar: best.distance <= best.threshold, Workload: m.clusters[at].name,
		Distance: best.distance, Threshold: best.threshold, Confidence: confidence(m.near(point, except), best),
	}, at
}

// confidence is the membership in the nearest cluster of noise clustering (Davé
// 1991): all clusters compete, and beyond the threshold there is a cluster of
// what is none.
func confidence(all []nearness, best nearness) float64 {
	const tiny = 1e-6
	share := func(ratio float64) float64 { return 1 / math.Pow(max(ratio, tiny), 4) }
	total := 1.0
	for _, one := range all {
		if one.threshold > 0 {
			total += share(one.ratio())
		}
	}
	return share(best.ratio()) / total
}

// drifted compares in units of the expected differences of one epoch and a mean.
func (m *model) drifted(mean Cell, features map[string]float64) bool {
	spreads := map[string]float64{}
	for i, name := range m.scaling.names {
		spreads[name] = m.scaling.spreads[i]
	}
	sum, shared := 0.0, 0.0
	for _, name := range slices.Sorted(maps.Keys(features)) {
		before, has := mean.Features[name]
		spread, used := spreads[name]
		if len(spreads) == 0 {
			spread, used = ruleFor(name).spread, true
		}
		if name == fileFeature {
			spread = max(spread, growth)
		}
		if d := (features[name] - before) / spread; has && used && finite(d) {
			sum += ruleFor(name).weight * d * d
			shared += ruleFor(name).weight
		}
	}
	return shared > 0 && math.Sqrt(sum/shared/(1+1/float64(mean.Profiles))) > driftReach
}
