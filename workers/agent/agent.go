// Package agent answers: how does one machine run a trial?
//
// An [Agent] registers with a server, pulls leases, starts each trial's command
// in a process group of its own, and carries its reports, checkpoints and log
// back. It takes no tuning decision: what to run and when to end is the
// server's word, and the package knows neither studies nor searches.
//
// Its one invariant: a command never outlives its lease. When the lease is
// lost, or when nothing was heard for so long that the server may give the trial
// to another worker, the whole process group is killed first. (A refused connection
// is heard: no server is there.) What was reported before is still told when the
// server is back, for it to refuse if it has given the trial away.
package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/artifact"
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
	"github.com/tandem-tune/tandem/workers/agent/knob"
	"github.com/tandem-tune/tandem/workers/agent/leave"
	"github.com/tandem-tune/tandem/workers/agent/probe"
	"github.com/tandem-tune/tandem/workers/agent/process"
	"github.com/tandem-tune/tandem/workers/agent/retry"
	"github.com/tandem-tune/tandem/workers/agent/workspace"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// Agent runs trials on this machine until it is told to stop.
type Agent struct {
	options   Options
	id        string
	workspace *workspace.Workspace
	cache     *artifact.Cache
	shelf     *artifact.Shelf
	memory    artifact.Memory
	sandbox   *sandbox.Sandbox
	meter     *profiler.Meter
	gauge     *profiler.Gauge
	// measures is what trials can be measured with here.
	measures []protocol.Measure
	controls *knob.Controls
	sprints  *knob.Account
	// machine is what this machine was when the worker started: trials may change
	// its settings later.
	machine protocol.Machine
	// probes are what the probing tasks took on it.
	probes []protocol.Probe
	cores  int
	// events are what is counted in commands; nil when they are not profiled.
	events []perf.Event
	// soon asks for a heartbeat now.
	soon      chan struct{}
	colocated clock.Count
	// staying tells when the worker leaves by itself, which leave makes it do.
	staying leave.Watch
	leave   context.CancelCauseFunc
	pool    process.IdlePool
	rules   process.Rules
	// deliveries tell the server what is left of leases that are over here, while
	// alive lasts.
	deliveries sync.WaitGroup
	alive      context.Context
	bench      artifact.Bench

	mutex  sync.Mutex
	timing protocol.Timing
	runs   map[trial.ID]*run
	// registrations counts the successful ones, so that several loops that
	// find the registration gone renew it once.
	registrations int
	registering   sync.Mutex
	// said are warnings that would be the same for every trial.
	said map[string]bool
}

// maxSaid bounds the warnings that are remembered.
const maxSaid = 64

// news reports whether the warning was not given before.
func (a *Agent) news(warning string) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.said[warning] {
		return false
	}
	if len(a.said) < maxSaid {
		a.said[warning] = true
	}
	return true
}

// New returns an agent; nothing is started or sent before [Agent.Run].
func New(options Options) (*Agent, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	options.Server = faulty{options.Server}
	return &Agent{
		options: options, rules: options.rules(), id: newID(options.Name),
		soon: make(chan struct{}, 1), runs: map[trial.ID]*run{}, said: map[string]bool{},
		staying: leave.Watch{Rules: options.Leave, Drain: options.DrainGrace + drainWrites},
	}, nil
}

// newID makes an id that people recognise in a trial's history: the name as far
// as an id can hold it, and 60 random bits.
func newID(name string) string {
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, name)
	return readable[:min(len(readable), 40)] + "-" + strings.ToLower(rand.Text()[:12])
}

