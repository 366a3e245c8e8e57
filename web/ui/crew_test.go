package ui_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// modelled is how the simulated workers obtain joules.
const modelled = "estimate: 7.5 W for each busy core"

// epoch is what a simulated script does in one epoch.
type epoch struct {
	metrics map[string]trial.Float
	seconds float64
	printed string
	crash   string // if set, the script ends with this instead of reporting
	vanish  bool   // the worker is gone, without a word
}

// script plays one epoch of a trial that has trained the passes over the data.
type script func(lease protocol.Lease, number int, passes float64, random *rand.Rand) epoch

// occurrence is something that happens at a moment.
type occurrence struct {
	at  time.Time
	run func()
}

// crew plays workers against the service in simulated time: each slot leases a
// trial, reports its epochs as the study's script makes them up, and asks for
// the next.
type crew struct {
	*stage
	random  *rand.Rand
	scripts map[string]script // by study name
	agenda  []occurrence
	passes  map[trial.ID]float64
	logged  map[trial.ID]int64 // bytes of the present lease's log
	ticking bool
	meters  map[string]string // by worker: how it obtains joules
}

func newCrew(s *stage, scripts map[string]script) *crew {
	return &crew{stage: s, random: rand.New(rand.NewPCG(7, 11)), scripts: scripts, passes: map[trial.ID]float64{}, logged: map[trial.ID]int64{}, meters: map[string]string{}}
}

func (c *crew) later(wait time.Duration, run func()) {
	c.agenda = append(c.agenda, occurrence{c.clock.now().Add(wait), run})
}

// join lets a worker take part from now on.
func (c *crew) join(worker protocol.WorkerRegistration) {
	c.register(worker)
	c.meters[worker.ID] = worker.Machine.EnergyMethod
	for slot := range worker.Slots {
		c.later(time.Duration(slot)*700*time.Millisecond, func() { c.next(worker.ID) })
	}
	c.beat(worker.ID)
}

// beat keeps a worker known to be alive.
func (c *crew) beat(worker string) {
	if _, err := c.studies.Heartbeat(c.t.Context(), worker, protocol.Heartbeat{}); err != nil {
		c.t.Fatal(err)
	}
	c.later(10*time.Second, func() { c.beat(worker) })
}

// play lets everything happen until the moment, then lets the clock run.
func (c *crew) play(until time.Time) {
	c.tick()
	for len(c.agenda) > 0 {
		first := 0
		for i := range c.agenda {
			if c.agenda[i].at.Before(c.agenda[first].at) {
				first = i
			}
		}
		next := c.agenda[first]
		if next.at.After(until) {
			break
		}
		c.agenda = slices.Delete(c.agenda, first, first+1)
		c.clock.pin(next.at)
		next.run()
	}
	c.clock.pin(time.Time{})
}

// tick lets the server do what time alone makes due, and again soon.
func (c *crew) tick() {
	if err := c.studies.Tick(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	if !c.ticking {
		c.ticking = true
		c.later(5*time.Second, func() {
			c.ticking = false
			c.tick()
		})
	}
}

// next gives a free slot a trial, or lets it ask again.
func (c *crew) next(worker string) {
	reply, err := c.studies.Lease(c.t.Context(), protocol.LeaseRequest{Worker: worker})
	if err != nil {
		c.t.Fatal(err)
	}
	if reply.Lease == nil {
		c.later(2*time.Second, func() { c.next(worker) })
		return
	}
	lease := *reply.Lease
	if lease.Checkpoint == nil {
		c.passes[lease.Trial] = 0
	}
	c.logged[lease.Trial] = 0
	c.print(lease, fmt.Sprintf("loading the data: %.4g of it", lease.Budget.DataFraction))
	c.plan(worker, lease, lease.FirstEpoch)
}

// plan lets the epoch end after the time it takes.
func (c *crew) plan(worker string, lease protocol.Lease, number int) {
	played := c.scripts[lease.Study](lease, number, c.passes[lease.Trial]+lease.Budget.DataFraction, c.random)
	c.later(time.Duration(played.seconds*float64(time.Second)), func() { c.end(worker, lease, number, played) })
}

// end ends an epoch.
func (c *crew) end(worker string, lease protocol.Lease, number int, played epoch) {
	if played.vanish {
		c.later(90*time.Second, func() { c.next(worker) })
		return
	}
	for line := range strings.Lines(played.printed) {
		c.print(lease, strings.TrimSuffix(line, "\n"))
	}
	if played.crash != "" {
		c.finish(lease, protocol.CommandFailed, played.crash)
		c.next(worker)
		return
	}
	directive, err := c.studies.Report(c.t.Context(), lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: number, Metrics: played.metrics, Seconds: trial.Float(played.seconds),
		Energy:  &trial.Energy{Joules: trial.Float(played.seconds * 7.5 * (0.9 + 0.2*c.random.Float64())), Method: c.meters[worker]},
		Profile: pictured(number), System: lease.System,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.passes[lease.Trial] += lease.Budget.DataFraction
	if len(directive.System) > 0 {
		lease.System = directive.System
	}
	if directive.Action == protocol.Continue {
		c.plan(worker, lease, number+1)
		return
	}
	outcome := map[protocol.DirectiveAction]protocol.Outcome{
		protocol.Finish: protocol.BudgetReached, protocol.Pause: protocol.Interrupted, protocol.Stop: protocol.Interrupted}[directive.Action]
	if directive.Action != protocol.Stop {
		c.save(lease, number)
	}
	c.finish(lease, outcome, "")
	c.next(worker)
}

func (c *crew) save(lease protocol.Lease, number int) {
	commit := protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: number, Artifact: strings.Repeat("5e", 32), Bytes: 184_320}
	if err := c.studies.CommitCheckpoint(c.t.Context(), lease.Trial, commit); err != nil {
		c.t.Fatal(err)
	}
}

func (c *crew) finish(lease protocol.Lease, outcome protocol.Outcome, reason string) {
	hand{c.stage}.finish(lease, outcome, reason)
}

func (c *crew) print(lease protocol.Lease, line string) {
	hand{c.stage}.print(lease, c.logged[lease.Trial], line)
	c.logged[lease.Trial] += int64(len(line)) + 1
}

// pictured is a profile for the eye: an epoch that starts up and settles.
func pictured(epoch int) *trial.Profile {
	p := &trial.Profile{Level: "user mode only", RunFraction: 0.13, Events: map[string]trial.Float{"alignment-faults": 0}, Host: map[string]trial.Float{}}
	for i, name := range []string{
		"instructions", "cpu-cycles", "cache-references", "cache-misses", "branch-instructions", "branch-misses", "L1-dcache-loads",
		"L1-dcache-load-misses", "LLC-loads", "LLC-load-misses", "dTLB-loads", "dTLB-load-misses", "iTLB-load-misses", "page-faults", "task-clock",
	} {
		p.Events[name] = trial.Float(math.Pow(10, 9-float64(i)/2) * (25 + math.Sin(float64(i*i)+0.7*float64(epoch)) + 2/float64(epoch)))
	}
	for i, name := range []string{"tree.cpu_user", "tree.resident_bytes", "tree.threads", "machine.cpu_user", "machine.run_queue"} {
		p.Host[name] = trial.Float(float64(i+1) * (2 - 1/float64(epoch)))
	}
	return p
}
