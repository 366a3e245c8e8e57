package similarity_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/trial"
	"pgregory.net/rapid"
)

func profile() trial.Profile {
	return trial.Profile{
		Level: "user and kernel mode",
		Events: map[string]trial.Float{
			"task-clock": 2e9, "cpu-clock": 2e9, "msr/tsc": 5e9, "instructions": 4e9, "cpu-cycles": 8e9, "cache-misses": 4e7,
			"page-faults": 2000, "minor-faults": 2000, "context-switches": 400,
		},
		Host: map[string]trial.Float{
			"tree.cpu_user": 1.5, "tree.cpu_system": 0.5, "tree.page_faults_minor": 1990, "tree.context_switches": 390,
			"tree.resident_bytes": 1 << 30, "tree.threads": 4, "tree.disk_read_bytes": 2 << 20,
			"machine.run_queue": 7, "machine.cpu_user": 9,
		},
	}
}

func without(p trial.Profile, names ...string) trial.Profile {
	p.Events, p.Host = maps.Clone(p.Events), maps.Clone(p.Host)
	for _, name := range names {
		delete(p.Events, name)
		delete(p.Host, name)
	}
	return p
}

func changed(p trial.Profile, host map[string]trial.Float, dropped ...string) trial.Profile {
	p = without(p, dropped...)
	maps.Copy(p.Host, host)
	return p
}

func TestFeaturesAreRatesOfTheProcessTree(t *testing.T) {
	shared := map[string]float64{
		"cores busy":                      math.Log1p(2 / 0.05),
		"share of CPU time in the kernel": math.Log1p(0.25 / 0.02),
		"page-faults per CPU second":      math.Log1p(1000. / 100),
		"context-switches per CPU second": math.Log1p(200. / 20),
		"resident_bytes":                  math.Log1p(64),
		"threads":                         math.Log1p(4),
		"disk_read_bytes per CPU second":  math.Log1p(1),
	}
	with := func(more map[string]float64) map[string]float64 {
		all := maps.Clone(shared)
		maps.Copy(all, more)
		return all
	}
	for name, one := range map[string]struct {
		profile trial.Profile
		want    map[string]float64
	}{
		"instructions are counted": {profile(), with(map[string]float64{
			"cpu-cycles per million instructions": math.Log1p(2e6), "cache-misses per million instructions": math.Log1p(1e4),
		})},
		"instructions are not counted": {without(profile(), "instructions"), with(map[string]float64{
			"cpu-cycles per CPU second": math.Log1p(4e6), "cache-misses per CPU second": math.Log1p(2e4),
		})},
		"the host's metrics only": {trial.Profile{Host: profile().Host}, map[string]float64{
			"cores busy": shared["cores busy"], "share of CPU time in the kernel": shared["share of CPU time in the kernel"],
			"page_faults_minor per CPU second": math.Log1p(995. / 100), "context_switches per CPU second": math.Log1p(195. / 20),
			"resident_bytes": shared["resident_bytes"], "threads": shared["threads"], "disk_read_bytes per CPU second": math.Log1p(1),
		}},
		"children that load data": {trial.Profile{Host: map[string]trial.Float{"tree.resident_bytes": 5 << 30, "tree.resident_file_bytes": 2 << 30, "tree.largest_resident_bytes": 1 << 30, "tree.largest_resident_file_bytes": 512 << 20}}, map[string]float64{
			"resident bytes of files": math.Log1p(32), "resident bytes of its own": math.Log1p(32),
		}},
		"waiting and first threads are known": {changed(profile(), map[string]trial.Float{"tree.cpu_waiting": 1, "tree.cpu_first_threads": 0.5, "tree.context_switches_forced": 350, "tree.resident_file_bytes": 512 << 20}, "instructions", "cpu-cycles", "cache-misses"), map[string]float64{
			"cores wanted":                              math.Log1p(3 / 0.05),
			"share of CPU time in first threads":        math.Log1p(0.25 / 0.05),
			"share of CPU time in the kernel":           shared["share of CPU time in the kernel"],
			"voluntary context switches per CPU second": math.Log1p(20. / 20),
			"page-faults per CPU second":                shared["page-faults per CPU second"],
			"resident bytes of files":                   math.Log1p(32), "resident bytes of its own": math.Log1p(32),
			"threads": shared["threads"], "disk_read_bytes per CPU second": math.Log1p(1),
		}},
		"what neighbours do": {trial.Profile{Events: map[string]trial.Float{"task-clock": 1e9, "cpu-migrations": 9, "cgroup-switches": 9, "context-switches": 20}}, map[string]float64{
			"cores busy": math.Log1p(1 / 0.05), "context-switches per CPU second": math.Log1p(1),
		}},
		"a GPU": {trial.Profile{Host: map[string]trial.Float{"gpu.core_utilization": 0.5, "gpu.memory_used_bytes": 256 << 20, "gpu.power_watts": 60, "gpu.pcie_send_bytes_per_second": 1 << 20, "gpu.temperature_celsius": 60, "gpu.core_clock_mhz": 1700}}, map[string]float64{
			"gpu.core_utilization": math.Log1p(10), "gpu.memory_used_bytes": math.Log1p(1), "gpu.power_watts": math.Log1p(3), "gpu.pcie_send_bytes_per_second": math.Log1p(1),
		}},
		"no CPU time": {trial.Profile{Host: map[string]trial.Float{"tree.threads": 4, "tree.cpu_user": 0, "tree.page_faults_minor": 9}}, map[string]float64{"threads": math.Log1p(4)}},
		"nothing":     {trial.Profile{}, map[string]float64{}},
		"what is no number is missing": {
			trial.Profile{Host: map[string]trial.Float{"tree.threads": trial.Float(math.NaN()), "tree.processes": trial.Float(math.Inf(1)), "tree.resident_bytes": -1}},
			map[string]float64{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := similarity.Features(one.profile)
			if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(one.want))) {
				t.Fatalf("got the features %v\nwant %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(one.want)))
			}
			for feature, want := range one.want {
				if math.Abs(got[feature]-want) > 1e-9 {
					t.Errorf("%s is %v, want %v", feature, got[feature], want)
				}
			}
		})
	}
}

