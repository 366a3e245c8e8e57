package profiler

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/profiler/proctest"
)

func TestDetectOnThisMachine(t *testing.T) {
	found := Detect(t.Context(), DetectOptions{DataDirectory: t.TempDir()})
	names := map[string]bool{}
	for _, c := range found {
		if c.Name == "" || names[c.Name] {
			t.Errorf("%+v has no name of its own", c)
		}
		names[c.Name] = true
		switch {
		case c.Available && c.Detail == "":
			t.Errorf("%s is available, but it is not said what", c.Name)
		case !c.Available && (c.Reason == "" || c.Remedy == ""):
			t.Errorf("%s is not available, and not said why or what to do: %+v", c.Name, c)
		}
		t.Logf("%+v", c)
	}
	for _, name := range []string{"cpu", "memory", "disk", "perf counters", "rapl", "gpu", "cgroups", "cpu frequency", "cpu affinity", "landlock", "python", "torch"} {
		if !names[name] {
			t.Errorf("nothing is said of %s", name)
		}
	}
	if _, err := json.Marshal(found); err != nil {
		t.Error(err)
	}
}

func TestDetectKernelFiles(t *testing.T) {
	tests := []struct {
		name      string
		files     map[string]string
		detect    func(proc.Host) Capability
		available bool
		say       string
	}{
		{"cgroups v2", map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpuset cpu memory", "sys/fs/cgroup/job/x": "", "proc/self/cgroup": "0::/job"},
			detectCgroups, true, "v2 with cpuset cpu memory"},
		{"cgroups v2, bare", map[string]string{"sys/fs/cgroup/cgroup.controllers": "", "proc/self/cgroup": "0::/"}, detectCgroups, false, "Delegate=yes"},
		{"cgroups v1", map[string]string{"sys/fs/cgroup/cpu/tasks": "", "sys/fs/cgroup/memory/tasks": ""}, detectCgroups, true, "v1 with cpu, memory"},
		{"no cgroups", nil, detectCgroups, false, "no control groups are mounted"},
		{"cpufreq", map[string]string{
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            "powersave",
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors": "performance powersave",
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq":            "3000000",
			"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_min_freq":            "800000",
			"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq":            "3500000",
		}, detectFrequency, true, "governor powersave (of performance powersave), 0.80 to 3.50 GHz"},
		{"no cpufreq", nil, detectFrequency, false, "virtual machines"},
		{"no RAPL", nil, detectRAPL, false, "estimated from CPU time"},
		{"memory", map[string]string{"proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable: 2097152 kB\nHugePages_Total: 0\n"}, detectMemory, true, "8.0 GiB, 2.0 GiB of it"},
		{"no memory", map[string]string{"proc/meminfo": "x"}, detectMemory, false, "MemTotal"},
		{"cpu", map[string]string{"proc/cpuinfo": "processor\t: 0\nmodel name\t: A Fast One @ 3 GHz\n"}, detectCPU, true, "A Fast One @ 3 GHz"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := test.detect(proc.NewHost(proctest.Write(t, test.files)))
			if said := got.Detail + got.Reason + got.Remedy; got.Available != test.available || !strings.Contains(said, test.say) {
				t.Errorf("got %+v, want available %v and %q", got, test.available, test.say)
			}
		})
	}
}

