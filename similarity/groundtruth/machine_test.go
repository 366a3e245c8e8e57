package groundtruth

import (
	"fmt"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/similarity"
)

// Each method of a study has a copy of the records: many studies with a method each
// must not take the server's memory.
func TestFewGroupingsAreKept(t *testing.T) {
	server := similarity.Grouping{Name: similarity.MethodAverageLinkage}
	m := newMachine(server)
	m.learn(similarity.Record{ID: "record-1", Machine: "x86", Updated: time.Unix(1, 0)})
	last := similarity.Grouping{Name: similarity.MethodKMeans, Clusters: 1}
	for clusters := range similarity.MaxClusters {
		by := similarity.Grouping{Name: similarity.MethodKMeans, Clusters: clusters + 1}
		if m.memory(&by).Len() != 1 || m.memory(&last).Len() != 1 {
			t.Fatalf("%s does not have what was learned", by)
		}
		m.learn(similarity.Record{ID: "record-1", Machine: "x86", Updated: time.Unix(int64(clusters), 0)})
	}
	if len(m.memories) > maxGroupings || m.memories[server] == nil || m.memories[last] == nil {
		t.Errorf("%d groupings are kept: %s", len(m.memories), fmt.Sprint(m.recent))
	}
	if m.memory(&server) != m.memory(nil) {
		t.Error("the server's own method is kept twice")
	}
}
