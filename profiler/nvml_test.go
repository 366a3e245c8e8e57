//go:build linux && cgo

package profiler

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// driver builds a library that answers like NVIDIA's, with two GPUs.
func driver(t *testing.T, defines ...string) string {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler to build the driver's double with")
	}
	library := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	arguments := append([]string{"-shared", "-fPIC", "-DINIT=0", "-DENERGY=0", "-DCOUNT=2", "-DPOWER=0", "-DSHARE=3", "-DPROCESSES=0", "-DSAMPLES=0", "-o", library}, defines...)
	if said, err := exec.Command(compiler, append(arguments, "testdata/nvml.c")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return library
}

func TestNVMLAddsGPUs(t *testing.T) {
	gpu, err := openNVML(driver(t))
	if err != nil {
		t.Fatal(err)
	}
	defer gpu.close()
	if names := strings.Join(models(gpu), ", "); names != "GPU 0, GPU 1" {
		t.Errorf("got %s", names)
	}
	first, err := joulesOf(gpu, allOf(gpu))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := joulesOf(gpu, allOf(gpu)); err != nil || !near(second-first, 5) { // 2 J and 3 J a call
		t.Errorf("got %g J more, %v", second-first, err)
	}
}

// TestNVMLTellsMetrics: two GPUs together, in our units.
func TestNVMLTellsMetrics(t *testing.T) {
	gpu, err := openNVML(driver(t))
	if err != nil {
		t.Fatal(err)
	}
	defer gpu.close()
	if known := gpu.devices(); len(known) != 2 || known[1] != (gpuDevice{"GPU 1", "GPU-10-uuid"}) {
		t.Errorf("the GPUs are %v", known)
	}
	states, missing := observeGPUs(gpu, allOf(gpu))
	want := map[string]float64{
		"gpu.core_utilization": 0.85, "gpu.memory_utilization": 0.3, "gpu.memory_used_bytes": 121, "gpu.power_watts": 301.001,
		"gpu.core_clock_mhz": 1000.5, "gpu.memory_clock_mhz": 2000.5, "gpu.temperature_celsius": 51,
		"gpu.pcie_send_bytes_per_second": 2 * 10240, "gpu.pcie_receive_bytes_per_second": 2 * 20480, "gpu.throttled": 0.5,
	}
	for name, value := range want {
		if got, told := states[name]; !told || !near(got, value) {
			t.Errorf("%s is %g, want %g", name, got, value)
		}
	}
	if len(states) != len(want) || len(missing) > 0 {
		t.Errorf("got %v, missing %v", states, missing)
	}
}

func TestMetricsThatADriverOrGPUDoesNotTell(t *testing.T) {
	for name, test := range map[string]struct {
		define, reason string
		missing        int
	}{
		"an old driver":    {"-DPLAIN", "too old", gpuMetricCount},
		"a GPU without it": {"-DPOWER=3", "GPU 0 (GPU 0): this GPU does not support it", 1},
	} {
		t.Run(name, func(t *testing.T) {
			gpu, err := openNVML(driver(t, "-U"+strings.SplitN(test.define[2:], "=", 2)[0], test.define))
			if err != nil {
				t.Fatal(err)
			}
			defer gpu.close()
			states, missing := observeGPUs(gpu, allOf(gpu))
			if len(states)+len(missing) != gpuMetricCount || len(missing) != test.missing || !strings.Contains(missing[0].Reason, test.reason) {
				t.Errorf("got %v, missing %v", states, missing)
			}
		})
	}
}

func TestNVMLFaults(t *testing.T) {
	tests := []struct{ name, define, say string }{
		{"driver not loaded", "-DINIT=9", "not loaded"},
		{"no permission", "-DINIT=4", "may not"},
		{"unknown", "-DINIT=999", "999"},
		{"no GPU", "-DCOUNT=0", "no GPU"},
		{"too old", "-DOLD", "too old"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := openNVML(driver(t, "-U"+strings.SplitN(test.define[2:], "=", 2)[0], test.define)); err == nil || !strings.Contains(err.Error(), test.say) {
				t.Errorf("got %v, want %q", err, test.say)
			}
		})
	}
	if _, err := openNVML("/nowhere/libnvidia-ml.so.1"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("got %v", err)
	}
}

// Where the linker does not find the library, the further places are tried.
func TestNVMLIsFoundElsewhere(t *testing.T) {
	gpu, err := openNVML("/nowhere/libnvidia-ml.so.1", driver(t))
	if err != nil {
		t.Fatal(err)
	}
	gpu.close()
}

