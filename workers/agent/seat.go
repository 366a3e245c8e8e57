package agent

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/agent/cgroup"
	"github.com/tandem-tune/tandem/workers/agent/knob"
	"github.com/tandem-tune/tandem/workers/agent/workspace"

	"github.com/tandem-tune/tandem/workers/agent/script"
)

// seat is a command's process and what stays with it when one run ends and the
// next begins in the same process.
type seat struct {
	agent   *Agent
	kind    string // see kind
	gpus    []int  // those that its runs are given, by their place; the same for all of a kind
	folder  *workspace.Folder
	process *process // nil before the command is started
	subject *knob.Subject
	outlets outlets
	// fixed are the applied knobs that hold as long as the process.
	fixed system.Configuration
	// shortages is how often the kernel ended a process of it at its limit of memory.
	shortages int64
	// former is the socket of the run before: it says that that one is over.
	former *script.Socket
	// asking is the script's call for its next trial, idle takes what it writes
	// meanwhile, and taken is closed when it waits no longer.
	asking *script.Asking
	idle   *capture
	taken  chan struct{}
	// begun is closed once process is set.
	begun chan struct{}
}

// kind is what two leases must have in common for one process to serve both:
// the study, the program, and all that only a new start changes.
func kind(lease protocol.Lease, command *exec.Cmd, environment map[string]string) string {
	fixed := system.Configuration{}
	wanted := knob.Wanted(lease)
	for _, knob := range system.Catalogue() {
		if value, has := wanted[knob.Name]; has && !knob.Live {
			fixed[knob.Name] = value
		}
	}
	_, bounded := lease.System[system.MemoryGiB]
	_, switches := lease.System[system.CPUThreads]
	if switches { // then the script changes its threads itself
		for _, name := range threadVariables {
			delete(environment, name)
		}
	}
	return fmt.Sprintf("%q %q %q %q %q %q %q %q %t %t %v", lease.StudyID, lease.Sandbox, lease.Secrets, command.Path, command.Args, command.Dir, environment, fixed.Key(), bounded, switches, lease.GPUs)
}

// newSeat makes a command's folder; the command is started by a run.
func (a *Agent) newSeat(kind string, gpus []int) (*seat, error) {
	folder, err := a.workspace.NewFolder()
	if err != nil {
		return nil, fmt.Errorf("make the command's folder: %w", err)
	}
	return &seat{agent: a, kind: kind, gpus: gpus, folder: folder, subject: &knob.Subject{Group: folder.Group}, begun: make(chan struct{})}, nil
}

// childrenEnd is how long processes that the script has ended may take to be
// gone.
const childrenEnd = 200 * time.Millisecond

// alone reports whether the command has no process but the one it began with:
// what another one does could not be told from the next trial.
func (s *seat) alone() bool {
	for deadline := time.Now().Add(childrenEnd); ; time.Sleep(childrenEnd / 10) {
		others := 0
		for _, pid := range s.process.Members() {
			if pid != s.process.pid {
				others++
			}
		}
		if others == 0 || time.Now().After(deadline) {
			return others == 0
		}
	}
}

// left reports whether the waiting script has hung up or ended.
func (s *seat) left() bool {
	select {
	case <-s.process.done:
		return true
	case <-s.asking.Gone():
		return true
	default:
		return false
	}
}

// retire keeps the socket of a run that is over, in place of the one before.
func (s *seat) retire(old *script.Socket) {
	if s.former != nil {
		s.former.Close()
	}
	s.former = old
}

// listenIdly takes what the command writes while it has no run, and drops it.
func (s *seat) listenIdly() {
	s.idle = &capture{log: &logBook{closed: true}, line: func([]byte) {}}
	s.idle.read(s.outlets)
}

// killStray ends what had left the command's group, and returns how many there
// were.
func (s *seat) killStray() int {
	if s.process.grouped { // the kernel has ended all of a control group
		return 0
	}
	return cgroup.KillMarked(s.folder.Mark())
}

// dismiss tells the waiting script that there is no further trial, and returns
// when the command has ended.
func (s *seat) dismiss() {
	if s.idle == nil {
		s.listenIdly()
	}
	s.asking.Answer(script.Next{})
	timer := time.NewTimer(s.agent.options.StopGrace)
	defer timer.Stop()
	select {
	case <-s.process.done:
	case <-timer.C:
		s.process.kill()
		<-s.process.done
	}
	s.killStray()
	s.idle.stop(pipeLinger)
	if result := s.process.exit(); !result.ok() && result.signal != syscall.SIGTERM {
		s.agent.options.Logger.Warn("a command that had no further trial did not end well", "reason", describe(result, s.idle.errors.lines(lastErrorLines)))
	}
	s.end()
}

// end removes what a command leaves, once it has ended or was not started.
func (s *seat) end() {
	if s.process != nil {
		s.outlets.close()
	}
	s.agent.controls.Release(s.subject, true)
	s.retire(nil)
	if err := s.folder.Remove(); err != nil {
		s.agent.options.Logger.Warn("cannot remove the command's folder", "error", err)
	}
}
