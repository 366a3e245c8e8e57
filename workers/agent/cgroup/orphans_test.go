package cgroup

import (
	"os/exec"
	"syscall"
	"testing"
)

// Control groups end most orphans before this is needed; elsewhere it is all
// there is.
func TestKillMarked(t *testing.T) {
	start := func(environment ...string) *exec.Cmd {
		t.Helper()
		command := exec.Command("sleep", "1000")
		command.Env = environment
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := command.Start(); err != nil {
			t.Skipf("no sleep: %v", err)
		}
		t.Cleanup(func() {
			_ = command.Process.Kill() // it may have ended
			_ = command.Wait()
		})
		return command
	}
	folder := t.TempDir()
	marked := start("A=1", MarkVariable+folder+"/1/checkpoint")
	start(MarkVariable + folder + "/11/checkpoint")
	start("X" + MarkVariable + folder + "/1/checkpoint")
	start("A=" + folder + "/1/checkpoint")
	if killed := KillMarked(MarkVariable + folder + "/1/checkpoint"); killed != 1 {
		t.Errorf("killed %d processes", killed)
	}
	state, err := marked.Process.Wait()
	if err != nil || state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the marked process: %v, %v", state, err)
	}
	if killed := KillMarked(MarkVariable + folder); killed != 1 { // the other run's, which was spared before
		t.Errorf("killed %d processes of all the runs", killed)
	}
}

// TestNoMarkIsNobodys: every process has variables that begin with nothing.
func TestNoMarkIsNobodys(t *testing.T) {
	if found := marked(""); len(found) > 0 {
		t.Errorf("%d processes carry no mark at all", len(found))
	}
	// A number that no process has.
	if found := Members(-1, ""); len(found) != 1 || found[0] != -1 {
		t.Errorf("a command without a mark has the processes %v", found)
	}
}
