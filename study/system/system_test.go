package system_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
)

func TestTheGridOfTheCores(t *testing.T) {
	auto := system.Tuned{Name: system.CPUThreads}
	memory := system.Tuned{Name: system.MemoryGiB, Values: []space.Value{space.Int(8), space.Int(4)}}
	for name, one := range map[string]struct {
		tuned    []system.Tuned
		cores    int
		keys     []string
		standard string
	}{
		"powers of two up to the cores":  {[]system.Tuned{auto}, 6, []string{"cpu_threads=1", "cpu_threads=2", "cpu_threads=4", "cpu_threads=6"}, "cpu_threads=6"},
		"a single core":                  {[]system.Tuned{auto}, 1, []string{"cpu_threads=1"}, "cpu_threads=1"},
		"the first value is the default": {[]system.Tuned{memory}, 2, []string{"memory_gib=8", "memory_gib=4"}, "memory_gib=8"},
		"values beyond the machine are left out": {[]system.Tuned{{Name: system.Cores, Values: []space.Value{space.Int(1), space.Int(2), space.Int(64)}}}, 2,
			[]string{"cores=1", "cores=2"}, "cores=2"},
		"a machine smaller than every value": {[]system.Tuned{{Name: system.Cores, Values: []space.Value{space.Int(64)}}}, 2, []string{"cores=2"}, "cores=2"},
		"no more threads than cores": {[]system.Tuned{auto, {Name: system.Cores}}, 2,
			[]string{"cores=1 cpu_threads=1", "cores=2 cpu_threads=1", "cores=2 cpu_threads=2"}, "cores=2 cpu_threads=2"},
		"nothing tuned": {nil, 4, []string{""}, ""},
	} {
		settings := system.Settings{Objective: system.Seconds, Tuned: one.tuned}
		var keys []string
		for _, c := range settings.Grid(nil, one.cores) {
			keys = append(keys, c.Key())
		}
		if !slices.Equal(keys, one.keys) {
			t.Errorf("%s: %q, want %q", name, keys, one.keys)
		}
		if key := settings.Default(nil, one.cores).Key(); key != one.standard {
			t.Errorf("%s: default %q, want %q", name, key, one.standard)
		}
	}
}

func TestConstantsAreInEveryConfiguration(t *testing.T) {
	constants := system.Configuration{"partition": space.String("big")}
	for _, one := range (system.Settings{Tuned: []system.Tuned{{Name: system.CPUThreads}}}).Grid(constants, 4) {
		if one["partition"] != constants["partition"] {
			t.Errorf("%v lacks the constant", one)
		}
	}
	if len(constants) != 1 {
		t.Errorf("the constants were changed: %v", constants)
	}
}

func TestDemandIsTheFewerOfThreadsAndCores(t *testing.T) {
	for _, one := range []struct {
		threads, cores int64
		want           int
	}{{0, 0, 8}, {2, 0, 2}, {0, 4, 4}, {2, 4, 2}, {4, 2, 2}, {64, 0, 8}} {
		c := system.Configuration{}
		if one.threads > 0 {
			c[system.CPUThreads] = space.Int(one.threads)
		}
		if one.cores > 0 {
			c[system.Cores] = space.Int(one.cores)
		}
		if got := c.Demand(8); got != one.want {
			t.Errorf("%v demands %d, want %d", c, got, one.want)
		}
	}
}

func drawSettings(t *rapid.T) system.Settings {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(system.Names()), 0, 5, rapid.ID).Draw(t, "names")
	settings := system.Settings{Objective: system.Seconds}
	for _, name := range names {
		knob, _ := system.Find(name)
		tuned := system.Tuned{Name: name}
		for _, v := range rapid.SliceOfNDistinct(rapid.IntRange(1, 64), 1, 9, rapid.ID).Draw(t, name) {
			if knob.Kind == system.Word {
				tuned.Values = append(tuned.Values, space.String(string(rune('a'+v))))
			} else {
				tuned.Values = append(tuned.Values, space.Int(int64(v)))
			}
		}
		if (name == system.CPUThreads || name == system.Cores) && rapid.Bool().Draw(t, "auto") {
			tuned.Values = nil
		}
		settings.Tuned = append(settings.Tuned, tuned)
	}
	return settings
}

func TestEveryGridIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := drawSettings(t)
		cores := rapid.IntRange(1, 70).Draw(t, "cores")
		grid := settings.Grid(nil, cores)
		if len(grid) == 0 || len(grid) > system.MaxConfigurations {
			t.Fatalf("%d configurations", len(grid))
		}
		keys := map[string]bool{}
		for _, one := range grid {
			if keys[one.Key()] {
				t.Fatalf("%s is there twice", one.Key())
			}
			keys[one.Key()] = true
			if len(one) != len(settings.Tuned) {
				t.Fatalf("%s does not have each of %v", one.Key(), settings.Tuned)
			}
			if demand := one.Demand(cores); demand < 1 || demand > cores {
				t.Fatalf("%s demands %d of %d", one.Key(), demand, cores)
			}
		}
		if standard := settings.Default(nil, cores); !keys[standard.Key()] {
			t.Fatalf("the default %s is not in the grid", standard.Key())
		}
	})
}

func TestTheCatalogueSaysEverythingOfAKnob(t *testing.T) {
	for _, name := range system.Names() {
		knob, ok := system.Find(name)
		if !ok || knob.About == "" || knob.Undo == "" || knob.Kind == system.Word == (knob.High > 0) {
			t.Errorf("%+v", knob)
		}
	}
	if _, ok := system.Find("moon_phase"); ok {
		t.Error("found a knob that is none")
	}
}
