package packing_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/workers/gpushare/packing"
)

const gigabyte = int64(1) << 30

func job(utilization float64, gigabytes int64) packing.Job {
	return packing.Job{Name: "job", Utilization: utilization, MemoryBytes: gigabytes * gigabyte}
}

func shared(utilization float64, gigabytes int64, residents ...string) packing.GPU {
	return packing.GPU{Utilization: utilization, FreeBytes: gigabytes * gigabyte, Jobs: len(residents), Residents: residents}
}

func TestPlace(t *testing.T) {
	for name, one := range map[string]struct {
		job      packing.Job
		gpus     []packing.GPU
		settings packing.Settings
		want     int // -1: none
	}{
		"an idle one first":      {job(0.2, 1), []packing.GPU{shared(0.1, 5, "a"), shared(0, 5)}, packing.Settings{}, 1},
		"else beside others":     {job(0.2, 1), []packing.GPU{shared(0.9, 5, "a"), shared(0.8, 5, "b"), shared(0, 5, "c")}, packing.Settings{}, 1},
		"a half and a half":      {job(0.5, 1), []packing.GPU{shared(0.5, 5, "a")}, packing.Settings{}, 0},
		"above one if asked for": {job(0.5, 1), []packing.GPU{shared(0.9, 5, "a")}, packing.Settings{MostUtilization: 1.5}, 0},
		"three at most":          {job(0.1, 1), []packing.GPU{shared(0.3, 5, "a", "b", "c"), shared(0.3, 5, "a", "b")}, packing.Settings{}, 1},
		"two if that is said":    {job(0.1, 1), []packing.GPU{shared(0.3, 5, "a", "b"), shared(0.3, 5, "a")}, packing.Settings{MostJobs: 2}, 1},
		"the memory":             {job(0.1, 6), []packing.GPU{shared(0, 5), shared(0.3, 6, "a")}, packing.Settings{}, 1},
		"too large for any":      {job(0.1, 11), []packing.GPU{shared(0, 10), shared(0.3, 10, "a")}, packing.Settings{}, -1},
		"alone above the bound":  {job(0.9, 1), []packing.GPU{shared(0, 5)}, packing.Settings{MostUtilization: 0.8}, 0},
		"unknown: only alone":    {job(math.NaN(), 1), []packing.GPU{shared(0.1, 5, "a")}, packing.Settings{}, -1},
		"a need not known":       {job(0.2, 0), []packing.GPU{shared(0.1, 5, "a"), shared(0, 5)}, packing.Settings{}, 1},
		"not what is observed":   {job(0.1, 1), []packing.GPU{{FreeBytes: gigabyte, Jobs: 1, Closed: true}}, packing.Settings{}, -1},
		"not what is refused": {job(0.1, 1), []packing.GPU{shared(0.1, 5, "a", "b"), shared(0.1, 5, "c")}, packing.Settings{
			Refuses: func(resident string) bool { return resident == "b" },
		}, 1},
		"the best worst companion": {job(0.1, 1), []packing.GPU{shared(0.1, 5, "aaa", "b"), shared(0.1, 5, "cc"), shared(0.1, 5, "dd")}, packing.Settings{
			Prefers: func(resident string) float64 { return float64(len(resident)) },
		}, 1},
		"nothing": {job(0.1, 1), nil, packing.Settings{}, -1},
	} {
		if at, fits := packing.Place(one.job, one.gpus, one.settings); fits != (one.want >= 0) || fits && at != one.want {
			t.Errorf("%s: %d, %v, want %d", name, at, fits, one.want)
		}
	}
}

// TestWhatSharesAGPUFits holds the package's invariant for random GPUs, whatever is told
// of the job.
func TestWhatSharesAGPUFits(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		one := job(random.Float64(), 1+random.Int64N(8))
		if random.IntN(8) == 0 {
			one.Utilization = []float64{math.NaN(), -1, 2, math.Inf(1)}[random.IntN(4)]
		}
		var gpus []packing.GPU
		for range 1 + random.IntN(8) {
			gpu := packing.GPU{FreeBytes: 12 * gigabyte, Closed: random.IntN(8) == 0}
			for k := range random.IntN(4) {
				gpu.Jobs, gpu.Utilization, gpu.FreeBytes, gpu.Residents = gpu.Jobs+1, gpu.Utilization+0.3, gpu.FreeBytes-2*gigabyte, append(gpu.Residents, fmt.Sprint(k))
			}
			gpus = append(gpus, gpu)
		}
		at, fits := packing.Place(one, gpus, packing.Settings{Refuses: func(resident string) bool { return resident == "2" }})
		idle := slices.ContainsFunc(gpus, func(g packing.GPU) bool { return g.Jobs == 0 && !g.Closed && g.FreeBytes >= one.MemoryBytes })
		if !fits {
			if idle {
				t.Fatalf("seed %d: it waits while a GPU is idle", seed)
			}
			continue
		}
		gpu := gpus[at]
		joins := gpu.Jobs > 0
		if gpu.Closed || one.MemoryBytes > gpu.FreeBytes || joins && (idle || !one.Known() || gpu.Utilization+one.Utilization > 1+1e-6 || gpu.Jobs > 2 || slices.Contains(gpu.Residents, "2")) {
			t.Fatalf("seed %d: %+v is put on %+v", seed, one, gpu)
		}
	}
}

func TestAJobThatRanOutOfMemoryComesBack(t *testing.T) {
	one := job(0.5, 4)
	again, err := packing.Resubmit(one, 6*gigabyte, 16*gigabyte)
	if err != nil || again.MemoryBytes != 6*gigabyte*5/4 {
		t.Fatalf("%d bytes, %v", again.MemoryBytes, err)
	}
	for rounds := 0; again.MemoryBytes < 16*gigabyte; rounds++ {
		if again, err = packing.Resubmit(again, again.MemoryBytes, 16*gigabyte); err != nil || rounds > 10 {
			t.Fatalf("after %d more rounds: %v", rounds, err)
		}
	}
	if _, fits := packing.Place(again, []packing.GPU{shared(0.1, 15, "a")}, packing.Settings{}); fits {
		t.Error("with all of the memory as its need it shares a GPU")
	}
	if _, err := packing.Resubmit(again, 16*gigabyte, 16*gigabyte); err == nil || !strings.Contains(err.Error(), "smaller batch") {
		t.Errorf("what can never fit is said: %v", err)
	}
	if _, err := packing.Resubmit(one, -1, 16*gigabyte); err == nil {
		t.Error("a negative amount was taken")
	}
}

func ExamplePlace() {
	gpus := []packing.GPU{{Utilization: 0.75, FreeBytes: 4 << 30, Jobs: 1}, {Utilization: 0.9, FreeBytes: 8 << 30, Jobs: 1}}
	at, _ := packing.Place(packing.Job{Name: "lstm", Utilization: 0.2, MemoryBytes: 2 << 30}, gpus, packing.Settings{})
	fmt.Println("beside the first:", at == 0)
	// Output: beside the first: true
}
