package packed_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/packed"
)

const gigabyte = int64(1) << 30

func job(name string, utilization float64, gigabytes int64) packed.Job {
	return packed.Job{Name: name, Utilization: utilization, MemoryBytes: gigabytes * gigabyte}
}

func gpus(n int) []packed.GPU {
	var list []packed.GPU
	for i := range n {
		list = append(list, packed.GPU{Name: fmt.Sprintf("g%d", i), FreeBytes: 10 * gigabyte})
	}
	return list
}

// said is placements as "job@gpu".
func said(placements []packed.Placement) string {
	var list []string
	for _, one := range placements {
		mark := ""
		if one.Alone {
			mark = "!"
		}
		list = append(list, one.Job+"@"+one.GPU+mark)
	}
	return strings.Join(list, " ")
}

// likes prefers the pairs that are named, "waiting resident".
func likes(pairs ...string) func(waiting, resident string) float64 {
	return func(waiting, resident string) float64 {
		if slices.Contains(pairs, waiting+" "+resident) {
			return 2
		}
		return 1
	}
}

func TestProactive(t *testing.T) {
	apart := func(a, b string) bool { return a == "c" && b == "a" }
	for name, one := range map[string]struct {
		waiting  []packed.Job
		gpus     []packed.GPU
		settings packed.Settings
		want     string
	}{
		"the largest first, small ones fill the gaps": {
			[]packed.Job{job("c", 0.2, 1), job("b", 0.6, 1), job("a", 0.7, 1), job("d", 0.3, 1)}, gpus(2), packed.Settings{}, "a@g0 b@g1 d@g0 c@g1",
		},
		"idle GPUs first": {[]packed.Job{job("a", 0.2, 1), job("b", 0.2, 1)}, gpus(2), packed.Settings{}, "a@g0 b@g1"},
		"three at most": {
			[]packed.Job{job("a", 0.1, 1), job("b", 0.1, 1), job("c", 0.1, 1), job("d", 0.1, 1)}, gpus(1), packed.Settings{}, "a@g0 b@g0 c@g0",
		},
		"two, where that is the bound": {
			[]packed.Job{job("a", 0.1, 1), job("b", 0.1, 1), job("c", 0.1, 1)}, gpus(1), packed.Settings{MostJobs: 2}, "a@g0 b@g0",
		},
		"memory":            {[]packed.Job{job("a", 0.3, 6), job("b", 0.3, 6), job("c", 0.3, 4)}, gpus(1), packed.Settings{}, "a@g0 c@g0"},
		"a half and a half": {[]packed.Job{job("a", 0.5, 1), job("b", 0.5, 1)}, gpus(1), packed.Settings{}, "a@g0 b@g0"},
		"above one where that is asked for": {
			[]packed.Job{job("a", 0.9, 1), job("b", 0.5, 1)}, gpus(1), packed.Settings{MostUtilization: 1.5}, "a@g0 b@g0",
		},
		"alone above the bound": {[]packed.Job{job("a", 0.9, 1)}, gpus(1), packed.Settings{MostUtilization: 0.8}, "a@g0"},
		"a pair that is refused": {
			[]packed.Job{job("a", 0.3, 1), job("b", 0.2, 1), job("c", 0.1, 1)}, gpus(1), packed.Settings{Refuses: apart}, "a@g0 b@g0",
		},
		"nothing is known of it: alone, and nothing joins": {
			[]packed.Job{job("a", math.NaN(), 1), job("b", 0.1, 1)}, gpus(1), packed.Settings{}, "a@g0!",
		},
		"a need that is not known": {[]packed.Job{job("a", 0.2, 0), job("b", 0.1, 1)}, gpus(1), packed.Settings{}, "a@g0!"},
		"the best companion": {
			[]packed.Job{job("a", 0.7, 1), job("b", 0.6, 1), job("c", 0.2, 1), job("d", 0.1, 1)}, gpus(2), packed.Settings{Prefers: likes("c b", "d a")}, "a@g0 b@g1 c@g1 d@g0",
		},
		"the worst companion counts": {
			[]packed.Job{job("a", 0.3, 1), job("b", 0.25, 1), job("c", 0.2, 1), job("d", 0.1, 1)}, gpus(2),
			packed.Settings{Prefers: likes("c a", "d a", "d b")}, "a@g0 b@g1 c@g0 d@g1",
		},
		"beside what runs": {
			[]packed.Job{job("a", 0.5, 1), job("b", 0.3, 1)},
			[]packed.GPU{{Name: "g", Jobs: 1, Utilization: 0.6, FreeBytes: gigabyte}}, packed.Settings{}, "b@g",
		},
		"not beside what is observed": {
			[]packed.Job{job("a", 0.1, 1)}, []packed.GPU{{Name: "g", Jobs: 1, FreeBytes: gigabyte, Closed: true}}, packed.Settings{}, "",
		},
		"too large for any": {[]packed.Job{job("a", 0.1, 11)}, gpus(2), packed.Settings{}, ""},
		"nothing":           {nil, nil, packed.Settings{}, ""},
	} {
		if got := said(packed.Proactive(one.waiting, one.gpus, one.settings)); got != one.want {
			t.Errorf("%s: %q, want %q", name, got, one.want)
		}
	}
}

