package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
)

func architectureChecks() []check {
	return []check{
		{"an architecture is read as it was written", architectureRoundTrip},
		{"an architecture's later write replaces the earlier one", architectureUpsert},
		{"architectures come the newest first, and the oldest go", architectureBound},
		{"a study is deleted without its architectures", architectureOutlivesStudy},
	}
}

// sampleArchitecture is an architecture in which every field is set.
func sampleArchitecture(key string, seconds int) emu.Architecture {
	return emu.Architecture{
		Key: key, Seen: moment(seconds), ActivationBytes: 1 << 40, StoredBytes: 1 << 41,
		Graph: graph.Graph{
			Name:    "o'brien ☃",
			Inputs:  []graph.Tensor{{Name: "x", Type: graph.Float32, Shape: []int64{1, 3, 8, 8}, Batched: true}},
			Outputs: []graph.Tensor{{Name: "y", Type: graph.Int8, Shape: []int64{}}},
			Operators: []graph.Operator{{
				Name: "c", Kind: "Conv", Class: graph.Convolution, Type: graph.Float16, Inputs: []string{"x"}, Outputs: []string{"y"},
				Operations: 1<<62 + 1, ReadBytes: 2, WrittenBytes: 3, WeightBytes: 4, Parameters: 5, Kernel: []int64{3, 3}, Stride: []int64{1, 2},
				Groups: 1, InChannels: 3, OutChannels: 6, Positions: 64,
			}},
		},
		Runs: []emu.Run{{Machine: "x86", Batch: 8, Threads: 2, Seconds: 0.1, Low: 0.09, High: 0.11, P90: 0.2, P99: 0.3, Repetitions: 20,
			Joules: 5e-324, EnergyMethod: "estimate: test", MemoryBytes: 1 << 20, At: moment(seconds + 1)}},
		Sites: []emu.Site{{Machine: "x86", Processor: "o'neill", Cores: 2, LowestHertz: 1e9, HighestHertz: 2e9, MemoryBytes: 1 << 34,
			MemoryBytesPerSecond: 1e10, Features: []string{"avx2"}}},
	}
}

// meet writes the architectures, in one change.
func (f fixture) meet(t *testing.T, architectures ...emu.Architecture) {
	t.Helper()
	f.apply(t, journal.Change{Architectures: architectures})
}

// wantArchitectures compares the keys of the newest.
func (f fixture) wantArchitectures(t *testing.T, limit int, want ...string) {
	t.Helper()
	list, err := f.store.Architectures(t.Context(), limit)
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{}
	for _, one := range list {
		keys = append(keys, one.Key)
	}
	same(t, fmt.Sprintf("the newest %d architectures", limit), keys, append([]string{}, want...))
}

func architectureRoundTrip(t *testing.T, f fixture) {
	f.wantArchitectures(t, 10)
	_, err := f.store.Architecture(t.Context(), "a1")
	if !problem.Is(err, problem.NotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	written := sampleArchitecture("a1", 1)
	elsewhere := time.FixedZone("", -3*3600)
	moved := written
	moved.Seen, moved.Runs = written.Seen.In(elsewhere), []emu.Run{written.Runs[0]}
	moved.Runs[0].At = written.Runs[0].At.In(elsewhere)
	f.meet(t, moved, emu.Architecture{Key: "a2"})
	read, err := f.store.Architecture(t.Context(), "a1")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the architecture", read, written)
}

func architectureUpsert(t *testing.T, f fixture) {
	f.meet(t, sampleArchitecture("a1", 5), sampleArchitecture("a2", 6))
	again := sampleArchitecture("a1", 7)
	again.Runs = append(again.Runs, emu.Run{Machine: "arm", Batch: 1, Threads: 1, Repetitions: 1, At: moment(8)})
	f.meet(t, again)
	read, err := f.store.Architecture(t.Context(), "a1")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the architecture", read, again)
	f.wantArchitectures(t, 10, "a1", "a2")
	f.wantArchitectures(t, 1, "a1")
	f.wantArchitectures(t, 0)
	f.wantArchitectures(t, -1)

	// What is refused with the rest of its change is not written.
	receipt := pointer(sampleReceipt("key-1"))
	f.apply(t, journal.Change{Receipt: receipt})
	f.refuse(t, journal.Change{Architectures: []emu.Architecture{sampleArchitecture("a3", 9)}, Receipt: receipt}, problem.Conflict)
	f.wantArchitectures(t, 10, "a1", "a2")
}

func architectureBound(t *testing.T, f fixture) {
	numbered := func(number int) emu.Architecture {
		return emu.Architecture{Key: fmt.Sprintf("a%05d", number), Seen: moment(0).Add(time.Duration(number))}
	}
	var many []emu.Architecture
	for number := range journal.MaxArchitectures {
		many = append(many, numbered(number))
	}
	f.meet(t, many...)
	f.meet(t, numbered(journal.MaxArchitectures))
	f.wantArchitectures(t, 2, numbered(journal.MaxArchitectures).Key, numbered(journal.MaxArchitectures-1).Key)
	if list, err := f.store.Architectures(t.Context(), 2*journal.MaxArchitectures); err != nil || len(list) != journal.MaxArchitectures {
		t.Errorf("%d are kept, want %d: %v", len(list), journal.MaxArchitectures, err)
	}
	if _, err := f.store.Architecture(t.Context(), numbered(0).Key); !problem.Is(err, problem.NotFound) {
		t.Errorf("the oldest is still there: %v", err)
	}
}

func architectureOutlivesStudy(t *testing.T, f fixture) {
	one := sampleStudy("s1", "one")
	f.apply(t, journal.Change{Insert: &one, Architectures: []emu.Architecture{sampleArchitecture("a1", 1)}})
	f.apply(t, journal.Change{Delete: "s1"})
	f.wantArchitectures(t, 10, "a1")
}
