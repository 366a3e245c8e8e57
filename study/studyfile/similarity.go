package studyfile

import (
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// readSimilarity reads the section: how runs are grouped into workloads, whose best
// system parameters a trial reuses.
func readSimilarity(s tree.Section, of definition.Definition) *similarity.Grouping {
	known, ok := s.Part("similarity", "method", "clusters")
	if !ok {
		return nil
	}
	before := len(s.Faults)
	var by similarity.Grouping
	named, namedAt := known.Need("method", strings.Join(similarity.Methods(), ", or "))
	if named != nil {
		s.TextOf(namedAt, named, tree.MaxKey, &by.Name)
		if len(s.Faults) == before && !slices.Contains(similarity.Methods(), by.Name) {
			s.Fault(namedAt, named, "must be %s", strings.Join(similarity.Methods(), " or "))
		}
	}
	clusters, clustersAt := known.Get("clusters")
	switch {
	case clusters == nil, clusters.Kind == tree.Text && clusters.Raw == definition.Automatic:
	default:
		s.WholeOf(clustersAt, clusters, 1, similarity.MaxClusters, &by.Clusters)
	}
	switch {
	case len(s.Faults) > before:
		return nil
	case clusters != nil && by.Name != similarity.MethodKMeans:
		s.Fault(clustersAt, clusters, "is for k-means: average-linkage finds the number itself, so leave it out")
	case of.Tuning() == nil:
		s.Fault(known.Path, known.Node, "is for knobs that are tuned: give one of the system section, such as cpu_threads: auto, or leave it out")
	}
	return &by
}
