package profiler

import (
	"github.com/tandem-tune/tandem/profiler/proc"
	"os/exec"
	"syscall"
	"testing"
)

// BenchmarkSample is one look at a tree of 200 processes, of a machine that has
// no others to speak of.
func BenchmarkSample(b *testing.B) {
	command := exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 199 ]; do sleep 1000 & i=$((i+1)); done; echo started; wait")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Skipf("no sh: %v", err)
	}
	defer func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		_ = command.Wait()
	}()
	if _, err := out.Read(make([]byte, 8)); err != nil {
		b.Fatal(err)
	}
	h := proc.NewHost("")
	tree := proc.NewTree(h, command.Process.Pid, "")
	b.Run("tree", func(b *testing.B) {
		for b.Loop() {
			tree.Observe(false)
		}
	})
	b.Run("tree and strays", func(b *testing.B) {
		for b.Loop() {
			tree.Observe(true)
		}
	})
	b.Run("machine", func(b *testing.B) {
		for b.Loop() {
			proc.ObserveMachine(h)
		}
	})
	b.Run("group CPU", func(b *testing.B) {
		for b.Loop() {
			proc.GroupCPUSeconds(command.Process.Pid)
		}
	})
}
