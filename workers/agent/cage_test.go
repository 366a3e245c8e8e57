package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tandem-tune/tandem/profiler"
)

// CanCage tells the tests of the agent as a whole whether this user may make
// control groups here.
func CanCage() bool {
	c := newCage("probe")
	c.kill()
	c.remove()
	return c != nil
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
		path := filepath.Join(profiler.ControlGroup(), fmt.Sprintf("%s%d-%s", cagePrefix, pid, name))
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
