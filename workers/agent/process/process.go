// Package process starts commands and stays with them: slots whose process serves
// one run after the other, standard streams, the log, signs of life, and how a
// command ended. It also decides what a command may be and what it gets.
package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/cgroup"
	"github.com/tandem-tune/tandem/workers/agent/knob"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// privateMask keeps what a command writes readable to its user only, unless it
// says otherwise.
const privateMask = 0o077

// Process is a command running as the leader of a process group of its own, and
// in a control group of its own where there can be one.
type Process struct {
	pid   int
	group *cgroup.Group
	// mark is in the environment of what it starts.
	mark string
	// grouped says that the command really runs in the control group.
	grouped bool
	// events are counted in the command, and recorder looks at it; both nil
	// when it is not profiled.
	events []perf.Event
	// cores are where it starts; nil: wherever this process may run.
	cores []int
	// held is the launcher that becomes the command; nil without a sandbox.
	held     *sandbox.Held
	recorder *profiler.Recorder
	sampled  atomic.Pointer[func(seconds float64, seen *trial.Profile)]
	Done     chan struct{} // closed when the leader has ended and the group is killed

	mutex  sync.Mutex
	reaped bool
	killed bool // by us
	state  *os.ProcessState
}

// start starts the command. It dies with this process: the kernel kills it when
// the thread that started it ends, so one thread stays with it.
func (p *Process) start(command *exec.Cmd) (*Process, error) {
	p.Done = make(chan struct{})
	started := make(chan error, 1)
	go p.launch(command, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Process) launch(command *exec.Cmd, started chan<- error) {
	// Never unlocked: the thread has its own umask and must not be used again.
	runtime.LockOSThread()
	if unix.Unshare(unix.CLONE_FS) == nil { // refused in some containers
		unix.Umask(privateMask)
	}
	if p.cores != nil {
		_ = unix.SchedSetaffinity(0, knob.CPUSet(p.cores)) // inherited; if it is refused, that is found when it is set again
	}
	var counters *perf.Counters
	if p.events != nil {
		counters = perf.OpenFirst(p.events, maxEvents) // what this thread starts inherits them
	}
	environment := command.Env
	if p.held != nil {
		command = p.held.Command
	}
	command, grouped, err := startIn(command, p.group)
	if err == nil {
		p.pid, p.grouped = command.Process.Pid, grouped
	}
	p.record(counters, err == nil, environment)
	if p.held != nil {
		err = p.become(command, err)
	}
	started <- err
	if err != nil {
		return
	}
	preferAsVictim(p.pid)
	profiler.AwaitEnd(p.pid)
	if p.recorder != nil {
		p.recorder.Stop() // what the command left behind still runs, and counts
	}
	// Until it is reaped, its number cannot belong to another group.
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.send(unix.SIGKILL)
	p.group.Kill()
	_ = command.Wait() // says how it ended, as ProcessState does
	p.state, p.reaped = command.ProcessState, true
	close(p.Done)
}

// become returns when the launcher, if it was started, is the command. What it
// did before is not the command's.
func (p *Process) become(launcher *exec.Cmd, err error) error {
	defer p.held.Close()
	if err != nil {
		return err
	}
	if err = p.held.Await(); err == nil {
		p.Lap()
		return nil
	}
	if p.recorder != nil {
		p.recorder.Stop()
	}
	_ = unix.Kill(-p.pid, unix.SIGKILL) // it may have ended
	_ = launcher.Wait()                 // what it had to say, it has said
	return err
}

// record begins to look at the started command; without one it gives the
// counters back.
func (p *Process) record(counters *perf.Counters, started bool, environment []string) {
	switch {
	case counters == nil:
	case !started:
		counters.Close()
	default:
		options := profiler.RecorderOptions{Leader: p.pid, Environment: environment, Sampled: func(seen profiler.Profile) {
			if tell := p.sampled.Load(); tell != nil {
				(*tell)(seen.Seconds, CompactProfile(seen))
			}
		}}
		if p.grouped {
			options.Cgroup = p.group.Directory
		}
		p.recorder = profiler.Record(counters, options)
	}
}

// Sample has every look at the command told from now on, in place of who heard of it
// until now.
func (p *Process) Sample(tell func(seconds float64, seen *trial.Profile)) { p.sampled.Store(&tell) }

// Profile is what the command did since it was asked last; nil when it is not
// profiled.
func (p *Process) Profile() *trial.Profile {
	if p.recorder == nil {
		return nil
	}
	return CompactProfile(p.recorder.Lap())
}

// Lap lets the next profile begin now.
func (p *Process) Lap() {
	if p.recorder != nil {
		p.recorder.Lap()
	}
}

// startIn starts the command in the control group, or without one: the kernel or
// a container may refuse it. It returns the command that was started, and where.
func startIn(command *exec.Cmd, in *cgroup.Group) (started *exec.Cmd, grouped bool, err error) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	}
	group := in.Open()
	if group < 0 {
		return command, false, command.Start()
	}
	defer unix.Close(group)
	started = &exec.Cmd{Path: command.Path, Args: command.Args, Dir: command.Dir, Env: command.Env, Stdout: command.Stdout, Stderr: command.Stderr, ExtraFiles: command.ExtraFiles}
	attributes := *command.SysProcAttr
	attributes.UseCgroupFD, attributes.CgroupFD = true, group
	started.SysProcAttr = &attributes
	if started.Start() == nil {
		return started, true, nil
	}
	return command, false, command.Start()
}

