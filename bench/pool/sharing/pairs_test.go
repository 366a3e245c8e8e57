package sharing

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/colocated"
	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// twoPhases is a training of 10 s: 100 small steps in the first 4 s, 12 large
// ones in the rest.
func twoPhases() (series []row) {
	for t := 0.5; t <= 10; t += 0.5 {
		steps, busy := 25*t, 0.4
		if t > 4 {
			steps, busy = 100+2*(t-4), 0.9
		}
		series = append(series, row{t, steps, busy, 200})
	}
	return series
}

func TestCompletionIsTimeAlone(t *testing.T) {
	a, err := newAlone(twoPhases())
	if err != nil {
		t.Fatal(err)
	}
	if a.profile.Seconds != 10 || len(a.profile.Points) != sliced {
		t.Fatalf("%g s, %d points", a.profile.Seconds, len(a.profile.Points))
	}
	first, last := a.profile.Points[0], a.profile.Points[sliced-1]
	if first.Utilization != 0.4 || last.Utilization != 0.9 || math.Abs(first.StepsASecond-25) > 1e-9 || math.Abs(last.StepsASecond-2) > 1e-9 || first.MemoryBytes != 200e6 {
		t.Errorf("%+v and %+v", first, last)
	}
	// At half of the speed: after 8 s the small steps are done, which took 4 of 10 s.
	var slow []row
	for _, one := range twoPhases() {
		slow = append(slow, row{2 * one[0], one[1], one[2] / 2, one[3]})
	}
	for _, one := range a.readings(slow) {
		if math.Abs(one.Completion-one.Seconds/20) > 1e-9 {
			t.Fatalf("after %g of 20 s %g is done", one.Seconds, one.Completion)
		}
	}
	if _, err := newAlone(twoPhases()[:1]); err == nil {
		t.Error("one row is no series")
	}
}

func TestRecordingsAreKept(t *testing.T) {
	folder := t.TempDir()
	model, err := os.ReadFile(filepath.Join("..", "..", "..", "inference_emu", "onnx", "testdata", "lenet5.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "lenet5.onnx"), model, 0o600); err != nil {
		t.Fatal(err)
	}
	var r recording
	graphs := map[string]graph.Graph{}
	for _, line := range []string{
		`{"kind": "machine", "cores": 2, "torch": "1.13", "load": 0.5}`,
		`{"kind": "profile", "batch": 32, "onnx": "lenet5.onnx", "family": "lenet", "architecture": "lenet5", "utilization": 0.6, "memory_bytes": 1000, "step_seconds": 0.01}`,
		`{"kind": "profile", "batch": 32, "onnx": "absent.onnx", "family": "lenet", "architecture": "absent", "utilization": 0.6}`,
		`{"kind": "failed", "what": "a process failed"}`,
		`{"kind": "alone", "workload": "a", "batch": 8, "threads": 1, "counts": [1, 1, 1], "series": [[1, 4, 0.5, 10], [2, 9, 0.5, 10]]}`,
		`{"kind": "pair", "first": "a", "second": "a", "first_series": [[2, 4, 0.3, 10], [4, 9, 0.3, 10]], "second_series": [[2, 4, 0.3, 10], [4, 9, 0.3, 10]]}`,
		`{"kind": "end"}`,
	} {
		if err := r.add([]byte(line), folder, graphs); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	if err := r.add([]byte("half a li"), folder, graphs); err == nil {
		t.Error("what is no JSON was taken")
	}
	path := filepath.Join(folder, "recorded.json")
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	read, err := readRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Profiles) != 1 || len(read.Failed) != 2 || read.Machine.Cores != 2 {
		t.Fatalf("%+v", read)
	}
	if f := read.Profiles[0].Features; f.Convolutions != 2 || f.Batch != 32 || f.ModelBytes == 0 || read.Profiles[0].Utilization != 0.6 {
		t.Errorf("%+v", read.Profiles[0])
	}
	pairs, seconds, err := read.pairs()
	if err != nil || len(pairs) != 1 || !slices.Equal(seconds["a"], []float64{2}) {
		t.Fatalf("%v, %v, %v", pairs, seconds, err)
	}
	truth, err := colocated.OutcomeOf(pairs[0].Pair)
	if err != nil || truth.Jobs[0].Slowdown() != 1 || !(colocated.Limits{}).Refuses(truth) {
		t.Errorf("%+v, %v", truth, err)
	}
	read.Alone = nil
	if _, _, err := read.pairs(); err == nil {
		t.Error("a pair without a run alone was taken")
	}
	if _, err := readRecording(filepath.Join(folder, "nothing")); err == nil {
		t.Error("nothing was read")
	}
}

func TestAWorkloadIsHiddenWithAllOfItsPairs(t *testing.T) {
	pairs := []recordedPair{{names: [2]string{"a", "a"}}, {names: [2]string{"a", "b"}}, {names: [2]string{"b", "c"}}}
	parts := hiddenPairs(pairs, "workloads", 0)
	want := [][]int{{0, 1}, {1, 2}, {2}}
	if !slices.EqualFunc(parts, want, slices.Equal[[]int]) {
		t.Errorf("%v, want %v", parts, want)
	}
	seen := 0
	for _, part := range hiddenPairs(pairs, "pairs", 1) {
		seen += len(part)
	}
	if seen != len(pairs) {
		t.Errorf("%d of %d pairs are hidden once", seen, len(pairs))
	}
}

func TestSharesFollowFromPairs(t *testing.T) {
	truth := map[string]float64{"a": 0.3, "b": 0.8, "c": 0.9}
	g := &gavel{gpu: "v100", kinds: []string{"a", "b", "c"}, alone: map[string]float64{"a": 1, "b": 2, "c": 3}, speed: map[[2]string]float64{}}
	for one, x := range truth {
		for other, y := range truth {
			g.speed[[2]string{one, other}] = 1 / max(1, x+y)
		}
	}
	for kind, share := range g.shares(g.pairs()) {
		if math.Abs(share-truth[kind]) > 0.051 {
			t.Errorf("%s keeps %g busy, want %g", kind, share, truth[kind])
		}
	}
}

// TestSharingBeatsSlots replays a small machine park: jobs that leave most of a
// GPU idle end sooner together, and the utilization grows.
func TestSharingBeatsSlots(t *testing.T) {
	g := &gavel{gpu: "v100", alone: map[string]float64{}, speed: map[[2]string]float64{}}
	for _, kind := range []string{"a", "b", "c", "d"} {
		g.kinds, g.alone[kind] = append(g.kinds, kind), 10
		for _, other := range []string{"a", "b", "c", "d"} {
			g.speed[[2]string{kind, other}] = 0.9
		}
	}
	s, err := g.mix().scene(submitted, 1)
	if err != nil {
		t.Fatal(err)
	}
	var makespan, busy []float64
	for _, way := range s.ways() {
		o, err := s.play(way)
		if err != nil {
			t.Fatal(err)
		}
		if o.Jobs != submitted {
			t.Fatalf("%s: %d jobs ended", way.Name, o.Jobs)
		}
		makespan, busy = append(makespan, o.Makespan), append(busy, o.Utilization)
	}
	for i := 2; i < len(makespan); i++ {
		if !(makespan[i] < 0.9*makespan[0]) || !(busy[i] > 1.1*busy[0]) {
			t.Errorf("way %d: %g s and %g busy, slots %g and %g", i, makespan[i], busy[i], makespan[0], busy[0])
		}
	}
}
