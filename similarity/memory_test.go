package similarity_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"pgregory.net/rapid"
)

func threads(n int64) system.Configuration {
	return system.Configuration{system.CPUThreads: space.Int(n)}
}

// features of a workload: its own levels, give or take what a run differs by.
func features(workload, run int) map[string]float64 {
	f := map[string]float64{}
	for i, name := range []string{"cpu-cycles", "cache-misses", "branch-misses", "dTLB-load-misses", "L1-dcache-load-misses"} {
		f[name+" per million instructions"] = 8 + 2*math.Sin(float64(7*workload+3*i)) + 0.08*math.Sin(float64(11*run+5*i+17*workload))
	}
	return f
}

func record(workload, run int, configurations ...system.Configuration) similarity.Record {
	r := similarity.Record{ID: fmt.Sprintf("%d-run-%04d", workload, run), Machine: "a machine", Updated: time.Unix(int64(run), 0)}
	if configurations == nil {
		configurations = []system.Configuration{threads(1)}
	}
	for _, one := range configurations {
		r.Cells = append(r.Cells, similarity.Cell{Configuration: one, Epochs: 2, Profiles: 3, Features: features(workload, run)})
	}
	return r
}

func memory(options similarity.Options, workloads, runs int) *similarity.Memory {
	m := similarity.NewMemory(options)
	for run := range runs {
		for workload := range workloads {
			m.Put(record(workload, run))
		}
	}
	return m
}

