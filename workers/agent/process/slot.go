package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/agent/cgroup"
	"github.com/tandem-tune/tandem/workers/agent/knob"
	"github.com/tandem-tune/tandem/workers/agent/script"
	"github.com/tandem-tune/tandem/workers/agent/workspace"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// Host is what the slots of a worker share.
type Host struct {
	Controls *knob.Controls
	Sandbox  *sandbox.Sandbox
	// StopGrace is how long a command may take to end that hears that there is no
	// further trial for it, NextWait how long it is kept for one.
	StopGrace, NextWait time.Duration
	Logger              *slog.Logger
}

var missingModule = regexp.MustCompile(`No module named '([^']+)'`)

// Explain adds to a command's failure what the sandbox may have to do with it, or what
// its Python lacks.
func (h Host) Explain(request protocol.FinishRequest, lastErrors []string, directory, own string) protocol.FinishRequest {
	if request.Outcome != protocol.CommandFailed {
		return request
	}
	hint := h.Sandbox.Explain(lastErrors, directory, own)
	if len(lastErrors) > 0 && hint == "" {
		if missing := missingModule.FindStringSubmatch(lastErrors[len(lastErrors)-1]); missing != nil {
			hint = fmt.Sprintf("the Python that ran the script has no module %s: install it there, or start the worker with --path and the folder bin of an environment that has it", missing[1])
		}
	}
	if hint != "" {
		request.Reason = fmt.Sprintf("%s\ntandem: %s", request.Reason, hint)
	}
	return request
}

// Slot is a command's process and what stays with it when one run ends and the
// next begins in the same process.
type Slot struct {
	host    Host
	kind    string // see Kind
	gpus    []int  // those that its runs are given, by their place; the same for all of a kind
	Folder  *workspace.Folder
	Process *Process // nil before the command is started
	Subject *knob.Subject
	Streams Streams
	// Fixed are the applied knobs that hold as long as the process.
	Fixed system.Configuration
	// shortages is how often the kernel ended a process of it at its limit of memory.
	shortages int64
	// former is the socket of the run before: it says that that one is over.
	former *script.Socket
	// Asking is the script's call for its next trial, idle takes what it writes
	// meanwhile, and taken is closed when it waits no longer.
	Asking *script.Asking
	idle   *Capture
	taken  chan struct{}
	// begun is closed once process is set.
	begun chan struct{}
}

// Kind is what two leases must have in common for one process to serve both:
// the study, the program, and all that only a new start changes.
func Kind(lease protocol.Lease, command *exec.Cmd, environment map[string]string) string {
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
		for _, name := range system.ThreadVariables() {
			delete(environment, name)
		}
	}
	return fmt.Sprintf("%q %q %q %q %q %q %q %q %t %t %v", lease.StudyID, lease.Sandbox, lease.Secrets, command.Path, command.Args, command.Dir, environment, fixed.Key(), bounded, switches, lease.GPUs)
}

// Start starts the prepared command, which is or starts the program, with the subject's environment on the subject's
// cores, in the sandbox if there is one or it has to be strict. The events are
// counted in it.
func (s *Slot) Start(command *exec.Cmd, program string, events []perf.Event, strict bool) error {
	streams, stdout, stderr, err := openStreams()
	if err != nil {
		return fmt.Errorf("make the pipes for the output: %w", err)
	}
	command.Env, command.Stdout, command.Stderr = s.Subject.Environment, stdout, stderr
	p := &Process{group: s.Folder.Group, mark: s.Folder.Mark(), events: events, cores: s.Subject.Cores}
	if p.held, err = s.hold(command, program, strict); err == nil {
		p, err = p.start(command)
	}
	_, _ = stdout.Close(), stderr.Close() // the command has its own
	if err != nil {
		streams.close()
		return s.startFault(command, err)
	}
	s.Process, s.Subject.Command, s.Streams = p, p, streams
	close(s.begun)
	return nil
}

// startFault tells a command that cannot be started from a worker that is out
// of something.
func (s *Slot) startFault(command *exec.Cmd, err error) error {
	if errors.As(err, new(sandbox.Failure)) {
		return err
	}
	for _, scarce := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, scarce) {
			return fmt.Errorf("start the command: %w", err)
		}
	}
	reason := fmt.Sprintf("the command cannot be started: %s: %v", command.Path, errors.Unwrap(err))
	if info, statErr := os.Stat(command.Path); statErr == nil && info.Mode()&0o111 == 0 {
		reason += "; make it executable: chmod +x"
	} else if s.host.Sandbox.Mode() != sandbox.Off && errors.Is(err, syscall.EACCES) {
		reason += "; " + sandbox.HowToGrant(command.Path)
	}
	return StudyFault{reason}
}

