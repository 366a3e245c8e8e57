package agent

import (
	"os/exec"
	"testing"
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
	p, err := start(&exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "setsid sh -c '" + work + "; echo done' & wait"}}, outer.inner("1"), nil, nil)
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