// Run works until the context ends, then drains: it asks for nothing more, ends
// the commands (SIGTERM, after a grace SIGKILL), gives their trials back and
// unregisters. It returns nil after a drain, or when the one study it was
// restricted to is over; an error when it cannot work at all.
func (a *Agent) Run(ctx context.Context) (err error) {
	if a.sandbox, err = sandbox.Open(ctx, a.options.confinement()); err != nil {
		return err
	}
	a.controls = knob.New(knob.Options{Root: a.options.Root, OpenGPUs: a.options.openGPUs})
	a.sprints = knob.NewAccount(a.options.Sprint, clock.Now())
	defer a.controls.Close()
	a.pool.Host = process.Host{Controls: a.controls, Sandbox: a.sandbox, StopGrace: a.options.StopGrace, NextWait: a.options.NextWait, Logger: a.options.Logger}
	if a.workspace, err = workspace.Open(a.options.Scratch, a.id, a.options.Sole, a.controls.Restore, a.options.Logger); err != nil {
		return err
	}
	a.controls.Journal(a.workspace.Journal())
	defer func() { err = errors.Join(err, a.closeWorkspace()) }()
	a.cache = artifact.NewCache(a.workspace.CacheDirectory(), a.options.CachedArtifacts, a.options.MaxCheckpointBytes)
	machine := profiler.ThisMachine()
	a.cores = machine.Cores
	a.shelf = (&artifact.Shelf{Server: a.options.Server, Forgets: a.options.Enclave != nil, Memory: a.workspace.Memory, MemoryBytes: machine.MemoryBytes / memoryForData}).Open(a.workspace.DataDirectory())
	a.meter = profiler.OpenMeter(profiler.MeterOptions{
		External: a.options.Meter, WattsPerCore: a.options.WattsPerCore, IdleWattsPerCore: a.options.IdleWattsPerCore, Origin: a.options.WattsOrigin, Cores: machine.Cores, Slots: a.options.Slots, Elastic: a.options.Elastic,
	})
	defer a.meter.Close()
	a.machine = a.describe(machine)
	if err := a.options.Leave.Check(len(a.machine.GPUs)); err != nil {
		return err
	}
	if err := a.admitted(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	a.probes = a.prober().Run(ctx)
	a.gauge, a.measures = a.meter.Gauge(), probe.Measures(profiler.Measurable(a.options.Root), a.options.NoProfile)
	a.events = a.options.counted()

	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	a.leave = fail
	if err := a.register(ctx, 0); err != nil {
		return unlessEnded(ctx, err)
	}
	// Heartbeats and the watch over running trials go on until the last trial
	// is given back.
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.alive = alive
	a.staying.Begin()
	a.deliverInherited()
	var background sync.WaitGroup
	background.Go(func() { a.beat(alive) })
	background.Go(func() { a.watch(alive) })
	go gpu.Watch{Open: a.options.openGPUs, Every: a.options.gpuInterval, Occupants: a.occupants, Logger: a.options.Logger}.Run(alive)
	a.work(ctx, fail)
	a.bench.Wait()
	a.pool.Close()
	stop()
	background.Wait()
	a.deliveries.Wait()
	a.unregister(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ctx.Err()) && !errors.As(cause, new(leave.Departure)) {
		return cause
	}
	return nil
}

func (a *Agent) closeWorkspace() error {
	err := a.workspace.Close()
	if a.options.Leave.Launch != "" {
		_ = os.Remove(a.options.Scratch) // a job has one of its own; it stays if something is in it
	}
	return err
}

// Measured returns when no model waits to be measured, which goes on after its trial.
func (a *Agent) Measured() { a.bench.Wait() }

// memoryForData is what part of the memory data sets take at most.
const memoryForData = 8

// work has trials run by all slots, until they end; fail is told the cause.
func (a *Agent) work(ctx context.Context, fail context.CancelCauseFunc) {
	var slots sync.WaitGroup
	for range a.options.Slots {
		slots.Go(func() {
			if err := a.slot(ctx); err != nil {
				fail(err)
			}
		})
	}
	slots.Wait()
}

// counted are the events that are counted of trials.
func (o Options) counted() []perf.Event {
	if o.NoProfile {
		return nil
	}
	return perf.Events()
}

// unlessEnded hides errors that only say that the context ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// slot runs one trial after the other.
func (a *Agent) slot(ctx context.Context) error {
	faults, unknown, ask := retry.NewPause(time.Second, time.Minute), 0, newQuestion()
	for ctx.Err() == nil {
		if a.staying.Late() { // the watch ends the worker when nothing runs any more
			<-ctx.Done()
			return nil
		}
		a.options.Enclave.Rest(ctx)
		registrations := a.registered()
		reply, sent, err := a.ask(ctx, &ask)
		if !problem.Is(err, problem.NotFound) {
			unknown = 0
		}
		switch {
		case reply.Lease != nil:
			if a.run(ctx, *reply.Lease, sent) {
				faults.Reset()
				continue
			}
			if err := a.controls.GPULost(); err != nil {
				return fmt.Errorf("%w: this worker takes no more trials; mend the machine (nvidia-smi tells more), then start it again", err)
			}
			faults.Wait(ctx)
		case err == nil && reply.StudyFinished && a.options.Study != "":
			return nil
		case err == nil:
			faults.Reset()
			// A server that does not hold the request open is not asked in a
			// tight loop.
			if clock.Now() < sent+clock.Moment(minPoll) {
				clock.Sleep(ctx, clock.Jittered(minPoll))
			}
		case problem.Is(err, problem.Unauthorized) || problem.Is(err, problem.Forbidden):
			return err
		case problem.Is(err, problem.NotFound):
			// It is the worker the server does not know, or the study.
			if unknown++; a.options.Study != "" && unknown > certain {
				return err
			}
			if err := a.register(ctx, registrations); err != nil {
				return unlessEnded(ctx, err)
			}
			faults.Wait(ctx)
		case ctx.Err() == nil:
			a.options.Logger.Warn("cannot lease a trial; trying again", "error", err)
			faults.Wait(ctx)
		}
	}
	return nil
}

// certain is after how many answers in a row that something is not there it
// is taken to be the study: a server that knows no worker does after the first.
const certain = 2

const (
	longPoll = 30 * time.Second
	minPoll  = 500 * time.Millisecond
)

func (a *Agent) times() protocol.Timing {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.timing
}

// add makes a run known to the heartbeat, which takes place at once: until it
// is answered the lease counts from before the server granted it.
func (a *Agent) add(r *run) {
	a.mutex.Lock()
	a.runs[r.lease.Trial] = r
	a.mutex.Unlock()
	a.beatNow()
}

// beatNow asks for a heartbeat at once.
func (a *Agent) beatNow() {
	select {
	case a.soon <- struct{}{}:
	default:
	}
}

func (a *Agent) remove(r *run) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.runs[r.lease.Trial] == r {
		delete(a.runs, r.lease.Trial)
	}
}

func (a *Agent) running() []*run {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Collect(maps.Values(a.runs))
}
