package agent

import (
	"os/exec"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/process"
	"github.com/tandem-tune/tandem/workers/agent/script"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// launch starts the prepared command and the measurement of its first epoch.
func (r starting) launch(command *exec.Cmd, environment map[string]string) (err error) {
	s := r.slot
	if s.Subject.Environment, err = process.Variables(environment); err != nil {
		return err
	}
	s.Subject.GPUs = r.lease.GPUs
	r.reporting.Lock() // a quick script waits until its measurement has begun
	defer r.reporting.Unlock()
	r.settings.Apply(r.slot.Subject)
	if err := s.Start(process.Driven(command, r.lease), command.Path, r.agent.events, r.lease.Sandbox == string(sandbox.Strict)); err != nil {
		return err
	}
	s.Fixed = r.settings.Fixed()
	r.measure()
	return nil
}

// handOver gives the waiting process the run, whose variables it is told. Nothing
// that it did before counts.
func (r starting) handOver(own map[string]string) error {
	s := r.slot
	if err := s.HandOver(); err != nil {
		return err
	}
	r.reporting.Lock()
	defer r.reporting.Unlock()
	r.settings.Inherit(s.Fixed)
	s.Process.Lap()
	r.measure()
	s.Asking.Answer(script.Next{Next: true, Environment: own})
	return nil
}

// measure begins to read what the command writes and to measure its first epoch.
// The caller holds the reports.
func (r starting) measure() {
	p, used := r.slot.Process, 0.0
	r.output = &process.Capture{Log: r.log, Secrets: r.secrets.Secrets, Heard: &r.watchdog.Heard, Line: func(line []byte) {
		if report, ok := script.ParseLine(line); ok {
			r.noteOutbox(r.outbox.Keep(protocol.Report{LeaseEpoch: r.lease.LeaseEpoch, Epoch: report.Epoch, Metrics: report.Metrics}))
			r.lines <- report
		}
	}}
	r.output.Read(r.slot.Streams)
	r.window = r.agent.meter.OpenFor(r.slot.Subject.Environment, func() float64 {
		used = max(used, p.CPUSeconds()) // what was orphaned does not count backwards
		return used
	})
	gauge := r.agent.meter.Gauge()
	p.Sample(func(seconds float64, seen *trial.Profile) {
		load, _ := gauge.Read()
		r.samples.Add(seconds, seen, load.Watts, load.Method)
	})
	r.agent.colocated.Change(1)
	r.mark = r.agent.colocated.Snapshot()
	r.settings.Apply(r.slot.Subject)
	r.begin(p)
}
