package definition

import (
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/similarity"
)

// similarity reads the section: how runs are grouped into workloads, whose best
// system parameters a trial reuses.
func (d *decoder) similarity(s section, of System) *similarity.Grouping {
	n, at := s.get("similarity")
	if n == nil {
		return nil
	}
	known, ok := d.section(at, n, "method", "clusters")
	if !ok {
		return nil
	}
	before := len(d.faults)
	var by similarity.Grouping
	named, namedAt := known.need("method", strings.Join(similarity.Methods(), ", or "))
	if named != nil {
		d.textOf(namedAt, named, maxKey, &by.Name)
		if len(d.faults) == before && !slices.Contains(similarity.Methods(), by.Name) {
			d.fault(namedAt, named, "must be %s", strings.Join(similarity.Methods(), " or "))
		}
	}
	clusters, clustersAt := known.get("clusters")
	switch {
	case clusters == nil, clusters.kind == text && clusters.raw == automatic:
	default:
		d.wholeOf(clustersAt, clusters, 1, similarity.MaxClusters, &by.Clusters)
	}
	switch {
	case len(d.faults) > before:
		return nil
	case clusters != nil && by.Name != similarity.MethodKMeans:
		d.fault(clustersAt, clusters, "is for k-means: average-linkage finds the number itself, so leave it out")
	case of.Tuning == nil:
		d.fault(at, n, "is for knobs that are tuned: give one of the system section, such as cpu_threads: auto, or leave it out")
	}
	return &by
}
