package study_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study"
)

var similarTo = regexp.MustCompile(`similar to (\d+) known run`)

// A study's own method of similarity decides which runs its trials are compared
// with: k-means with one cluster takes all of them for one workload, the others
// tell the two workloads apart.
func TestAStudyChoosesItsMethodOfSimilarity(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b := w.box(false)
		small, large := slowWithTwo, fastWithTwo
		small.resident, large.resident = 200<<20, 4<<30
		tuned(w, "first")
		b.train("first", small)
		tuned(w, "second")
		b.train("second", large)
		const trials = 12 // of each study
		alike := trials   // runs of the same workload that are known
		for _, by := range []struct {
			study, section string
			apart          bool
		}{
			{"linkage", "{method: average-linkage}", true},
			{"two", "{method: k-means, clusters: 2}", true},
			{"counted", "{method: k-means, clusters: auto}", true},
			{"one", "{method: k-means, clusters: 1}", false},
		} {
			w.create("name: example", "name: "+by.study+"\nsystem: {cpu_threads: {values: [1, 2]}}\nsimilarity: "+by.section, "min: 0.25, max: 1", "min: 1, max: 1", "trials: 27", "trials: 12")
			b.train(by.study, small)
			alike += trials
			most := 0
			for _, one := range trialsOf(t, w, by.study) {
				if found := similarTo.FindStringSubmatch(one.Setting.Why); found != nil {
					count, err := strconv.Atoi(found[1])
					if err != nil {
						t.Fatal(err)
					}
					most = max(most, count)
				}
			}
			if most == 0 || (most < alike) != by.apart {
				t.Errorf("with %s a trial is similar to up to %d runs, of which %d are of its workload", by.section, most, alike-1)
			}
		}
	})(t)
}

// The server's method is what its ground truth is shown by.
func TestAServerChoosesItsMethodOfSimilarity(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b := w.box(false)
		small, large := slowWithTwo, fastWithTwo
		small.resident, large.resident = 200<<20, 4<<30
		tuned(w, "first")
		b.train("first", small)
		tuned(w, "second")
		b.train("second", large)
		machines, err := w.service.GroundTruthMachines(w.ctx)
		if err != nil || len(machines) != 1 {
			t.Fatalf("%+v, %v", machines, err)
		}
		for by, want := range map[similarity.Method]int{
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
