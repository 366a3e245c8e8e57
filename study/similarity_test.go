package study_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study"
)

// twoWorkloads trains a study of each of two workloads that are unlike.
func twoWorkloads(w *world) (b *box, small, large workload) {
	b, small, large = w.box(false), slowWithTwo, fastWithTwo
	small.resident, large.resident = 200<<20, 4<<30
	tuned(w, "first")
	b.train("first", small)
	w.create(append(otherScript, "name: example", "name: second\nsystem: {cpu_threads: {values: [1, 2]}}")...)
	b.train("second", large)
	return b, small, large
}

// otherScript makes the example a study of another command, of 12 trials.
var otherScript = []string{"command: [train]", "command: [train, --large]", "min: 0.25, max: 1", "min: 1, max: 1", "trials: 27", "trials: 12"}

// A study's own method of similarity decides what its trials are taken for: k-means
// with one cluster takes all for one workload, the others tell two workloads apart.
func TestAStudyChoosesItsMethodOfSimilarity(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b, small, large := twoWorkloads(w)
		for _, by := range []struct {
			name, section string
			apart         bool
		}{
			{"one", "{method: k-means, clusters: 1}", false},
			{"two", "{method: k-means, clusters: 2}", true},
			{"counted", "{method: k-means, clusters: auto}", true},
			{"linkage", "{method: average-linkage}", true},
		} {
			known := map[string]map[string]bool{} // by study
			for name, work := range map[string]workload{by.name + "-small": small, by.name + "-large": large} {
				// One system configuration: workloads are told apart under each by itself.
				command := "command: [train]"
				if strings.HasSuffix(name, "large") {
					command = "command: [train, --large]"
				}
				w.create("name: example", "name: "+name+"\nsystem: {cpu_threads: {values: [2]}}\nsimilarity: "+by.section, "command: [train]", command, "min: 0.25, max: 1", "min: 1, max: 1", "trials: 27", "trials: 6")
				b.train(name, work)
				known[name] = map[string]bool{}
				for _, one := range trialsOf(t, w, name) {
					if one.Setting != nil && one.Setting.Workload != "" {
						known[name][one.Setting.Workload] = true
					}
				}
			}
			shared := 0
			for workload := range known[by.name+"-small"] {
				if known[by.name+"-large"][workload] {
					shared++
				}
			}
			if len(known[by.name+"-small"]) == 0 || len(known[by.name+"-large"]) == 0 || (shared == 0) != by.apart {
				t.Errorf("with %s the trials are of the workloads %v", by.section, known)
			}
		}
	})(t)
}

// The server's method is what its ground truth is shown by.
func TestAServerChoosesItsMethodOfSimilarity(t *testing.T) {
	in(func(t *testing.T, w *world) {
		twoWorkloads(w)
		machines, err := w.service.GroundTruthMachines(w.ctx)
		if err != nil || len(machines) != 1 {
			t.Fatalf("%+v, %v", machines, err)
		}
		for by, want := range map[similarity.Grouping]int{
			{}: 2, {Name: similarity.MethodAverageLinkage}: 2,
			{Name: similarity.MethodKMeans, Clusters: 1}: 1, {Name: similarity.MethodKMeans, Clusters: 2}: 2, {Name: similarity.MethodKMeans}: 2,
		} {
			service := study.New(w.store, w.logs, study.Options{Now: time.Now, Random: w.random.Uint64, Similarity: by})
			found, err := service.GroundTruthClusters(w.ctx, machines[0].Machine, "")
			if err != nil || len(found.Workloads) != want {
				t.Errorf("by %s: %d workloads, want %d: %v", by, len(found.Workloads), want, err)
			}
		}
	})(t)
}