func TestOldGPUTellsNoEnergy(t *testing.T) {
	gpu, err := openNVML(driver(t, "-UENERGY", "-DENERGY=3"))
	if err != nil {
		t.Fatal(err)
	}
	defer gpu.close()
	if _, err := joulesOf(gpu, allOf(gpu)); err == nil || !strings.Contains(err.Error(), "GPU 0") {
		t.Errorf("got %v", err)
	}
}

// A program must start where symbols are bound at once and no driver is.
func TestStartsWithoutDriver(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, "-test.run", "^TestParseCPUList$")
	command.Env = append(os.Environ(), "LD_BIND_NOW=1")
	if said, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

// What is set arrives at the right GPU, in the driver's units.
func TestNVMLIsSet(t *testing.T) {
	gpu, err := openNVML(driver(t))
	if err != nil {
		t.Fatal(err)
	}
	control := &GPUControl{gpu}
	defer control.Close()
	if control.Count() != 2 || control.Name(1) != "GPU-10-uuid" {
		t.Errorf("%d GPUs, the second is %s", control.Count(), control.Name(1))
	}
	if visible, err := control.Visible([]string{"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=1"}); err != nil || len(visible) != 1 || visible[0] != 1 {
		t.Errorf("visible are %v, %v", visible, err)
	}
	if low, high, err := control.PowerBounds(1); low != 100001 || high != 300000 || err != nil {
		t.Errorf("got %d to %d, %v", low, high, err)
	}
	if err := control.SetPowerLimit(1, 150000); err != nil {
		t.Error(err)
	}
	if err := control.SetPowerLimit(1, 1); err == nil || !strings.Contains(err.Error(), "value") {
		t.Errorf("got %v", err)
	}
	if err := control.LimitClock(1, 1200); err != nil {
		t.Error(err)
	}
	for device, want := range [][2]uint{{250000, 2000}, {150000, 1200}} {
		limit, limitErr := control.PowerLimit(device)
		clock, clockErr := control.HighestClock(device)
		if limit != want[0] || clock != want[1] || limitErr != nil || clockErr != nil {
			t.Errorf("GPU %d: %d mW, %d MHz, %v, %v", device, limit, clock, limitErr, clockErr)
		}
	}
	if err := control.UnlockClocks(1); err != nil {
		t.Error(err)
	}
	if clock, _ := control.HighestClock(1); clock != 2000 {
		t.Errorf("unlocked it has %d MHz", clock)
	}
}

func TestOldDriverSetsNothing(t *testing.T) {
	gpu, err := openNVML(driver(t, "-DPLAIN"))
	if err != nil {
		t.Fatal(err)
	}
	control := &GPUControl{gpu}
	defer control.Close()
	_, limit := control.PowerLimit(0)
	_, _, bounds := control.PowerBounds(0)
	_, clock := control.HighestClock(0)
	for _, err := range []error{limit, bounds, clock, control.SetPowerLimit(0, 150000), control.LimitClock(0, 1200), control.UnlockClocks(0)} {
		if err == nil || !strings.Contains(err.Error(), "too old") {
			t.Errorf("got %v", err)
		}
	}
	if control.Name(0) != "0" {
		t.Errorf("without a UUID it is called %s", control.Name(0))
	}
}

// A power cap is told where one is below what the GPU was made for.
func TestPowerCap(t *testing.T) {
	gpu, err := openNVML(driver(t))
	if err != nil {
		t.Fatal(err)
	}
	defer gpu.close()
	if got := gpuPowerCap(gpu); got != 0 {
		t.Errorf("GPUs at their default are capped at %g W", got)
	}
	for device, step := range []struct {
		milliwatts uint
		want       float64
	}{{300_000, 0}, {150_500, 150.5}} {
		if err := gpu.setPowerLimit(device, step.milliwatts); err != nil {
			t.Fatal(err)
		}
		if got := gpuPowerCap(gpu); got != step.want {
			t.Errorf("with GPU %d at %d mW the cap is %g W, want %g", device, step.milliwatts, got, step.want)
		}
	}
	old, err := openNVML(driver(t, "-DPLAIN"))
	if err != nil {
		t.Fatal(err)
	}
	defer old.close()
	if got := gpuPowerCap(old); got != 0 {
		t.Errorf("a driver that does not tell: %g W", got)
	}
}

