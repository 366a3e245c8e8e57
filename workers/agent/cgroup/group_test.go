package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/profiler/proc"
)

func TestNoCageIsNoFault(t *testing.T) {
	none := makeGroup(filepath.Join(t.TempDir(), "missing", "group"))
	if none != nil || none.Inner("1") != nil || none.Open() >= 0 {
		t.Errorf("got %+v", none)
	}
	none.Kill()
	none.Remove()
	folder := filepath.Join(t.TempDir(), "no control group")
	if c := makeGroup(folder); c != nil {
		t.Errorf("an ordinary folder was taken for a control group: %+v", c)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the ordinary folder is still there")
	}
}

func TestEmptyGroupsOfDeadAgentsAreRemoved(t *testing.T) {
	probe := New("probe")
	probe.Kill()
	probe.Remove()
	if probe == nil {
		t.Skip("this user may not make control groups here")
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Skipf("there is no true: %v", err)
	}
	group := func(pid int, name string) string {
		path := filepath.Join(proc.ControlGroup(), fmt.Sprintf("%s%d-%s", Prefix, pid, name))
		if err := os.MkdirAll(filepath.Join(path, "1"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup((&Group{path}).Remove)
		return path
	}
	dead, busy, alive := group(ended.Process.Pid, "a"), group(ended.Process.Pid, "b"), group(os.Getpid(), "c")
	entered := (&Group{filepath.Join(busy, "1")}).Open()
	defer unix.Close(entered)
	inside := exec.Command("sleep", "1000")
	inside.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: entered}
	if err := inside.Start(); err != nil {
		t.Skipf("no sleep: %v", err)
	}
	New("sweeper").Remove()
	for path, stays := range map[string]bool{dead: false, busy: true, alive: true} {
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v, must stay: %v", path, err, stays)
		}
	}
	_, _ = inside.Process.Kill(), inside.Wait()
}