// HandOver ends the wait of the process for a run, whose variables Answer tells it.
func (s *Slot) HandOver() error {
	if s.left() {
		return errors.New("the process that waited for it has ended")
	}
	s.idle.Stop(0)
	s.idle = nil
	return nil
}

// childrenEnd is how long processes that the script has ended may take to be
// gone.
const childrenEnd = 200 * time.Millisecond

// Alone reports whether the command has no process but the one it began with:
// what another one does could not be told from the next trial.
func (s *Slot) Alone() bool {
	for deadline := time.Now().Add(childrenEnd); ; time.Sleep(childrenEnd / 10) {
		others := 0
		for _, pid := range s.Process.Members() {
			if pid != s.Process.pid {
				others++
			}
		}
		if others == 0 || time.Now().After(deadline) {
			return others == 0
		}
	}
}

// left reports whether the waiting script has hung up or ended.
func (s *Slot) left() bool {
	select {
	case <-s.Process.Done:
		return true
	case <-s.Asking.Gone():
		return true
	default:
		return false
	}
}

// Retire keeps the socket of a run that is over, in place of the one before.
func (s *Slot) Retire(old *script.Socket) {
	if s.former != nil {
		s.former.Close()
	}
	s.former = old
}

// listenIdly takes what the command writes while it has no run, and drops it.
func (s *Slot) listenIdly() {
	s.idle = &Capture{Log: &Log{closed: true}, Line: func([]byte) {}}
	s.idle.Read(s.Streams)
}

// MoreShortage is whether the kernel ended a process of it at its limit of memory
// since this was last asked, and the most memory there was, in bytes.
func (s *Slot) MoreShortage() (more bool, peak int64) {
	ended, peak, bounded := s.Subject.Shortage()
	if !bounded {
		return false, 0
	}
	more = ended > s.shortages
	s.shortages = ended
	return more, peak
}

// KillOrphans ends what had left the command's group, and returns how many there
// were.
func (s *Slot) KillOrphans() int {
	if s.Process.grouped { // the kernel has ended all of a control group
		return 0
	}
	return cgroup.KillMarked(s.Folder.Mark())
}

// Dismiss tells the waiting script that there is no further trial, and returns
// when the command has ended.
func (s *Slot) Dismiss() {
	if s.idle == nil {
		s.listenIdly()
	}
	s.Asking.Answer(script.Next{})
	timer := time.NewTimer(s.host.StopGrace)
	defer timer.Stop()
	select {
	case <-s.Process.Done:
	case <-timer.C:
		s.Process.Kill()
		<-s.Process.Done
	}
	s.KillOrphans()
	s.idle.Stop(PipeLinger)
	if result := s.Process.Exit(); !result.OK() && result.Signal != syscall.SIGTERM {
		s.host.Logger.Warn("a command that had no further trial did not end well", "reason", Describe(result, s.idle.Errors.Lines(LastErrorLines)))
	}
	s.End()
}

// End removes what a command leaves, once it has ended or was not started.
func (s *Slot) End() {
	if s.Process != nil {
		s.Streams.close()
	}
	s.host.Controls.Release(s.Subject, true)
	s.Retire(nil)
	if err := s.Folder.Remove(); err != nil {
		s.host.Logger.Warn("cannot remove the command's folder", "error", err)
	}
}

// Admits refuses requests of processes that are not the command's: where nothing
// hides one command's socket from the others, they could speak in its name.
func (s *Slot) Admits(ctx context.Context, pid int) error {
	if s.host.Sandbox.Mode() == sandbox.Off {
		return nil
	}
	select {
	case <-s.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	if pid > 0 && s.Process.owns(pid) {
		return nil
	}
	return problem.New(problem.Forbidden, "process %d is not of this trial, or has left its session and its parents: only the trial's own processes may use its socket", pid)
}

// hold prepares a command's launcher; nil without a sandbox.
func (s *Slot) hold(command *exec.Cmd, program string, strict bool) (*sandbox.Held, error) {
	if s.host.Sandbox.Mode() == sandbox.Off && !strict {
		return nil, nil
	}
	return s.host.Sandbox.Hold(sandbox.Job{Command: command, Program: program, Own: []string{s.Folder.Directory, s.Folder.Sockets}, Read: s.Folder.Read, Strict: strict})
}
