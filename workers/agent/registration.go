package agent

import (
	"context"
	"os"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/workers/agent/probe"
	"github.com/tandem-tune/tandem/workers/agent/process"
	"github.com/tandem-tune/tandem/workers/agent/retry"
)

const leavePatience = 5 * time.Second

// registered is how often the agent has registered so far.
func (a *Agent) registered() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.registrations
}

// register introduces the worker, waiting for a server that is away. Of
// several loops that saw the same registration fail, one registers again.
func (a *Agent) register(ctx context.Context, seen int) error {
	a.registering.Lock()
	defer a.registering.Unlock()
	if a.registered() != seen {
		return nil
	}
	return a.await(ctx, func(ctx context.Context) error {
		timing, err := a.options.Server.Register(ctx, a.registration())
		if err != nil {
			return err
		}
		if timing.LeaseSeconds <= 0 || timing.HeartbeatSeconds <= 0 {
			return problem.New(problem.Invalid, "the server gave no lease or heartbeat time")
		}
		a.mutex.Lock()
		defer a.mutex.Unlock()
		a.timing = timing
		a.registrations++
		a.options.Logger.Info("registered", "worker", a.id, "name", a.options.Name, "slots", a.options.Slots)
		return nil
	})
}

// admitted finds out whether the server takes the worker's token, before anything
// that takes time is done for it.
func (a *Agent) admitted(ctx context.Context) error {
	return a.await(ctx, func(ctx context.Context) error {
		who, err := a.options.Server.Identity(ctx)
		if err == nil && (who.Scope == "viewer" || who.Scope == "link") {
			err = problem.New(problem.Forbidden, "a token with the scope %s runs no trials: make one with 'tandem token create --scope worker', or use a user's", who.Scope)
		}
		return err
	})
}

// await calls the server until it answers.
func (a *Agent) await(ctx context.Context, call func(context.Context) error) error {
	warned := false
	stalled := func(err error) {
		if !warned {
			a.options.Logger.Warn("the server does not answer; waiting for it", "error", err)
		}
		warned = true
	}
	return retry.Do(ctx, retry.CallPatience, stalled, call)
}

func (a *Agent) registration() protocol.WorkerRegistration {
	return protocol.WorkerRegistration{
		ID: a.id, Name: a.options.Name, Slots: a.options.Slots, Elastic: a.options.Elastic, Sandbox: a.sandboxed(), Measures: a.measures,
		Machine: a.machine, Probes: a.probes, Launch: a.options.Leave.Launch, Labels: a.options.Labels, Taints: a.options.Taints, StaysSeconds: a.options.Leave.Left(a.options.DrainGrace).Seconds(), Recipients: a.options.Keys.Recipients(), Confidential: a.options.Enclave.Claim(), Features: protocol.Features(),
	}
}

// describe is what the server is told of the machine.
func (a *Agent) describe(machine profiler.Machine) protocol.Machine {
	described := probe.Machine(machine)
	described.Host, described.EnergyMethod, described.Knobs = a.options.Name, a.meter.Method(), a.controls.Settable()
	if described.Threads = process.OwnThreads(machine.Cores); described.Threads > 0 {
		a.options.Logger.Info("threads are not tuned here unless a study lists values: the environment sets them", "threads", described.Threads)
	}
	described.GPUs, described.GPUMemoryBytes = a.controls.UsableGPUs(machine)
	if host := a.options.Leave.Host; host != "" {
		described.Host = host
	} else if host, err := os.Hostname(); err == nil {
		described.Host = host
	}
	return described
}

// unregister says good-bye. A server that is away finds out by itself.
func (a *Agent) unregister(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavePatience)
	defer cancel()
	if err := a.options.Server.Unregister(ctx, a.id); err != nil {
		a.options.Logger.Info("left without the server's knowledge", "error", err)
	}
}

// prober runs the probing tasks as the options say.
func (a *Agent) prober() probe.Prober {
	return probe.Prober{
		Mode: a.options.Probe, File: a.options.ProbesFile, Machine: a.machine, Controls: a.controls, Tasks: a.options.tasks, Busy: a.options.coreSeconds, Span: probe.Span, Logger: a.options.Logger,
		Meter: profiler.MeterOptions{External: a.options.Meter, WattsPerCore: a.options.WattsPerCore, IdleWattsPerCore: a.options.IdleWattsPerCore, Origin: a.options.WattsOrigin, Cores: a.machine.Cores},
	}
}