func workloadsOf(records []similarity.Record) string {
	var names []string
	for _, r := range records {
		name, _, _ := strings.Cut(r.ID, "-")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

func TestAProfileMatchesTheRunsOfItsWorkload(t *testing.T) {
	m := memory(similarity.Options{}, 6, 5)
	for workload := range 6 {
		found := m.Match(threads(1), features(workload, 77), "")
		if !found.Similar || workloadsOf(found.Members) != fmt.Sprint(workload) || len(found.Members) != 5 {
			t.Errorf("workload %d: %+v with the members of %s", workload, found, workloadsOf(found.Members))
		}
		if found.Workload == "" || found.Distance > found.Threshold || found.Confidence < 0.5 {
			t.Errorf("workload %d: %+v", workload, found)
		}
	}
}

func TestANewWorkloadIsNotSimilar(t *testing.T) {
	m := memory(similarity.Options{}, 6, 5)
	for workload := 6; workload < 11; workload++ {
		found := m.Match(threads(1), features(workload, 0), "")
		if found.Similar || len(found.Members) > 0 || found.Distance <= found.Threshold || found.Confidence >= 0.5 {
			t.Errorf("workload %d: %+v", workload, found)
		}
	}
}

func TestWhatIsComparedAndWhatIsNot(t *testing.T) {
	partly := features(1, 77)
	delete(partly, "cpu-cycles per million instructions")
	hardly := map[string]float64{"cpu-cycles per million instructions": features(1, 77)["cpu-cycles per million instructions"]}
	broken := features(1, 77)
	broken["cache-misses per million instructions"] = math.NaN()
	more := features(1, 77)
	more["something else"] = 99
	for name, one := range map[string]struct {
		memory        *similarity.Memory
		configuration system.Configuration
		features      map[string]float64
		except        string
		similar       bool
	}{
		"as it is":                          {memory(similarity.Options{}, 3, 3), threads(1), features(1, 77), "", true},
		"another configuration":             {memory(similarity.Options{}, 3, 3), threads(2), features(1, 77), "", false},
		"nothing known":                     {memory(similarity.Options{}, 0, 0), threads(1), features(1, 77), "", false},
		"one record is too few":             {memory(similarity.Options{}, 2, 1), threads(1), features(1, 77), "0-run-0000", false},
		"one other record of it is enough":  {memory(similarity.Options{}, 3, 1), threads(1), features(1, 77), "", true},
		"more are asked for":                {memory(similarity.Options{Minimum: 10}, 3, 3), threads(1), features(1, 77), "", false},
		"only the own record is like it":    {memory(similarity.Options{}, 3, 1), threads(1), features(1, 0), "1-run-0000", false},
		"the own record beside another one": {memory(similarity.Options{}, 3, 2), threads(1), features(1, 0), "1-run-0000", true},
		"a feature is missing":              {memory(similarity.Options{}, 3, 3), threads(1), partly, "", true},
		"a feature is no number":            {memory(similarity.Options{}, 3, 3), threads(1), broken, "", true},
		"a feature that records have not":   {memory(similarity.Options{}, 3, 3), threads(1), more, "", true},
		"most features are missing":         {memory(similarity.Options{}, 3, 3), threads(1), hardly, "", false},
		"no features":                       {memory(similarity.Options{}, 3, 3), threads(1), nil, "", false},
		"the thesis's two clusters":         {memory(similarity.Options{Clusterer: similarity.KMeans{K: 2}}, 2, 5), threads(1), features(1, 77), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			found := one.memory.Match(one.configuration, one.features, one.except)
			if found.Similar != one.similar {
				t.Errorf("similar: %v, %+v", found.Similar, found)
			}
			if slices.ContainsFunc(found.Members, func(r similarity.Record) bool { return r.ID == one.except }) {
				t.Errorf("the own record is among the members")
			}
			if math.IsNaN(found.Distance + found.Threshold + found.Confidence) {
				t.Errorf("%+v", found)
			}
		})
	}
}

// TestAFeatureThatFewRecordsHaveIsNotUsed: it would tell old records from new
// ones, not workloads.
func TestAFeatureThatFewRecordsHaveIsNotUsed(t *testing.T) {
	m := memory(similarity.Options{}, 3, 4)
	odd := record(1, 9)
	odd.Cells[0].Features["gpu"] = 3
	m.Put(odd)
	asked := features(1, 77)
	asked["gpu"] = 90
	if found := m.Match(threads(1), asked, ""); !found.Similar || len(found.Members) != 5 {
		t.Errorf("%+v", found)
	}
}

func TestCellsOfOneConfigurationAreAveragedByTheirProfiles(t *testing.T) {
	m := memory(similarity.Options{}, 2, 4)
	split := record(1, 4)
	low, high := split.Cells[0], split.Cells[0]
	low.Features, high.Features = map[string]float64{}, map[string]float64{}
	for name, x := range split.Cells[0].Features {
		low.Features[name], high.Features[name] = x-3, x+1
	}
	low.Neighbours, low.Profiles, high.Profiles = 1, 1, 3
	split.Cells = []similarity.Cell{low, high}
	m.Put(split)
	if found := m.Match(threads(1), features(1, 77), ""); len(found.Members) != 5 {
		t.Errorf("members: %d, want the record of two cells too", len(found.Members))
	}
}

// TestTheNameOfAWorkloadStays while records come, and its oldest one is there.
func TestTheNameOfAWorkloadStays(t *testing.T) {
	m := memory(similarity.Options{}, 4, 2)
	before := m.Match(threads(1), features(2, 77), "").Workload
	for run := 2; run < 40; run++ {
		for workload := range 6 {
			m.Put(record(workload, run))
		}
		if now := m.Match(threads(1), features(2, 77), "").Workload; now != before {
			t.Fatalf("after %d runs the workload is called %s, before %s", run, now, before)
		}
	}
	if other := m.Match(threads(1), features(3, 77), "").Workload; other == before {
		t.Errorf("two workloads are called %s", other)
	}
}

func TestPutReplaces(t *testing.T) {
	m := memory(similarity.Options{}, 3, 3)
	changed := record(2, 0)
	changed.ID = "1-run-0000"
	m.Put(changed)
	if m.Len() != 9 || len(m.Match(threads(1), features(1, 77), "").Members) != 2 || len(m.Match(threads(1), features(2, 77), "").Members) != 4 {
		t.Errorf("%d records, %d of workload 1 and %d of 2", m.Len(), len(m.Match(threads(1), features(1, 77), "").Members), len(m.Match(threads(1), features(2, 77), "").Members))
	}
}

func TestWhatWasPutIsACopy(t *testing.T) {
	m := memory(similarity.Options{}, 3, 2)
	mine := record(1, 2)
	m.Put(mine)
	mine.Cells[0].Features["cpu-cycles per million instructions"] = 1e9
	if found := m.Match(threads(1), features(1, 77), ""); len(found.Members) != 3 {
		t.Errorf("%d members, want 3", len(found.Members))
	}
}

// TestTheMostCrowdedKindLosesItsOldest, and rare workloads stay.
func TestTheMostCrowdedKindLosesItsOldest(t *testing.T) {
	m := similarity.NewMemory(similarity.Options{Limit: 12})
	m.Put(record(1, 0))
	m.Put(record(1, 1))
	for run := range 40 {
		m.Put(record(0, run))
		m.Match(threads(1), features(0, 77), "")
	}
	var runs []string
	for _, r := range m.Records() {
		runs = append(runs, r.ID)
	}
	if m.Len() != 12 || !slices.Contains(runs, "1-run-0000") || !slices.Contains(runs, "1-run-0001") || !slices.Contains(runs, "0-run-0039") || slices.Contains(runs, "0-run-0029") {
		t.Errorf("%d records: %v", m.Len(), runs)
	}
	if found := m.Match(threads(1), features(0, 77), ""); len(found.Members) != 10 {
		t.Errorf("%d members", len(found.Members))
	}
}

// A record that compares configurations stays where others that do not have to go, as
// one of the runs that are asked for and as one of the records that are kept.
func TestRecordsThatCompareOutliveTheOthers(t *testing.T) {
	m := similarity.NewMemory(similarity.Options{Limit: 30})
	of := func(run int, configurations ...system.Configuration) similarity.Record {
		r := record(1, run, configurations...)
		r.Script = "one script"
		return r
	}
	for run := range 3 {
		m.Put(of(run, threads(1), threads(2)))
	}
	for run := range 100 {
		m.Put(of(10+run, threads(1)))
	}
	m.Put(of(200, threads(1), threads(2)))
	_, script := m.Kin(similarity.Record{ID: "another", Script: "one script"}, 6)
	var ids []string
	for _, r := range script {
		ids = append(ids, r.ID)
	}
	if want := []string{"1-run-0000", "1-run-0001", "1-run-0002", "1-run-0108", "1-run-0109", "1-run-0200"}; m.Len() != 30 || !slices.Equal(ids, want) {
		t.Errorf("of %d records these are kin: %v, want %v", m.Len(), ids, want)
	}
	if _, script = m.Kin(similarity.Record{ID: "another", Script: "one script"}, 2); len(script) != 2 || script[0].ID != "1-run-0002" || script[1].ID != "1-run-0200" {
		t.Errorf("two kin are %v, want the newest two that compare", script)
	}
}

func TestRecordsAreTheOldestFirst(t *testing.T) {
	m := similarity.NewMemory(similarity.Options{})
	for _, run := range []int{5, 1, 4, 2} {
		m.Put(record(0, run))
	}
	same := record(3, 1)
	m.Put(same)
	var ids []string
	for _, r := range m.Records() {
		ids = append(ids, r.ID)
	}
	if want := []string{"0-run-0001", "3-run-0001", "0-run-0002", "0-run-0004", "0-run-0005"}; !slices.Equal(ids, want) {
		t.Errorf("%v, want %v", ids, want)
	}
}

// TestMemoriesWithTheSameHistoryAnswerTheSame, in every bit.
func TestMemoriesWithTheSameHistoryAnswerTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := similarity.NewMemory(similarity.Options{Limit: 15}), similarity.NewMemory(similarity.Options{Limit: 15})
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			workload, run := rapid.IntRange(0, 5).Draw(t, "workload"), rapid.IntRange(0, 20).Draw(t, "run")
			if rapid.Bool().Draw(t, "put") {
				r := record(workload, run)
				if rapid.IntRange(0, 3).Draw(t, "partly") == 0 {
					delete(r.Cells[0].Features, "cpu-cycles per million instructions")
				}
				a.Put(r)
				b.Put(r)
				continue
			}
			x, y := a.Match(threads(1), features(workload, run), ""), b.Match(threads(1), features(workload, run), "")
			if !reflect.DeepEqual(x, y) {
				t.Fatalf("%+v and %+v", x, y)
			}
			if math.IsNaN(x.Distance+x.Threshold) || !(x.Confidence >= 0 && x.Confidence <= 1) || x.Similar != (len(x.Members) > 0) {
				t.Fatalf("%+v", x)
			}
		}
		if !reflect.DeepEqual(a.Records(), b.Records()) || !reflect.DeepEqual(a.Clusters(threads(1)), b.Clusters(threads(1))) {
			t.Fatal("records or clusters differ")
		}
	})
}

