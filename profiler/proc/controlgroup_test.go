package proc

import (
	"math"
	"testing"

	"github.com/tandem-tune/tandem/profiler/proctest"
)

func TestGroupFolder(t *testing.T) {
	const plain = "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	tests := []struct{ name, mounts, groups, want string }{
		{"a user's scope", plain, "0::/user.slice/user@7.service/run.scope\n", "/sys/fs/cgroup/user.slice/user@7.service/run.scope"},
		{"the root", plain, "0::/\n", "/sys/fs/cgroup"},
		{"beside v1", "30 22 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 22 0:28 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n", "5:cpu:/x\n0::/y\n", "/sys/fs/cgroup/unified/y"},
		{"a part of the tree, from outside", "29 22 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/1/a\n", "/sys/fs/cgroup/a"},
		{"another part of the tree", "29 22 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/docker/12\n", ""},
		{"outside of the namespace", plain, "0::/../x\n", ""},
		{"v1 only", "30 22 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "5:cpu:/x\n", ""},
		{"not mounted", "", "0::/y\n", ""},
		{"noise", "x - cgroup2 y\n\n - \n", "0::\n0", ""},
		{"nothing", "", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := groupFolder(test.mounts, test.groups); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestOldGroupFolder(t *testing.T) {
	const memory = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	tests := []struct{ name, mounts, groups, want string }{
		{"plain", memory, "4:memory:/a/b\n0::/\n", "/sys/fs/cgroup/memory/a/b"},
		{"the root", memory, "4:memory:/\n", "/sys/fs/cgroup/memory"},
		{"a container's part", "35 31 0:32 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/docker/1\n", "/sys/fs/cgroup/memory"},
		{"another part", "35 31 0:32 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/docker/12\n", ""},
		{"with others", "35 31 0:32 / /cg/both rw - cgroup cgroup rw,cpu,memory\n", "4:cpu,memory:/a\n", "/cg/both/a"},
		{"only v2", "29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", "0::/a\n", ""},
		{"outside", memory, "4:memory:/../a\n", ""},
		{"nothing", "", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := oldGroupFolder(test.mounts, test.groups, "memory"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// What other cores do does not count.
func TestCoreSeconds(t *testing.T) {
	h := NewHost(proctest.Write(t, map[string]string{"proc/stat": "cpu  900 0 0 900 0 0 0 0 0 0\ncpu0 100 0 50 300 50 0 0 0 0 0\ncpu1 200 0 0 0 0 0 0 100 0 0\ncpu10 700 0 0 0 0 0 0 0 0 0\n"}))
	if busy, all := coreSeconds(h, []int{0, 1}); math.Abs(busy-4.5) > 1e-6 || math.Abs(all-8) > 1e-6 {
		t.Errorf("two cores were busy for %g s of %g, want 4.5 of 8", busy, all)
	}
	if busy, all := MachineSeconds(h); math.Abs(busy-9) > 1e-6 || math.Abs(all-18) > 1e-6 {
		t.Errorf("the machine was busy for %g s of %g, want 9 of 18", busy, all)
	}
}