// Machines are odd: files are empty, noise, folders or missing, and numbers have
// no bounds. Whatever is there, everything is listed, and what is not available
// has its reason and its remedy.
func TestDetectOnOddMachines(t *testing.T) {
	files := []string{
		"proc/cpuinfo", "proc/meminfo", "proc/stat", "proc/self/cgroup", "proc/sys/kernel/perf_event_paranoid",
		"sys/fs/cgroup/cgroup.controllers", "sys/fs/cgroup/cpu", "sys/fs/cgroup/memory",
		"sys/class/powercap/intel-rapl:0/name", "sys/class/powercap/intel-rapl:0/energy_uj", "sys/class/powercap/intel-rapl:0/max_energy_range_uj",
		"sys/bus/event_source/devices/power/type", "sys/bus/event_source/devices/power/cpumask",
		"sys/bus/event_source/devices/power/events/energy-pkg", "sys/bus/event_source/devices/power/events/energy-pkg.scale",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors",
		"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_min_freq", "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
	}
	contents := map[string]string{
		"empty": "", "a line end": "\n", "zero bytes": "\x00\x00\x00", "not UTF-8": "\xff\xfe:\xfd", "minus one": "-1", "huge": strings.Repeat("9", 400),
		"separators": ": : :\n::\n,-,\n- -", "words": "package-0 MemTotal: x kB\nMemTotal: 99999999999999999999 kB\nevent=0x\n0::\n0::../..",
		"one": "1", "not a number": "NaN", "package": "package-0", "event": "event=0x02",
	}
	machines := map[string]string{"nothing at all": t.TempDir(), "a missing root": filepath.Join(t.TempDir(), "none")}
	folders := t.TempDir()
	for _, file := range files {
		if err := os.MkdirAll(filepath.Join(folders, file), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	machines["folders instead of files"] = folders
	for name, content := range contents {
		all := map[string]string{}
		for _, file := range files {
			all[file] = content
		}
		machines[name] = proctest.Write(t, all)
		// A zone of the right name is looked at further.
		all["sys/class/powercap/intel-rapl:0/name"] = "package-0"
		all["sys/bus/event_source/devices/power/type"] = "1"
		all["sys/bus/event_source/devices/power/cpumask"] = "0"
		machines[name+", with RAPL"] = proctest.Write(t, all)
	}
	for name, root := range machines {
		t.Run(name, func(t *testing.T) {
			found := Detect(t.Context(), DetectOptions{Root: root, DataDirectory: root, Python: "/nowhere/python"})
			if len(found) != 12 {
				t.Errorf("%d entries", len(found))
			}
			for _, c := range found {
				if c.Name == "" || c.Available && c.Detail == "" || !c.Available && (c.Reason == "" || c.Remedy == "") {
					t.Errorf("incomplete: %+v", c)
				}
			}
			meter := OpenMeter(MeterOptions{Root: root})
			defer meter.Close()
			window := meter.Open(func() float64 { return 0 })
			defer window.Close()
			meter.Sample()
			if energy := window.Lap(); energy.Joules < 0 || math.IsNaN(energy.Joules) || math.IsInf(energy.Joules, 0) || energy.Method == "" {
				t.Errorf("got %+v", energy)
			}
		})
	}
}

func TestDetectRAPLFound(t *testing.T) {
	c := detectRAPL(proc.NewHost(packages(t)))
	if !c.Available || c.Detail != "package-0, dram, package-1 (powercap)" {
		t.Errorf("got %+v", c)
	}
}

func TestDetectPython(t *testing.T) {
	directory := t.TempDir()
	interpreter := func(name, script string) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		name, interpreter string
		python, torch     bool
		say               string
	}{
		{"with torch", interpreter("a", "echo 3.12.1; echo torch 2.1, CPU only"), true, true, "2.1, CPU only"},
		{"without", interpreter("b", "echo 3.12.1; echo 'no ModuleNotFoundError: No module'"), true, false, "ModuleNotFoundError"},
		{"torch crashes", interpreter("c", "echo 3.12.1; kill -SEGV $$"), true, false, "segmentation fault"},
		{"broken", interpreter("d", "exit 3"), false, false, "no Python"},
		{"missing", filepath.Join(directory, "none"), false, false, "no Python"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			python, torch := detectPython(t.Context(), test.interpreter)
			if python.Available != test.python || torch.Available != test.torch || !strings.Contains(torch.Detail+torch.Reason, test.say) {
				t.Errorf("got %+v and %+v", python, torch)
			}
		})
	}
}

func TestPythonThatHangsIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if path, err := exec.LookPath("sleep"); err == nil {
		if _, err := runBounded(ctx, path, "1000"); err == nil {
			t.Error("a command that hangs was waited for")
		}
	}
}

func TestDetectDisk(t *testing.T) {
	made := t.TempDir()
	if c := detectDisk(filepath.Join(made, "a", "b")); !strings.Contains(c.Detail, "free at") {
		t.Errorf("a folder that is not made yet: got %+v", c)
	}
	if c := detectDisk("/proc"); c.Available {
		t.Errorf("nothing can be stored in /proc: got %+v", c)
	}
}
