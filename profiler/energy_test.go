package profiler

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/profiler/proctest"
)

// write puts the files of a fake machine below a new root.
// packages is a machine of two packages with 100 J and 50 J on their counters,
// memory of 10 J, and zones that must not be added.
func packages(t *testing.T) string {
	zone := func(files map[string]string, name, label, microjoules string) {
		files["sys/class/powercap/"+name+"/name"] = label + "\n"
		files["sys/class/powercap/"+name+"/energy_uj"] = microjoules + "\n"
		files["sys/class/powercap/"+name+"/max_energy_range_uj"] = "200000000\n"
	}
	files := map[string]string{"proc/stat": "cpu  1000 0 0 5000 0 0 0 0 0 0\n"}
	zone(files, "intel-rapl:0", "package-0", "100000000")
	zone(files, "intel-rapl:0:0", "core", "60000000")
	zone(files, "intel-rapl:0:1", "dram", "10000000")
	zone(files, "intel-rapl:1", "package-1", "50000000")
	zone(files, "intel-rapl:2", "psys", "900000000")
	zone(files, "intel-rapl-mmio:0", "package-0", "100000000")
	return proctest.Write(t, files)
}

func near(got, want float64) bool { return math.Abs(got-want) < 1e-6 }

func TestRAPLAddsPackagesAndMemory(t *testing.T) {
	root := packages(t)
	meter := OpenMeter(MeterOptions{Root: root, Cores: 4})
	defer meter.Close()
	window := meter.Open(func() float64 { return 0 })
	defer window.Close()
	proctest.Put(t, root, "sys/class/powercap/intel-rapl:0/energy_uj", "103000000")  // + 3 J
	proctest.Put(t, root, "sys/class/powercap/intel-rapl:0:0/energy_uj", "62000000") // a part of the package
	proctest.Put(t, root, "sys/class/powercap/intel-rapl:0:1/energy_uj", "10500000") // + 0.5 J
	proctest.Put(t, root, "sys/class/powercap/intel-rapl:1/energy_uj", "1000000")    // wrapped: + 151 J
	proctest.Put(t, root, "sys/class/powercap/intel-rapl:2/energy_uj", "990000000")  // covers all once more
	energy := window.Lap()
	if !near(energy.Joules, 154.5) || !strings.HasPrefix(energy.Method, "rapl") {
		t.Errorf("got %+v, want 154.5 J by rapl", energy)
	}
	if again := window.Lap(); !near(again.Joules, 0) {
		t.Errorf("nothing was consumed since, got %+v", again)
	}
}

func TestCounterThatWrapsTwiceIsSeenBySampling(t *testing.T) {
	root := packages(t)
	meter := OpenMeter(MeterOptions{Root: root})
	defer meter.Close()
	window := meter.Open(func() float64 { return 0 })
	defer window.Close()
	for range 2 { // each round is a whole range: 200 J
		for _, value := range []string{"190000000", "100000000"} {
			proctest.Put(t, root, "sys/class/powercap/intel-rapl:0/energy_uj", value)
			meter.Sample()
		}
	}
	if energy := window.Lap(); !near(energy.Joules, 400) {
		t.Errorf("got %+v, want 400 J", energy)
	}
}

func TestCounterThatGoesBackIsNotCounted(t *testing.T) {
	root := packages(t)
	proctest.Put(t, root, "sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000") // less than is on the counter
	meter := OpenMeter(MeterOptions{Root: root, Cores: 4})
	defer meter.Close()
	window := meter.Open(func() float64 { return 0 })
	defer window.Close()
	proctest.Put(t, root, "sys/class/powercap/intel-rapl:0/energy_uj", "5000000")
	if energy := window.Lap(); !strings.HasPrefix(energy.Method, "estimate") || energy.Joules > 1000 {
		t.Errorf("got %+v, want an estimate", energy)
	}
	proctest.Put(t, root, "sys/class/powercap/intel-rapl:0/energy_uj", "6000000")
	window.Lap() // its beginning was not measured either
	proctest.Put(t, root, "sys/class/powercap/intel-rapl:0/energy_uj", "8000000")
	if energy := window.Lap(); energy.Method != "rapl" || !near(energy.Joules, 2) {
		t.Errorf("got %+v, want 2 J by rapl", energy)
	}
}

func TestSlotsShareRAPLByCPUTime(t *testing.T) {
	root := packages(t)
	own := 2.0
	meter := OpenMeter(MeterOptions{Root: root, Slots: 2})
	defer meter.Close()
	window := meter.Open(func() float64 { return own })
	defer window.Close()
	own += 1                                                                        // of the
	proctest.Put(t, root, "proc/stat", "cpu  1300 0 100 9000 0 0 0 0 0 0\n")        // four seconds used
	proctest.Put(t, root, "sys/class/powercap/intel-rapl:0/energy_uj", "108000000") // + 8 J
	energy := window.Lap()
	if !near(energy.Joules, 2) {
		t.Errorf("got %g J, want a quarter of 8 J", energy.Joules)
	}
	if !strings.HasPrefix(energy.Method, "estimate") {
		t.Errorf("a share is an estimate and must say so, got %q", energy.Method)
	}
}