// TestNVMLTellsWhoIsThere: who computes on a GPU, with what each holds and keeps
// busy, also where that is more than there was room for at first.
func TestNVMLTellsWhoIsThere(t *testing.T) {
	gpu, err := openNVML(driver(t))
	if err != nil {
		t.Fatal(err)
	}
	defer gpu.close()
	if use, err := useOf(gpu, 0, time.Now()); err != nil || use.ByProcess != nil || len(use.Processes) > 0 || use.Utilization != 0.8 || use.UsedBytes != 60 || use.MemoryBytes != 100 {
		t.Errorf("of GPU 0 it tells %+v, %v", use, err)
	}
	use, err := useOf(gpu, 1, time.Now())
	if err != nil || use.ByProcess != nil || len(use.Processes) != 3 {
		t.Fatalf("of GPU 1 it tells %+v, %v", use, err)
	}
	if first := use.Processes[0]; first.PID != 100 || first.MemoryBytes != 1000 || !near(first.Utilization, 0.6) {
		t.Errorf("the first process is %+v", first)
	}
	if last := use.Processes[2]; last.PID != 102 || last.MemoryBytes != -1 || last.Utilization != 0 {
		t.Errorf("the last process is %+v", last)
	}
	if told := untold(gpu); told != "" {
		t.Errorf("it tells all, and yet: %s", told)
	}
	crowded, err := openNVML(driver(t, "-USHARE", "-DSHARE=300"))
	if err != nil {
		t.Fatal(err)
	}
	defer crowded.close()
	if use, err := useOf(crowded, 1, time.Now()); err != nil || len(use.Processes) != 300 || use.Processes[298].MemoryBytes != 299_000 {
		t.Errorf("of 300 processes it tells %d, %v", len(use.Processes), err)
	}
}

// What a driver does not tell of processes is said with the reason.
func TestNVMLThatDoesNotTellWhoIsThere(t *testing.T) {
	for name, test := range map[string]struct {
		define, reason string
		fails          bool
	}{
		"an old driver":                        {"-DPLAIN", "too old", true},
		"no processes":                         {"-DPROCESSES=4", "may not talk", true},
		"processes, but not what they run":     {"-DSAMPLES=3", "does not support it", false},
		"processes, but not what they run now": {"-DSAMPLES=9", "not loaded", false},
	} {
		t.Run(name, func(t *testing.T) {
			gpu, err := openNVML(driver(t, "-U"+strings.SplitN(test.define[2:], "=", 2)[0], test.define))
			if err != nil {
				t.Fatal(err)
			}
			defer gpu.close()
			use, err := useOf(gpu, 1, time.Now())
			if (err != nil) != test.fails || !test.fails && (use.ByProcess == nil || len(use.Processes) != 3) {
				t.Errorf("it tells %+v, %v", use, err)
			}
			if told := untold(gpu); !strings.Contains(told, test.reason) {
				t.Errorf("said is %q, want %q in it", told, test.reason)
			}
		})
	}
}

// Reports come whole, with the nonce that was asked for, from the GPU that was asked.
func TestNVMLShowsWhatGPUsSign(t *testing.T) {
	for name, test := range map[string]struct{ define, mode, second string }{
		"on":            {define: "-DCONFIDENTIAL=1"},
		"developers'":   {define: "-DCONFIDENTIAL=2", mode: "tools", second: "does not support it"},
		"off":           {define: "-DCONFIDENTIAL=0", mode: "is off"},
		"an old driver": {define: "-DPLAIN", mode: "too old", second: "too old"},
	} {
		t.Run(name, func(t *testing.T) {
			gpu, err := openNVML(driver(t, test.define))
			if err != nil {
				t.Fatal(err)
			}
			control := &GPUControl{gpu}
			defer control.Close()
			tools, err := control.Confidential()
			if said := errorText(err) + map[bool]string{true: "tools"}[tools]; (said == "") != (test.mode == "") || !strings.Contains(said, test.mode) {
				t.Errorf("its mode is %q", said)
			}
			report, chain, err := control.Attest(1, [32]byte{5, 31: 7})
			if said := errorText(err); (said == "") != (test.second == "") || !strings.Contains(said, test.second) {
				t.Errorf("got %v", err)
			}
			if err == nil && (len(report) != 0x2000 || report[0] != 1 || report[0x2000-32] != 5 || report[0x1fff] != 7 || string(chain) != "chain 1") {
				t.Errorf("%d bytes, and the chain %q", len(report), chain)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
