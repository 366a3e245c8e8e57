package agent

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"syscall"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// launch starts the prepared command and the measurement of its first epoch.
func (r *run) launch(command *exec.Cmd, environment map[string]string) (err error) {
	s := r.seat
	if s.subject.environment, err = variables(environment); err != nil {
		return studyFault{err.Error()}
	}
	outlets, stdout, stderr, err := openOutlets()
	if err != nil {
		return fmt.Errorf("make the pipes for the output: %w", err)
	}
	s.subject.gpus = r.lease.GPUs
	r.reporting.Lock() // a quick script waits until its measurement has begun
	defer r.reporting.Unlock()
	r.apply()
	command.Env, command.Stdout, command.Stderr = s.subject.environment, stdout, stderr
	p := &process{group: s.home.group, mark: s.home.mark(), events: r.agent.events, cores: s.subject.cores}
	if p.held, err = r.agent.hold(command, s.home, r.lease.Sandbox == string(sandbox.Strict)); err == nil {
		p, err = p.start(command)
	}
	_, _ = stdout.Close(), stderr.Close() // the command has its own
	if err != nil {
		outlets.close()
		return r.startFault(command, err)
	}
	s.process, s.subject.process, s.outlets = p, p, outlets
	close(s.begun)
	for _, about := range system.Catalogue() {
		if value, has := r.setting.applied[about.Name]; has && !about.Live {
			s.fixed[about.Name] = value
		}
	}
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
	maps.Copy(r.setting.applied, s.fixed)
	s.process.lap()
	r.measure()
	s.asking.answer <- nextAnswer{Next: true, Environment: own}
	return nil
}

// measure begins to read what the command writes and to measure its first epoch.
// The caller holds the reports.
func (r *run) measure() {
	p, used := r.seat.process, 0.0
	r.output = &capture{log: r.log, secrets: r.secrets.secrets, heard: &r.vigil.heard, line: func(line []byte) {
		if report, ok := parseLine(line); ok {
			r.keep(protocol.Report{LeaseEpoch: r.lease.LeaseEpoch, Epoch: report.Epoch, Metrics: report.Metrics})
			r.lines <- report
		}
	}}
	r.output.read(r.seat.outlets)
	r.window = r.agent.meter.OpenFor(r.seat.subject.environment, func() float64 {
		used = max(used, p.cpuSeconds()) // what was orphaned does not count backwards
		return used
	})
	r.agent.company.change(1)
	r.mark = r.agent.company.stand()
	r.apply()
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