func TestUnreadableCounterBecomesAnEstimate(t *testing.T) {
	root := packages(t)
	own := 0.0
	meter := OpenMeter(MeterOptions{Root: root, WattsPerCore: 7, Cores: 2})
	defer meter.Close()
	window := meter.Open(func() float64 { return own })
	defer window.Close()
	proctest.Put(t, root, "sys/class/powercap/intel-rapl:1/energy_uj", "?")
	own = 3
	energy := window.Lap()
	if !strings.HasPrefix(energy.Method, "estimate: 7 W") || energy.Joules < 21 {
		t.Errorf("got %+v, want at least 21 J by the model", energy)
	}
}

func TestEstimate(t *testing.T) {
	tests := []struct {
		name    string
		options MeterOptions
		seconds float64
		method  string
		least   float64
	}{
		{"defaults", MeterOptions{}, 5, "estimate: 10 W per busy core, 1 W per core at rest", 50},
		{"own constants", MeterOptions{WattsPerCore: 2.5, IdleWattsPerCore: 0.5}, 4, "estimate: 2.5 W per busy core, 0.5 W per core at rest, as its owner says", 10},
		{"several slots", MeterOptions{Slots: 4}, 1, "estimate: 10 W per busy core, 1 W per core at rest", 10},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			used := 0.0
			test.options.Root, test.options.Cores = t.TempDir(), 4
			meter := OpenMeter(test.options)
			defer meter.Close()
			if meter.gpu != nil {
				t.Skip("this machine has a GPU, whose joules are in the sum")
			}
			window := meter.Open(func() float64 { return used })
			defer window.Close()
			used = test.seconds
			energy := window.Lap()
			// The share for resting cores grows with the time the test takes.
			if energy.Method != test.method || energy.Joules < test.least {
				t.Errorf("got %+v, want at least %g J by %q", energy, test.least, test.method)
			}
			if meter.Method() != test.method {
				t.Errorf("the meter announces %q", meter.Method())
			}
		})
	}
}

// A processor that is known has its own watts; all others have the round numbers.
func TestKnownProcessorsHaveTheirOwnWatts(t *testing.T) {
	const unknown = "estimate: 10 W per busy core, 1 W per core at rest"
	info := func(vendor string, family, model, stepping int, name string) string {
		return fmt.Sprintf("processor\t: 0\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: %s\nstepping\t: %d\n\nprocessor\t: 1\nmodel\t: 0\n", vendor, family, model, name, stepping)
	}
	for content, want := range map[string]string{
		info("AuthenticAMD", 23, 49, 0, "AMD EPYC 7B12"):                   "estimate: 1.22 W per busy core, 0.47 W per core at rest, as servers with AMD EPYC 7002 take on average",
		info("GenuineIntel", 6, 85, 4, "Intel(R) Xeon(R) Platinum 8175M"):  "estimate: 3.49 W per busy core, 0.61 W per core at rest, as servers with Intel Skylake take on average",
		info("GenuineIntel", 6, 85, 7, "Intel(R) Xeon(R) CPU @ 2.50GHz"):   "estimate: 3.37 W per busy core, 0.69 W per core at rest, as servers with Intel Cascade Lake take on average",
		info("GenuineIntel", 6, 85, 11, "Intel(R) Xeon(R) Platinum 8380H"): unknown,
		info("AuthenticAMD", 25, 1, 1, "AMD Ryzen Threadripper PRO"):       unknown,
		info("GenuineIntel", 6, 167, 1, "Intel(R) Xeon(R) Processor"):      unknown,
		"model name\t: of a board\n":                                       unknown,
		"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n":     unknown,
	} {
		meter := OpenMeter(MeterOptions{Root: proctest.Write(t, map[string]string{"proc/cpuinfo": content})})
		if got := strings.Split(meter.Method(), " (CPU)")[0]; got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", content, got, want)
		}
		meter.Close()
	}
}

// On an elastic meter the trials that run split what the cores use at rest.
func TestElasticTrialsSplitTheRest(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		idle := func() float64 { return 0 }
		meter := OpenMeter(MeterOptions{Root: root, Cores: 4, Slots: 4, Elastic: true})
		defer meter.Close()
		if meter.gpu != nil {
			t.Skip("a GPU's energy would be in it")
		}
		check := func(when string, w *Window, want float64) {
			t.Helper()
			if got := w.Lap().Joules; !near(got, want) {
				t.Errorf("%s: %g J, want %g", when, got, want)
			}
		}
		first := meter.Open(idle)
		time.Sleep(10 * time.Second)
		second := meter.Open(idle)
		time.Sleep(10 * time.Second)
		check("alone, then with another", first, 40+20)
		check("with the first", second, 20)
		second.Close()
		time.Sleep(5 * time.Second)
		check("alone again", first, 20)
		first.Close()
	})
}
