package agent

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/sandbox"

	"github.com/tandem-tune/tandem/workers/agent/script"
)

// launch starts the prepared command and the measurement of its first epoch.
func (r *run) launch(command *exec.Cmd, environment map[string]string) (err error) {
	s := r.seat
	if s.subject.Environment, err = variables(environment); err != nil {
		return studyFault{err.Error()}
	}
	outlets, stdout, stderr, err := openOutlets()
	if err != nil {
		return fmt.Errorf("make the pipes for the output: %w", err)
	}
	s.subject.GPUs = r.lease.GPUs
	r.reporting.Lock() // a quick script waits until its measurement has begun
	defer r.reporting.Unlock()
	r.settings.Apply(r.seat.subject)
	command.Env, command.Stdout, command.Stderr = s.subject.Environment, stdout, stderr
	p := &process{group: s.folder.Group, mark: s.folder.Mark(), events: r.agent.events, cores: s.subject.Cores}
	if p.held, err = r.agent.hold(command, s.folder, r.lease.Sandbox == string(sandbox.Strict)); err == nil {
		p, err = p.start(command)
	}
	_, _ = stdout.Close(), stderr.Close() // the command has its own
	if err != nil {
		outlets.close()
		return r.startFault(command, err)
	}
	s.process, s.subject.Command, s.outlets = p, p, outlets
	close(s.begun)
	s.fixed = r.settings.Fixed()
	r.measure()
	return nil
}

// handOver gives the waiting process the run, whose variables it is told. Nothing
// that it did before counts.
func (r *run) handOver(own map[string]string) error {
	s := r.seat
	if s.left() {
		return errors.New("the process that waited for it has ended")
	}
	s.idle.stop(0)
	s.idle = nil
	r.reporting.Lock()
	defer r.reporting.Unlock()
	r.settings.Inherit(s.fixed)
	s.process.lap()
	r.measure()
	s.asking.Answer(script.Next{Next: true, Environment: own})
	return nil
}

// measure begins to read what the command writes and to measure its first epoch.
// The caller holds the reports.
func (r *run) measure() {
	p, used := r.seat.process, 0.0
	r.output = &capture{log: r.log, secrets: r.secrets.secrets, heard: &r.vigil.heard, line: func(line []byte) {
		if report, ok := script.ParseLine(line); ok {
			r.keep(protocol.Report{LeaseEpoch: r.lease.LeaseEpoch, Epoch: report.Epoch, Metrics: report.Metrics})
			r.lines <- report
		}
	}}
	r.output.read(r.seat.outlets)
	r.window = r.agent.meter.OpenFor(r.seat.subject.Environment, func() float64 {
		used = max(used, p.cpuSeconds()) // what was orphaned does not count backwards
		return used
	})
	r.agent.company.change(1)
	r.mark = r.agent.company.stand()
	r.settings.Apply(r.seat.subject)
	r.begin(p)
}

// startFault tells a command that cannot be started from a worker that is out
// of something.
func (r *run) startFault(command *exec.Cmd, err error) error {
	if errors.As(err, new(sandbox.Failure)) {
		return err
	}
	for _, scarce := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, scarce) {
			return fmt.Errorf("start the command: %w", err)
		}
	}
	reason := fmt.Sprintf("the command cannot be started: %s: %v", command.Path, errors.Unwrap(err))
	if r.agent.sandbox.Mode() != sandbox.Off && errors.Is(err, syscall.EACCES) {
		reason += "; " + sandbox.HowToGrant(command.Path)
	}
	return studyFault{reason}
}
