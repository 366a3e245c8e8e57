package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestAServerGroupsRunsAsItsFlagSays starts servers with and without --similarity, and
// asks each which workloads it sees in the same records: two that are unlike, or, for
// placebo, one.
func TestAServerGroupsRunsAsItsFlagSays(t *testing.T) {
	t.Parallel()
	records := func(apart float64) string {
		random, list := rand.New(rand.NewPCG(1, 2)), []string{}
		for i := range 16 {
			var features []string
			for n := range 8 { // as profiles vary from run to run, in each feature by itself
				features = append(features, fmt.Sprintf(`"tree.feature_%d":%g`, n, 1+0.01*random.NormFloat64()+float64(i%2*(n%2))*apart))
			}
			list = append(list, fmt.Sprintf(`{"id":"record-%02d","machine":"x86, 2 cores","updated":"2026-01-02T03:04:%02dZ","cells":[{"configuration":{"cores":2},"neighbours":0,"epochs":3,"log_seconds":0.1,"log_joules":2,`+
				`"variance":0,"profiles":4,"features":{%s}}]}`, i, i, strings.Join(features, ",")))
		}
		return `{"version":1,"records":[` + strings.Join(list, ",") + `]}`
	}
	for _, one := range []struct {
		name  string
		flags []string
		apart float64
		want  int
	}{
		{"the default", nil, 4, 2},
		{"k-means with one cluster", []string{"--similarity", "k-means:1"}, 4, 1},
		{"k-means with two", []string{"--similarity", "k-means:2"}, 4, 2},
		{"placebo, the default", nil, 0, 1},
		{"placebo, k-means", []string{"--similarity", "k-means"}, 0, 1},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, one.flags...)
			path := filepath.Join(t.TempDir(), "records.json")
			if err := os.WriteFile(path, []byte(records(one.apart)), 0o600); err != nil {
				t.Fatal(err)
			}
			s.must("ground-truth", "import", path)
			found := read[protocol.GroundTruthClusters](t, s.get("/api/v1/ground-truth/clusters?machine=x86%2C+2+cores"))
			if found.Runs != 16 || len(found.Workloads) != one.want {
				t.Errorf("%d workloads in %d runs, want %d", len(found.Workloads), found.Runs, one.want)
			}
		})
	}
}