// TestFeaturesDoNotDependOnNeighbours: what the machine counts, and half of the
// CPU time going to somebody else, change no rate.
func TestFeaturesDoNotDependOnNeighbours(t *testing.T) {
	alone := changed(profile(), map[string]trial.Float{"tree.cpu_waiting": 0, "tree.cpu_first_threads": 0.5, "tree.context_switches_forced": 0})
	beside := changed(profile(), nil)
	for _, values := range []map[string]trial.Float{beside.Events, beside.Host} {
		for name := range values {
			if name != "tree.resident_bytes" && name != "tree.threads" {
				values[name] /= 2
			}
		}
	}
	maps.Copy(beside.Host, map[string]trial.Float{
		"tree.cpu_waiting": 1, "tree.cpu_first_threads": 0.25, "tree.context_switches_forced": 500, "tree.context_switches": 500 + 195,
		"machine.run_queue": 100, "machine.cpu_user": 100,
	})
	beside.Events["cpu-migrations"], beside.Events["cgroup-switches"], beside.Events["context-switches"] = 100, 50, 695
	a, b := similarity.Features(alone), similarity.Features(beside)
	if len(a) != len(b) {
		t.Errorf("%d features alone, %d beside a neighbour", len(a), len(b))
	}
	for name, x := range a {
		if y, has := b[name]; !has || math.Abs(x-y) > 1e-9 {
			t.Errorf("%s: %v alone, %v beside a neighbour", name, x, y)
		}
	}
}

func TestFeaturesAreNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.MapOf(rapid.SampledFrom([]string{"task-clock", "instructions", "cache-misses", "page-faults", "tree.cpu_user", "tree.cpu_system", "tree.threads"}),
			rapid.Custom(func(t *rapid.T) trial.Float { return trial.Float(rapid.Float64().Draw(t, "value")) }))
		p := trial.Profile{Events: values.Draw(t, "events"), Host: values.Draw(t, "host")}
		for name, x := range similarity.Features(p) {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%s is %v", name, x)
			}
		}
	})
}
