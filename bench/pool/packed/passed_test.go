package packed_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/packed"
	"pgregory.net/rapid"
)

func TestWhatWasPassedTooOftenGoesFirst(t *testing.T) {
	passed := func(one packed.Job, times int) packed.Job {
		one.Passed = times
		return one
	}
	shared := func(name string, jobs int) packed.GPU {
		return packed.GPU{Name: name, Jobs: jobs, Utilization: 0.3 * float64(jobs), FreeBytes: 5 * gigabyte, MemoryBytes: 10 * gigabyte}
	}
	big, small, tiny := job("big", 0.9, 1), job("small", 0.2, 1), job("tiny", 0.1, 1)
	for name, one := range map[string]struct {
		waiting  []packed.Job
		gpus     []packed.GPU
		settings packed.Settings
		want     string
	}{
		"not yet":              {[]packed.Job{passed(big, 5), small}, []packed.GPU{shared("a", 1), shared("b", 2)}, packed.Settings{}, "small@a"},
		"a GPU is kept":        {[]packed.Job{passed(big, 6), small}, []packed.GPU{shared("a", 1), shared("b", 2)}, packed.Settings{}, "small@b"},
		"and no other":         {[]packed.Job{passed(big, 6), small, tiny}, []packed.GPU{shared("a", 2), shared("b", 1)}, packed.Settings{}, "small@a"},
		"only one":             {[]packed.Job{passed(big, 6), passed(job("huge", 1, 1), 7), small}, []packed.GPU{shared("a", 1), shared("b", 1)}, packed.Settings{}, "small@b"},
		"not one too small":    {[]packed.Job{passed(job("big", 0.9, 12), 6), small}, []packed.GPU{shared("a", 1), {Name: "b", Jobs: 2, Utilization: 0.6, FreeBytes: 5 * gigabyte, MemoryBytes: 16 * gigabyte}}, packed.Settings{}, "small@a"},
		"a small one first":    {[]packed.Job{big, passed(small, 3)}, gpus(1), packed.Settings{}, "small@g0"},
		"as in the paper":      {[]packed.Job{big, passed(small, 3)}, gpus(1), packed.Settings{MostPassed: -1}, "big@g0"},
		"a bound of one's own": {[]packed.Job{big, passed(small, 1)}, gpus(1), packed.Settings{MostPassed: 1}, "small@g0"},
		"never passed":         {[]packed.Job{big, small}, gpus(0), packed.Settings{}, ""},
	} {
		if got := said(packed.Proactive(one.waiting, one.gpus, one.settings)); got != one.want {
			t.Errorf("%s: %q, want %q", name, got, one.want)
		}
	}
}

// house is GPUs on which jobs run for a number of rounds each, and what waits.
type house struct {
	gpus    []packed.GPU
	running map[string]resident
	waiting []packed.Job
	came    map[string]int
	rounds  map[string]int
}

type resident struct {
	job  packed.Job
	gpu  int
	ends int
}

// round ends what has run for long enough, and starts what packing places. It says
// what started.
func (h *house) round(now int, settings packed.Settings) (started []string) {
	for name, one := range h.running {
		if one.ends <= now {
			gpu := &h.gpus[one.gpu]
			gpu.Jobs--
			gpu.Utilization -= one.job.Utilization
			gpu.FreeBytes += one.job.MemoryBytes
			if gpu.Jobs == 0 {
				gpu.Utilization = 0
			}
			delete(h.running, name)
		}
	}
	for _, one := range packed.Proactive(h.waiting, h.gpus, settings) {
		at := slices.IndexFunc(h.gpus, func(g packed.GPU) bool { return g.Name == one.GPU })
		place := slices.IndexFunc(h.waiting, func(j packed.Job) bool { return j.Name == one.Job })
		job := h.waiting[place]
		h.waiting = slices.Delete(h.waiting, place, place+1)
		h.running[job.Name] = resident{job, at, now + h.rounds[job.Name]}
		gpu := &h.gpus[at]
		gpu.Jobs++
		gpu.Utilization += job.Utilization
		gpu.FreeBytes -= job.MemoryBytes
		for i := range h.waiting {
			if h.came[h.waiting[i].Name] < h.came[job.Name] {
				h.waiting[i].Passed++
			}
		}
		started = append(started, job.Name)
	}
	return started
}

// crowded is a queue with as many new jobs each round as keep every GPU full, and one
// that is watched.
type crowded struct {
	gpus    int
	watched packed.Job
	others  []packed.Job
	length  []int // rounds that the others run for, in turn
}

// starts plays so many rounds and says in which the watched job starts, or -1.
func (c crowded) starts(settings packed.Settings, rounds int) int {
	h := &house{gpus: gpus(c.gpus), running: map[string]resident{}, came: map[string]int{"watched": 10}, rounds: map[string]int{"watched": 1}}
	for now := range rounds {
		for len(h.waiting) < 3*c.gpus+1 {
			one := c.others[len(h.came)%len(c.others)]
			one.Name = fmt.Sprint(len(h.came))
			h.came[one.Name], h.rounds[one.Name] = len(h.came), c.length[len(h.came)%len(c.length)]
			h.waiting = append(h.waiting, one)
		}
		if now == 1 {
			h.came["watched"] = len(h.came)
			h.waiting = append(h.waiting, c.watched)
		}
		if slices.Contains(h.round(now, settings), "watched") {
			return now
		}
	}
	return -1
}

// Every job starts, however many come after it, and whatever fits better: as soon as
// it has been passed as often as may be, it waits for those that were so before it and
// for what runs then, and for nothing else.
func TestNoJobWaitsForever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count, longest := rapid.IntRange(1, 4).Draw(t, "GPUs"), rapid.IntRange(1, 6).Draw(t, "rounds")
		c := crowded{gpus: count, watched: job("watched", rapid.Float64Range(0, 1).Draw(t, "utilization"), rapid.Int64Range(1, 10).Draw(t, "memory"))}
		c.others = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) packed.Job {
			return job("", rapid.Float64Range(0, 1).Draw(t, "utilization"), rapid.Int64Range(1, 10).Draw(t, "memory"))
		}), 1, 8).Draw(t, "others")
		c.length = rapid.SliceOfN(rapid.IntRange(1, longest), 8, 8).Draw(t, "lengths")
		settings := packed.Settings{MostPassed: rapid.IntRange(0, 12).Draw(t, "bound")}
		// At most so many were there before it, or have passed it; each of them, one after
		// the other, waits in the worst case for three others that go on for as long as any.
		before := 3*count + 1 + max(settings.Passes(count), 1)
		bound := 2 + (before+1)*3*(longest+1)
		if at := c.starts(settings, bound+1); at < 0 {
			t.Fatalf("with %+v it does not start in %d rounds", settings, bound)
		}
	})
	// Without a bound one that needs a whole GPU starves.
	c := crowded{gpus: 1, watched: job("watched", 1, 10), others: []packed.Job{job("", 0.3, 3)}, length: []int{1, 2, 3}}
	if at := c.starts(packed.Settings{MostPassed: -1}, 500); at >= 0 {
		t.Errorf("without a bound it starts in round %d: this shows nothing", at)
	}
	if at := c.starts(packed.Settings{MostPassed: 12}, 500); at < 0 {
		t.Error("with a bound it does not start either")
	}
}