func TestDriftIsAnotherProfileThanTheRunsOwn(t *testing.T) {
	for name, m := range map[string]*similarity.Memory{"nothing known": memory(similarity.Options{}, 0, 0), "much known": memory(similarity.Options{}, 5, 5)} {
		t.Run(name, func(t *testing.T) {
			mean := record(1, 3).Cells[0]
			for run := range 20 {
				if m.Drifted(mean, features(1, run)) {
					t.Errorf("run %d of the same workload drifted", run)
				}
			}
			if !m.Drifted(mean, features(2, 3)) {
				t.Error("another workload is not noticed")
			}
			mean.Profiles = 0
			if m.Drifted(mean, features(2, 3)) {
				t.Error("drifted from nothing")
			}
		})
	}
}

func TestClustersAreDrawnInThePlane(t *testing.T) {
	m := memory(similarity.Options{}, 4, 3)
	m.Put(record(0, 3))
	views := m.Clusters(threads(1))
	if len(views) != 4 || views[0].Size != 4 || len(views[0].Points) != 4 || views[0].Workload != m.Match(threads(1), features(0, 77), "").Workload {
		t.Fatalf("%+v", views)
	}
	for i, a := range views {
		if a.Radius <= 0 {
			t.Errorf("%s has the radius %v", a.Workload, a.Radius)
		}
		for _, b := range views[:i] {
			if math.Hypot(a.X-b.X, a.Y-b.Y) < 0.1 {
				t.Errorf("%s and %s are on the same spot", a.Workload, b.Workload)
			}
		}
		for _, p := range a.Points {
			if math.Hypot(a.X-p.X, a.Y-p.Y) > a.Radius {
				t.Errorf("%s is far from %s", p.ID, a.Workload)
			}
		}
	}
	if other := m.Clusters(threads(2)); other != nil {
		t.Errorf("clusters of a configuration without records: %v", other)
	}
}

