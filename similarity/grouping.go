package similarity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The methods by which records are grouped into workloads.
const (
	// MethodKMeans is the method of PipeTune (Rocha, section 6.3.4).
	MethodKMeans = "k-means"
	// MethodAverageLinkage joins the two nearest groups until they are too far
	// apart; it needs no number of groups.
	MethodAverageLinkage = "average-linkage"
)

// MaxClusters bounds the number of clusters that may be asked for.
const MaxClusters = 64

// Grouping says how records are grouped into workloads. The zero value is average
// linkage, which bench/similarity found best.
type Grouping struct {
	Name string `json:"method,omitempty"`
	// Clusters is the K of k-means; 0: the number with the largest mean silhouette.
	Clusters int `json:"clusters,omitempty"`
}

// Methods are the names that there are.
func Methods() []string { return []string{MethodKMeans, MethodAverageLinkage} }

// Clusterer returns what groups the records.
func (m Grouping) Clusterer() Clusterer {
	if m.Name == MethodKMeans {
		return KMeans{K: m.Clusters}
	}
	return Agglomerative{Cut: defaultCut}
}

// String is the method as a flag of the command line has it, such as k-means:4.
func (m Grouping) String() string {
	switch {
	case m.Name == MethodKMeans && m.Clusters > 0:
		return MethodKMeans + ":" + strconv.Itoa(m.Clusters)
	case m.Name == MethodKMeans:
		return MethodKMeans
	default:
		return MethodAverageLinkage
	}
}

// ParseGrouping reads what String writes.
func ParseGrouping(text string) (Grouping, error) {
	name, count, counted := strings.Cut(text, ":")
	if !slices.Contains(Methods(), name) {
		return Grouping{}, fmt.Errorf("%q is no method of similarity: use %s", text, strings.Join(Methods(), ", or "))
	}
	if !counted {
		return Grouping{Name: name}, nil
	}
	if name != MethodKMeans {
		return Grouping{}, fmt.Errorf("%q: only k-means takes a number of clusters: write %s", text, name)
	}
	if count == "auto" {
		return Grouping{Name: name}, nil
	}
	clusters, err := strconv.Atoi(count)
	if err != nil || clusters < 1 || clusters > MaxClusters {
		return Grouping{}, fmt.Errorf("%q: the number of clusters must be auto, or 1 to %d", text, MaxClusters)
	}
	return Grouping{Name: name, Clusters: clusters}, nil
}
