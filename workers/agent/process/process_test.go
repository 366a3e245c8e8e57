package process

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/agent/agenttest"
	"github.com/tandem-tune/tandem/workers/agent/cgroup"
)

// TestOrphansCountInAControlGroup: what a command started and did not wait for
// has used the CPU all the same.
func TestOrphansCountInAControlGroup(t *testing.T) {
	if !agenttest.CanGroup() {
		t.Skip("this user may not make control groups here")
	}
	outer := cgroup.New("orphans")
	t.Cleanup(outer.Remove)
	const work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
	p, err := (&Process{group: outer.Inner("1")}).start(&exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "setsid sh -c '" + work + "; echo done' & wait"}})
	if err != nil {
		t.Skipf("no sh: %v", err)
	}
	<-p.Done
	if !p.grouped {
		t.Skip("the kernel refused to start a command in the control group")
	}
	if used := p.CPUSeconds(); used <= 0.01 {
		t.Errorf("%g s of CPU time are counted, and the orphan used more", used)
	}
	p.group.Remove()
	if used, ok := p.group.CPUSeconds(); ok || used != 0 {
		t.Errorf("a group that is gone has used %g s", used)
	}
}

// TestANumberThatMeansAnotherProcessIsLeftAlone simulates that the number of a
// command is given to a stranger, who leads a process group of its own: while a
// run still knows it.
func TestANumberThatMeansAnotherProcessIsLeftAlone(t *testing.T) {
	stranger := exec.Command("sleep", "1000")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := stranger.Start(); err != nil {
		t.Skipf("no sleep: %v", err)
	}
	t.Cleanup(func() {
		_ = stranger.Process.Kill() // it may have ended
		_ = stranger.Wait()
	})
	number := stranger.Process.Pid

	ended := &Process{pid: number, mark: cgroup.MarkVariable + t.TempDir(), reaped: true, Done: make(chan struct{})}
	close(ended.Done)
	ended.Kill()
	ended.Terminate(time.Millisecond)
	if members := ended.Members(); len(members) > 0 {
		t.Errorf("the ended command is thought to have the processes %v", members)
	}

	if !agenttest.ChildRuns(number) {
		t.Error("the stranger was ended")
	}
}

// A group that cannot be entered must not keep a command from running.
func TestCommandRunsWithoutItsGroup(t *testing.T) {
	program, err := exec.LookPath("true")
	if err != nil {
		t.Skip("there is no true")
	}
	p, err := (&Process{group: &cgroup.Group{Directory: t.TempDir()}}).start(&exec.Cmd{Path: program, Args: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done
	if !p.Exit().OK() {
		t.Errorf("got %+v", p.Exit())
	}
}