// drawn is a random site.
func drawn(random *rand.Rand) (waiting []packed.Job, site []packed.GPU, settings packed.Settings) {
	for i := range 1 + random.IntN(30) {
		one := job(fmt.Sprintf("j%d", i), random.Float64(), 1+random.Int64N(8))
		switch random.IntN(10) {
		case 0:
			one.Utilization = []float64{math.NaN(), -1, 2, math.Inf(1)}[random.IntN(4)]
		case 1:
			one.MemoryBytes = 0
		}
		waiting = append(waiting, one)
	}
	for i := range 1 + random.IntN(8) {
		gpu := packed.GPU{Name: fmt.Sprintf("g%d", i), FreeBytes: 12 * gigabyte, Closed: random.IntN(8) == 0}
		for k := range random.IntN(3) {
			gpu.Jobs++
			gpu.Utilization += 0.3
			gpu.FreeBytes -= 2 * gigabyte
			gpu.Residents = append(gpu.Residents, fmt.Sprintf("r%d-%d", i, k))
		}
		site = append(site, gpu)
	}
	settings = packed.Settings{MostJobs: random.IntN(4), MostUtilization: []float64{0, 0.7, 1.3}[random.IntN(3)]}
	if random.IntN(2) == 0 {
		settings.Refuses = func(a, b string) bool { return (len(a)+len(b))%2 == 1 }
	}
	if random.IntN(2) == 0 {
		settings.Prefers = func(a, b string) float64 { return float64(len(a) - len(b)) }
	}
	return waiting, site, settings
}

// TestWhatSharesAGPUFits holds the package's invariant for random sites,
// whatever is told of the jobs.
func TestWhatSharesAGPUFits(t *testing.T) {
	for seed := range uint64(2000) {
		waiting, site, settings := drawn(rand.New(rand.NewPCG(seed, 1)))
		if fault := check(waiting, site, settings, packed.Proactive(waiting, site, settings)); fault != "" {
			t.Fatalf("seed %d: %s", seed, fault)
		}
	}
}

func check(waiting []packed.Job, site []packed.GPU, settings packed.Settings, placed []packed.Placement) string {
	jobs := map[string]packed.Job{}
	for _, one := range waiting {
		jobs[one.Name] = one
	}
	most, bound := settings.MostJobs, settings.MostUtilization
	if most == 0 {
		most = 3
	}
	if bound == 0 {
		bound = 1
	}
	for _, gpu := range site {
		closed := gpu.Closed
		for _, one := range placed {
			if one.GPU != gpu.Name {
				continue
			}
			j, waits := jobs[one.Job]
			if !waits {
				return one.Job + " was placed twice, or does not wait"
			}
			delete(jobs, one.Job)
			unknown := !(j.Utilization >= 0 && j.Utilization <= 1) || j.MemoryBytes <= 0
			switch {
			case closed:
				return one.Job + " joins what must be alone on " + gpu.Name
			case unknown && gpu.Jobs > 0:
				return one.Job + ", of which nothing is known, is not alone"
			case j.MemoryBytes > gpu.FreeBytes:
				return one.Job + " has not the memory that it needs"
			case gpu.Jobs > 0 && gpu.Utilization+j.Utilization > bound+1e-6:
				return fmt.Sprintf("%s makes it %g of %g", one.Job, gpu.Utilization+j.Utilization, bound)
			case gpu.Jobs > 0 && gpu.Jobs+1 > most:
				return fmt.Sprintf("%d jobs on %s", gpu.Jobs+1, gpu.Name)
			case settings.Refuses != nil && slices.ContainsFunc(gpu.Residents, func(r string) bool { return settings.Refuses(one.Job, r) }):
				return one.Job + " is beside what it must not be with"
			}
			gpu.Jobs++
			gpu.FreeBytes -= max(j.MemoryBytes, 0)
			gpu.Residents = append(slices.Clone(gpu.Residents), one.Job)
			if unknown {
				gpu.Utilization++
			} else {
				gpu.Utilization += j.Utilization
			}
			closed = one.Alone
		}
	}
	return ""
}

// TestNothingWaitsThatFitsAlone holds that an idle GPU stays idle only when no
// waiting job has room on it, and that what is given is left as it was.
func TestNothingWaitsThatFitsAlone(t *testing.T) {
	for seed := range uint64(1000) {
		waiting, site, settings := drawn(rand.New(rand.NewPCG(seed, 2)))
		before := fmt.Sprint(waiting, site)
		placed := packed.Proactive(waiting, site, settings)
		if fmt.Sprint(waiting, site) != before {
			t.Fatalf("seed %d: what was given was changed", seed)
		}
		for _, gpu := range site {
			idle := gpu.Jobs == 0 && !gpu.Closed && !slices.ContainsFunc(placed, func(p packed.Placement) bool { return p.GPU == gpu.Name })
			for _, one := range waiting {
				starts := slices.ContainsFunc(placed, func(p packed.Placement) bool { return p.Job == one.Name })
				if idle && !starts && one.MemoryBytes <= gpu.FreeBytes {
					t.Fatalf("seed %d: %s waits while %s is idle", seed, one.Name, gpu.Name)
				}
			}
		}
	}
}

func ExampleProactive() {
	waiting := []packed.Job{
		{Name: "lstm", Utilization: 0.2, MemoryBytes: 2 << 30},
		{Name: "resnet-50", Utilization: 0.75, MemoryBytes: 6 << 30},
	}
	gpus := []packed.GPU{{Name: "gpu-0", FreeBytes: 10 << 30}}
	for _, one := range packed.Proactive(waiting, gpus, packed.Settings{}) {
		fmt.Println(one.Job, "on", one.GPU)
	}
	// Output:
	// resnet-50 on gpu-0
	// lstm on gpu-0
}