// TestFeaturesThatSayTheSameCountOnce: twenty copies of a noisy feature would
// otherwise outvote the one that tells the workloads apart.
func TestFeaturesThatSayTheSameCountOnce(t *testing.T) {
	m := similarity.NewMemory(similarity.Options{})
	for run := range 6 {
		for workload := range 6 {
			r := record(workload, run)
			for copies := range 20 {
				r.Cells[0].Features[fmt.Sprintf("z-copy-%02d", copies)] = r.Cells[0].Features["cpu-cycles per million instructions"]
			}
			m.Put(r)
		}
	}
	asked := features(1, 77)
	asked["cache-misses per million instructions"] += 1.5
	for copies := range 20 {
		asked[fmt.Sprintf("z-copy-%02d", copies)] = asked["cpu-cycles per million instructions"]
	}
	if found := m.Match(threads(1), asked, ""); found.Similar {
		t.Errorf("%+v", found)
	}
}

func BenchmarkMatch(b *testing.B) {
	m := memory(similarity.Options{}, 20, 100)
	m.Match(threads(1), features(1, 77), "")
	for b.Loop() {
		m.Match(threads(1), features(1, 77), "")
	}
}

func BenchmarkFit(b *testing.B) {
	for b.Loop() {
		m := memory(similarity.Options{}, 20, 100)
		m.Match(threads(1), features(1, 77), "")
	}
}

// Runs of one script scatter with the load; of another script that is far away they stay
// another workload, and so do those of a script whose files have changed.
func TestRunsOfOneScriptAreOneWorkload(t *testing.T) {
	for script, want := range map[string]int{"": 4, "train.py": 2, "edited.py": 4} {
		memory := similarity.NewMemory(similarity.Options{})
		for i := range 40 {
			r := similarity.Record{ID: fmt.Sprintf("record-%03d", i), Machine: "m", Script: script, Updated: time.Unix(int64(i), 0)}
			clump := float64(i % 4)
			if script == "edited.py" {
				r.Code = fmt.Sprint("version ", i%4)
			}
			if i%4 == 3 {
				clump = 60
				if script != "" {
					r.Script = "other.py"
				}
			}
			features := map[string]float64{}
			for f := range 6 {
				features[fmt.Sprintf("f%d", f)] = 1 + clump*0.25 + 0.001*math.Sin(float64(i*(f+1)))
			}
			r.Cells = []similarity.Cell{{Profiles: 1, Features: features}}
			memory.Put(r)
		}
		names := map[string]bool{}
		for _, one := range memory.Records() {
			found := memory.Match(nil, one.Cells[0].Features, one.ID)
			if !found.Similar {
				t.Errorf("script %q: %s is similar to nothing: %+v", script, one.ID, found)
			}
			names[found.Workload] = true
		}
		if len(names) != want {
			t.Errorf("the runs of script %q are of %d workloads, want %d", script, len(names), want)
		}
	}
}
