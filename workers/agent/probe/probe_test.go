package probe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/agent/agenttest"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
	"github.com/tandem-tune/tandem/workers/agent/knob"
	"github.com/tandem-tune/tandem/workers/workload"
)

// watched is a task that notes what was set of the machine while it ran.
func watched(name string, bytes int64, seen map[string]bool, look func() string) workload.Task {
	return workload.Task{Name: name, Bytes: bytes, Prepare: func() func(int) float64 {
		return func(int) float64 {
			seen[look()] = true
			return 0
		}
	}}
}

// quiet is a machine on which nobody else does anything.
func quiet() (busy, all float64) { return 0, 0 }

func TestProbesRunAtEachSettingThatMayBeChosen(t *testing.T) {
	root, policies := agenttest.FrequencyTree(t)
	now := func() string {
		return agenttest.Content(t, policies[0], "scaling_governor") + " " + agenttest.Content(t, policies[0], "scaling_max_freq")
	}
	before, seen := now(), map[string]bool{}
	p := Prober{
		Machine: protocol.Machine{Cores: 2, Governor: "schedutil", MemoryBytes: 1000}, Controls: testControls(t, root, nil),
		Tasks: []workload.Task{watched("one", 10, seen, now), watched("large", 251, seen, now), watched("two", 250, seen, now)},
		Meter: profiler.MeterOptions{Root: t.TempDir(), Cores: 2}, Busy: quiet,
	}
	found, reasons, err := p.runTasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range found {
		got = append(got, one.Workload+" "+one.Setting)
		if !(one.Seconds > 0) || !(one.Joules > 0) || one.Method == "" {
			t.Errorf("got %+v", one)
		}
	}
	want := []string{
		"one ", "one cpu_governor=powersave", "one cpu_governor=performance", "one cpu_frequency_mhz=800", "one cpu_frequency_mhz=2200",
		"two ", "two cpu_governor=powersave", "two cpu_governor=performance", "two cpu_frequency_mhz=800", "two cpu_frequency_mhz=2200",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(reasons) != 1 || !strings.Contains(reasons[0], "large did not run") {
		t.Errorf("reasons %q", reasons)
	}
	set := slices.Sorted(maps.Keys(seen))
	if want := []string{"performance 3000000", "powersave 3000000", "schedutil 2200000", "schedutil 3000000", "schedutil 800000"}; !slices.Equal(set, want) {
		t.Errorf("in force were %q, want %q", set, want)
	}
	if after := now(); after != before {
		t.Errorf("afterwards %s is set, before %s", after, before)
	}
}

// What may not be set is left as it is and said, and what the kernel refuses is
// left out.
func TestProbesSayWhatTheyCouldNotSet(t *testing.T) {
	seen := map[string]bool{}
	p := Prober{
		Machine: protocol.Machine{Cores: 1}, Controls: testControls(t, t.TempDir(), agenttest.NewGPUs(1)), Busy: quiet,
		Tasks: []workload.Task{watched("one", 0, seen, func() string { return "ran" })}, Meter: profiler.MeterOptions{Root: t.TempDir(), Cores: 1},
	}
	found, reasons, err := p.runTasks(t.Context())
	if err != nil || len(found) != 1 || found[0].Setting != "" || !seen["ran"] {
		t.Errorf("got %+v, %v", found, err)
	}
	for i, start := range []string{system.CPUGovernor + " and " + system.CPUFrequencyMHz + " are left as they are: ", system.GPUPowerWatts + " is left as it is: "} {
		if len(reasons) != 2 || !strings.HasPrefix(reasons[i], start) {
			t.Fatalf("reasons %q", reasons)
		}
	}
	root, policies := agenttest.FrequencyTree(t)
	p.Controls = testControls(t, root, nil)
	p.Tasks = []workload.Task{watched("one", 0, seen, func() string {
		// From now on the kernel has no files for it.
		for _, policy := range policies {
			if err := os.Remove(filepath.Join(policy, "cpuinfo_max_freq")); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
		}
		return "removed"
	})}
	found, reasons, err = p.runTasks(t.Context())
	if err != nil || len(found) != 3 || len(reasons) != 2 || !strings.Contains(reasons[0], "one did not run at cpu_frequency_mhz=800: ") {
		t.Errorf("got %+v, %q, %v", found, reasons, err)
	}
}

func TestProbesThatWereDisturbed(t *testing.T) {
	for others, fault := range map[float64]string{0.2: "", 0.5: "50% of the cores' time"} {
		asked := 0.0
		p := Prober{
			Machine: protocol.Machine{Cores: 1}, Controls: testControls(t, t.TempDir(), nil), Meter: profiler.MeterOptions{Root: t.TempDir(), Cores: 1},
			Tasks: []workload.Task{watched("one", 0, map[string]bool{}, func() string { return "" })},
			Busy: func() (busy, all float64) {
				asked++
				return asked * 1e6 * others, asked * 1e6
			},
		}
		found, _, err := p.runTasks(t.Context())
		if len(found) != 1 || (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("others took %g: got %v, %v", others, found, err)
		}
	}
}

func TestProbingEndsWithTheWorker(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := Prober{
		Machine: protocol.Machine{Cores: 1}, Controls: testControls(t, t.TempDir(), nil), Meter: profiler.MeterOptions{Root: t.TempDir(), Cores: 1}, Busy: quiet,
		Tasks: []workload.Task{watched("one", 0, map[string]bool{}, func() string { cancel(); return "" }), watched("two", 0, nil, func() string { return "" })},
	}
	if found, _, err := p.runTasks(ctx); !errors.Is(err, context.Canceled) || found != nil {
		t.Errorf("got %v, %v", found, err)
	}
}

// Probes are kept by kind of machine, a bounded number of them, and only as long
// as the tasks are the same.
func TestProbesAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "probes.json")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range mostKept + 3 {
		if err := keep(path, fmt.Sprint("kind ", i), []protocol.Probe{{Workload: "w", Seconds: float64(i + 1), Joules: 1, Method: "rapl"}}, at.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := readKept(path)
	if _, old := kept.Machines["kind 2"]; err != nil || len(kept.Machines) != mostKept || old || kept.Machines["kind 3"].Probes[0].Seconds != 4 {
		t.Errorf("%d kept, the oldest %v, %v", len(kept.Machines), old, err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("files %v, %v", entries, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for name, text := range map[string]string{"other tasks": `{"version":0,"machines":{"k":{}}}`, "no machines": `{"version":1}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if kept, err := readKept(path); err != nil || len(kept.Machines) != 0 || kept.Machines == nil {
			t.Errorf("%s: got %v, %v", name, kept, err)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readKept(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged file: %v", err)
	}
	if err := keep(path, "k", nil, at); err != nil {
		t.Fatal(err)
	}
	if kept, err := readKept(path); err != nil || len(kept.Machines) != 1 {
		t.Errorf("in place of a damaged file: %v, %v", kept, err)
	}
}

// Another processor, limit, governor, meter or right to set the machine is
// another kind.
func TestKindsOfMachines(t *testing.T) {
	root, _ := agenttest.FrequencyTree(t)
	kinds := map[string]string{}
	for name, change := range map[string]func(*Prober){
		"plain":      func(*Prober) {},
		"settable":   func(p *Prober) { p.Controls = testControls(t, root, nil) },
		"a quota":    func(p *Prober) { p.Machine.CPUQuota = 0.5 },
		"a meter":    func(p *Prober) { p.Machine.EnergyMethod = "rapl" },
		"a governor": func(p *Prober) { p.Machine.Governor = "performance" },
	} {
		p := Prober{Machine: protocol.Machine{CPUModel: "EPYC", Cores: 2, EnergyMethod: "estimate"}, Controls: testControls(t, t.TempDir(), nil)}
		change(&p)
		if other, taken := kinds[p.kind()]; taken {
			t.Errorf("%s and %s are both %s", name, other, p.kind())
		}
		kinds[p.kind()] = name
	}
}

func TestOneWorkerProbesAtATime(t *testing.T) {
	name := fmt.Sprint("tandem-test-", os.Getpid())
	release, err := takeTurn(t.Context(), name)
	if err != nil {
		t.Skipf("this process may have no abstract socket: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := takeTurn(ended, name); err == nil {
		t.Error("two have the turn at once")
	}
	next := make(chan error)
	go func() {
		release, err := takeTurn(t.Context(), name)
		if err == nil {
			release()
		}
		next <- err
	}()
	release()
	if err := <-next; err != nil {
		t.Errorf("after it was released: %v", err)
	}
}

func TestDoctorSaysWhatProbingCanDo(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	root, _ := agenttest.FrequencyTree(t)
	if got := Capability(root); !got.Available || !strings.Contains(got.Detail, "matrix-multiplication-memory") || !strings.Contains(got.Detail, "cpu_frequency_mhz=800") || !strings.Contains(got.Remedy, "not run here yet") {
		t.Errorf("got %+v", got)
	}
	path, err := DefaultFile()
	if err != nil {
		t.Fatal(err)
	}
	kind := Prober{Machine: Machine(profiler.ThisMachine()), Controls: testControls(t, t.TempDir(), nil)}.kind()
	took := []protocol.Probe{{Workload: "k-means-compute", Seconds: 0.0415, Joules: 1.5, Method: "rapl"}, {Workload: "k-means-compute", Setting: "cpu_governor=powersave", Seconds: 9, Joules: 9, Method: "rapl"}}
	if err := keep(path, kind, took, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if err := keep(path, "another machine; rapl; ", took, time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	got := Capability(t.TempDir())
	if !strings.HasSuffix(got.Detail, "; on 2026-01-02 they took: k-means-compute 0.0415 s, 1.5 J (rapl)") || got.Remedy != "" || !strings.Contains(got.Reason, system.CPUGovernor+" and ") {
		t.Errorf("got %+v", got)
	}
}

// testControls are the knobs of a machine below the root, with these GPUs.
func testControls(t *testing.T, root string, gpus gpu.Control) *knob.Controls {
	t.Helper()
	c := knob.New(knob.Options{Root: root, OpenGPUs: func() (gpu.Control, error) {
		if gpus == nil {
			return nil, errors.New("there is no GPU here")
		}
		return gpus, nil
	}})
	c.Journal(filepath.Join(t.TempDir(), "settings"))
	return c
}
