package study_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
)

// threads is a cell that timed so many epochs of so many seconds.
func threads(number int64, neighbours, epochs int, seconds float64) similarity.Cell {
	return similarity.Cell{
		Configuration: system.Configuration{system.CPUThreads: space.Int(number)},
		Neighbours:    neighbours, Epochs: epochs, LogSeconds: math.Log(seconds),
	}
}

func TestRunsAreComparedAmongEquals(t *testing.T) {
	for name, c := range map[string]struct {
		cells []similarity.Cell
		want  string
	}{
		"nothing":          {nil, "0 configurations, 0 epochs"},
		"warmed up only":   {[]similarity.Cell{threads(1, 0, 0, 1)}, "1 configurations, 0 epochs"},
		"one":              {[]similarity.Cell{threads(2, 0, 3, 4)}, "1 configurations, 3 epochs; of 1 beside 0 cpu_threads=2 takes 4.00, the slowest 4.00"},
		"several":          {[]similarity.Cell{threads(1, 0, 1, 4), threads(2, 0, 2, 2.5), threads(4, 0, 3, 3)}, "3 configurations, 6 epochs; of 3 beside 0 cpu_threads=2 takes 2.50, the slowest 4.00"},
		"one not timed":    {[]similarity.Cell{threads(1, 0, 1, 4), threads(2, 0, 0, 1), threads(4, 0, 3, 3)}, "3 configurations, 4 epochs; of 2 beside 0 cpu_threads=4 takes 3.00, the slowest 4.00"},
		"beside others":    {[]similarity.Cell{threads(1, 0, 1, 1), threads(1, 1, 1, 4), threads(2, 1, 1, 5)}, "2 configurations, 3 epochs; of 2 beside 1 cpu_threads=1 takes 4.00, the slowest 5.00"},
		"as many of both":  {[]similarity.Cell{threads(1, 2, 1, 1), threads(2, 0, 1, 5)}, "2 configurations, 2 epochs; of 1 beside 0 cpu_threads=2 takes 5.00, the slowest 5.00"},
		"two as fast":      {[]similarity.Cell{threads(2, 0, 1, 3), threads(1, 0, 1, 3)}, "2 configurations, 2 epochs; of 2 beside 0 cpu_threads=1 takes 3.00, the slowest 3.00"},
		"the same, beside": {[]similarity.Cell{threads(1, 0, 1, 3), threads(1, 1, 1, 6)}, "1 configurations, 2 epochs; of 1 beside 0 cpu_threads=1 takes 3.00, the slowest 3.00"},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			one := lesson("record-1", "x86", 1)
			one.Cells = c.cells
			w.teach("1 imported, 0 skipped", one)
			page, err := w.service.GroundTruthRuns(w.ctx, "x86", 0, 0)
			if err != nil || len(page.Runs) != 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			run := page.Runs[0]
			got := fmt.Sprintf("%d configurations, %d epochs", run.Configurations, run.Epochs)
			if c := run.Comparison; c != nil {
				got += fmt.Sprintf("; of %d beside %d %s takes %.2f, the slowest %.2f", c.Configurations, c.Neighbours, c.Fastest.Key(), c.Seconds, c.SlowestSeconds)
			}
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		}))
	}
}

func TestRunsComeThePageOfTheNewestFirst(t *testing.T) {
	in(func(t *testing.T, w *world) {
		var records []similarity.Record
		for i := range 150 {
			records = append(records, lesson(fmt.Sprintf("record-%03d", i), "x86", i))
		}
		w.teach("150 imported, 0 skipped", records...)
		for _, c := range []struct {
			limit, offset, count int
			first                string
		}{{0, 0, 100, "record-149"}, {7, 3, 7, "record-146"}, {9999, 0, 150, "record-149"}, {10, 145, 5, "record-004"}, {10, 150, 0, ""}, {10, 9999, 0, ""}, {10, -1, 10, "record-149"}} {
			page, err := w.service.GroundTruthRuns(w.ctx, "x86", c.limit, c.offset)
			if err != nil || page.Total != 150 || len(page.Runs) != c.count || c.count > 0 && page.Runs[0].ID != c.first {
				t.Errorf("%d behind %d: %d of %d, %v", c.limit, c.offset, len(page.Runs), page.Total, err)
			}
		}
	})(t)
}

// TestWorkloadsAreThoseThatTrialsAreComparedWith trains two workloads, looks at
// the groups, and wants a trial's own group among them.
func TestWorkloadsAreThoseThatTrialsAreComparedWith(t *testing.T) {
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
		machine := machines[0].Machine
		names := map[string]bool{}
		first, err := w.service.GroundTruthClusters(w.ctx, machine, "")
		if err != nil || len(first.Configurations) != 2 || first.Configurations[0].Key != first.Configuration.Key() || first.Configurations[0].Runs < first.Configurations[1].Runs {
			t.Fatalf("%+v, %v", first, err)
		}
		for _, one := range first.Configurations {
			found, err := w.service.GroundTruthClusters(w.ctx, machine, one.Key)
			if err != nil || found.Runs != one.Runs || len(found.Workloads) != 2 {
				t.Fatalf("under %s: %+v, %v", one.Key, found, err)
			}
			best := map[string]bool{}
			for _, workload := range found.Workloads {
				names[workload.Workload] = true
				if workload.Size != len(workload.Points) || workload.FastestIn > workload.Compared || workload.Compared > workload.Size {
					t.Errorf("%+v", workload)
				}
				if workload.Compared > 0 {
					best[workload.Fastest.Key()] = true
				}
			}
			if len(best) != 2 { // one is best with one thread, one with two
				t.Errorf("under %s the workloads are best with %v", one.Key, best)
			}
		}
		matched := 0
		for _, study := range []string{"first", "second"} {
			for _, one := range trialsOf(t, w, study) {
				if one.Setting != nil && names[one.Setting.Workload] {
					matched++
				}
			}
		}
		if matched == 0 {
			t.Errorf("no trial was said to be one of %v", names)
		}
		for _, none := range [][2]string{{machine, "cpu_threads=3"}, {"another", ""}, {"another", first.Configuration.Key()}} {
			found, err := w.service.GroundTruthClusters(w.ctx, none[0], none[1])
			if err != nil || found.Runs != 0 || len(found.Workloads) != 0 || found.Configuration != nil {
				t.Errorf("%v: %+v, %v", none, found, err)
			}
		}
	})(t)
}
