package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// CanCage tells the tests of the agent as a whole whether this user may make
// control groups here.
func CanCage() bool {
	c := newCage("probe")
	c.kill()
	c.remove()
	return c != nil
}

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

func TestNoCageIsNoFault(t *testing.T) {
	none := makeCage(filepath.Join(t.TempDir(), "missing", "cage"))
	if none != nil || none.inner("1") != nil || none.open() >= 0 {
		t.Errorf("got %+v", none)
	}
	none.kill()
	none.remove()
	folder := filepath.Join(t.TempDir(), "no control group")
	if c := makeCage(folder); c != nil {
		t.Errorf("an ordinary folder was taken for a control group: %+v", c)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the ordinary folder is still there")
	}
}

func TestEmptyGroupsOfDeadAgentsAreRemoved(t *testing.T) {
	if !CanCage() {
		t.Skip("this user may not make control groups here")
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Skipf("there is no true: %v", err)
	}
	group := func(pid int, name string) string {
		path := filepath.Join(ownGroup(), fmt.Sprintf("%s%d-%s", cagePrefix, pid, name))
		if err := os.MkdirAll(filepath.Join(path, "1"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup((&cage{path}).remove)
		return path
	}
	dead, busy, alive := group(ended.Process.Pid, "a"), group(ended.Process.Pid, "b"), group(os.Getpid(), "c")
	inside, err := (&process{cage: &cage{filepath.Join(busy, "1")}}).start(&exec.Cmd{Path: "/bin/sleep", Args: []string{"sleep", "1000"}})
	if err != nil {
		t.Skipf("no sleep: %v", err)
	}
	newCage("sweeper").remove()
	for path, stays := range map[string]bool{dead: false, busy: true, alive: true} {
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v, must stay: %v", path, err, stays)
		}
	}
	inside.kill()
	<-inside.done
}

// A group that cannot be entered must not keep a command from running.
func TestCommandRunsWithoutItsCage(t *testing.T) {
	program, err := exec.LookPath("true")
	if err != nil {
		t.Skip("there is no true")
	}
	p, err := (&process{cage: &cage{t.TempDir()}}).start(&exec.Cmd{Path: program, Args: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.done
	if !p.exit().ok() {
		t.Errorf("got %+v", p.exit())
	}
}