// CPUSeconds is the CPU time the command and all it started have used. Without
// a control group, what was orphaned before it ended is not in it.
func (p *Process) CPUSeconds() float64 {
	if p.grouped {
		if used, ok := p.group.CPUSeconds(); ok {
			return used
		}
	}
	return proc.GroupCPUSeconds(p.pid)
}

// Members are the processes of the command that run now. None once it has ended.
func (p *Process) Members() []int {
	p.mutex.Lock()
	reaped := p.reaped
	p.mutex.Unlock()
	switch {
	case reaped:
		return nil
	case p.grouped:
		return cgroup.Processes(p.group.Directory)
	}
	return cgroup.Members(p.pid, p.mark)
}

// Grouped reports whether it runs in a control group of its own.
func (p *Process) Grouped() bool { return p.grouped }

// owns reports whether the process is one of the command's, by what the process
// itself cannot choose: its control group, its session, its parents.
func (p *Process) owns(pid int) bool {
	if p.grouped {
		return slices.Contains(cgroup.Processes(p.group.Directory), pid)
	}
	return cgroup.Descends(pid, p.pid)
}

// preferAsVictim has the kernel end the command rather than this process when
// memory runs out.
func preferAsVictim(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("500"), 0) // best effort
}

// send signals the whole group. The caller holds the mutex.
func (p *Process) send(signal unix.Signal) {
	if !p.reaped {
		_ = unix.Kill(-p.pid, signal) // fails only when nobody is left
	}
}

// Ended reports whether the command has.
func (p *Process) Ended() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// Kill ends the group and all that is in the control group.
func (p *Process) Kill() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.reaped {
		p.killed = true
		p.send(unix.SIGKILL)
		p.group.Kill()
	}
}

// Terminate asks the group to end and kills it after the grace.
func (p *Process) Terminate(grace time.Duration) {
	p.mutex.Lock()
	p.send(unix.SIGTERM)
	p.send(unix.SIGCONT) // a stopped process cannot obey
	p.mutex.Unlock()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.Done:
	case <-timer.C:
		p.Kill()
	}
}

// Exit is valid once done is closed.
func (p *Process) Exit() Exit {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	e := Exit{Code: p.state.ExitCode(), Killed: p.killed}
	if status, ok := p.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
	}
	if usage, ok := p.state.SysUsage().(*syscall.Rusage); ok {
		e.Peak = usage.Maxrss << 10
	}
	return e
}
