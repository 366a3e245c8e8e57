package profiler

import (
	"testing"

	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/profiler/proctest"
)

// around is a machine on which this process is in these groups, with these files
// below /sys/fs/cgroup.
func around(t *testing.T, mounts, groups string, files map[string]string) proc.Host {
	t.Helper()
	all := map[string]string{"proc/self/mountinfo": mounts, "proc/self/cgroup": groups, "proc/meminfo": "MemTotal:  8388608 kB\nMemAvailable:  4194304 kB\n"}
	for name, content := range files {
		all["sys/fs/cgroup/"+name] = content
	}
	return proc.NewHost(proctest.Write(t, all))
}

// A process has what the tightest of the groups around it leaves, in either
// version of control groups or in both.
func TestMachineWithinLimits(t *testing.T) {
	const (
		v2   = "29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		v1   = "30 22 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 22 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		both = v1 + "32 22 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	)
	for name, test := range map[string]struct {
		mounts, groups string
		files          map[string]string
		cores          int
		quota          float64
		limit          int64
	}{
		"none":             {v2, "0::/a\n", map[string]string{"a/cgroup.procs": "", "a/cpu.max": "max 100000\n", "a/memory.max": "max\n"}, 4, 0, 0},
		"of its own group": {v2, "0::/a\n", map[string]string{"a/cgroup.procs": "", "a/cpu.max": "40000 100000\n", "a/memory.max": "1073741824\n"}, 1, 0.4, 1 << 30},
		"of a group around it": {v2, "0::/a/b\n", map[string]string{
			"cgroup.procs": "", "a/cgroup.procs": "", "a/cpu.max": "150000 100000\n", "a/memory.max": "1073741824\n",
			"a/b/cgroup.procs": "", "a/b/cpu.max": "300000 100000\n", "a/b/memory.max": "max\n",
		}, 2, 1.5, 1 << 30},
		"a group that has no controllers": {v2, "0::/a/b\n", map[string]string{"a/cgroup.procs": "", "a/cpu.max": "50000 100000\n", "a/b/cgroup.procs": ""}, 1, 0.5, 0},
		"as much as the machine has":      {v2, "0::/\n", map[string]string{"cgroup.procs": "", "cpu.max": "400000 100000\n", "memory.max": "8589934592\n"}, 4, 0, 0},
		"of v1": {v1, "2:memory:/x\n1:cpu:/y\n", map[string]string{
			"cpu/y/cgroup.procs": "", "cpu/y/cpu.cfs_quota_us": "25000\n", "cpu/y/cpu.cfs_period_us": "50000\n",
			"memory/x/cgroup.procs": "", "memory/x/memory.limit_in_bytes": "2147483648\n",
		}, 1, 0.5, 2 << 30},
		"none of v1, beside v2": {both, "2:memory:/\n1:cpu:/\n0::/z\n", map[string]string{
			"cpu/cgroup.procs": "", "cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n",
			"memory/cgroup.procs": "", "memory/memory.limit_in_bytes": "9223372036854771712\n", "unified/z/cgroup.procs": "",
		}, 4, 0, 0},
		"noise": {v2, "0::/a\n", map[string]string{"a/cgroup.procs": "", "a/cpu.max": "much of it\n", "a/memory.max": "-5\n"}, 4, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := machineOf(around(t, test.mounts, test.groups, test.files), []int{0, 1, 2, 3})
			memory := int64(8 << 30)
			if test.limit > 0 {
				memory = test.limit
			}
			if got.Cores != test.cores || got.CPUQuota != test.quota || got.MemoryLimitBytes != test.limit || got.MemoryBytes != memory {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestGovernorOfTheCores(t *testing.T) {
	file := func(core string) string { return "sys/devices/system/cpu/cpu" + core + "/cpufreq/scaling_governor" }
	h := proc.NewHost(proctest.Write(t, map[string]string{file("0"): "powersave\n", file("1"): "powersave\n", file("2"): "performance\n"}))
	for want, cores := range map[string][]int{"powersave": {0, 1}, "mixed": {0, 1, 2}, "performance": {2}, "": {0, 3}} {
		if got := proc.Governor(h, cores); got != want {
			t.Errorf("the governor of the cores %v is %q, want %q", cores, got, want)
		}
	}
}
