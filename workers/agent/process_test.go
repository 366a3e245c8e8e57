package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestOrphansCountInAControlGroup: what a command started and did not wait for
// has used the CPU all the same.
func TestOrphansCountInAControlGroup(t *testing.T) {
	if !CanCage() {
		t.Skip("this user may not make control groups here")
	}
	outer := newCage("orphans")
	t.Cleanup(outer.remove)
	const work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
	p, err := (&process{cage: outer.inner("1")}).start(&exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "setsid sh -c '" + work + "; echo done' & wait"}})
	if err != nil {
		t.Skipf("no sh: %v", err)
	}
	<-p.done
	if !p.caged {
		t.Skip("the kernel refused to start a command in the control group")
	}
	if used := p.cpuSeconds(); used <= 0.01 {
		t.Errorf("%g s of CPU time are counted, and the orphan used more", used)
	}
	p.cage.remove()
	if used, ok := p.cage.cpuSeconds(); ok || used != 0 {
		t.Errorf("a group that is gone has used %g s", used)
	}
}

// TestANumberThatMeansAnotherProcessIsLeftAlone simulates that the number of a
// command is given to a stranger, who leads a process group of its own: while a
// run still knows it, and when the next agent looks for what a dead one left.
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

	ended := &process{pid: number, reaped: true, done: make(chan struct{})}
	close(ended.done)
	ended.kill()
	ended.terminate(time.Millisecond)
	if members := ended.members(variableScratch + t.TempDir()); len(members) > 0 {
		t.Errorf("the ended command is thought to have the processes %v", members)
	}

	scratch := t.TempDir()
	dead := openIn(t, scratch)
	dead.cage.remove()
	for _, record := range []string{cageRecord, socketsRecord} { // names of what was, with the number in them
		if err := os.WriteFile(filepath.Join(dead.directory, record), fmt.Appendf(nil, "/nonexistent/tandem-%d-a", number), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := dead.lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openIn(t, scratch).close(); err != nil {
		t.Fatal(err)
	}
	if !alive(number) {
		t.Error("the stranger was ended")
	}
}

// alive reports whether the process runs; it is a child of this one.
func alive(pid int) bool {
	var status syscall.WaitStatus
	ended, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	return err == nil && ended == 0
}
