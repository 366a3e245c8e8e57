package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// studyFile has a trial for each of its agents, none of which ends.
const studyFile = `
name: agents-%d
command: [nothing]
objective: [{metric: loss, direction: minimize}]
space: {x: {type: float, low: 0, high: 1}, y: {type: float, low: 1e-5, high: 1, log: true}}
budget: {policy: epochs, epochs: {min: 1000000, max: 1000000}}
search: {method: random, seed: 7}
stop: {trials: %d}
`

// crew is all agents.
type crew struct {
	options options
	agents  []*agent
	group   sync.WaitGroup
	// heartbeats and reports are the latencies of answered attempts.
	heartbeats, reports latencies
	// refused counts leases that the server said are lost, failed attempts that
	// had no answer.
	refused, failed atomic.Int64
}

// latencies are gathered while on.
type latencies struct {
	mutex sync.Mutex
	on    bool
	list  []time.Duration
}

func (l *latencies) add(took time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.on {
		l.list = append(l.list, took)
	}
}

// gather begins anew and returns what was gathered before.
func (l *latencies) gather(on bool) []time.Duration {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	list := l.list
	l.on, l.list = on, nil
	return list
}

// agent is one worker with a trial.
type agent struct {
	crew   *crew
	id     string
	client *rest.Client
	lease  protocol.Lease
	// answered is when a heartbeat was last answered, in nanoseconds.
	answered atomic.Int64
}

func newCrew(o options, url, token string) (*crew, error) {
	c := &crew{options: o}
	for i := range o.agents {
		transport := &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, ReadBufferSize: 2 << 10, WriteBufferSize: 2 << 10}
		// An attempt is made once: when to try again is the agent's to say.
		client, err := rest.New(rest.Options{URL: url, Token: token, HTTPClient: &http.Client{Transport: transport}, Patience: -1})
		if err != nil {
			return nil, err
		}
		c.agents = append(c.agents, &agent{crew: c, id: fmt.Sprintf("agent-%06d", i), client: client})
	}
	return c, nil
}

// start starts the agents one after the other; each has its trial before the
// next one asks, so that the start is no flood.
func (c *crew) start(ctx context.Context) error {
	begin := time.Now()
	for i, a := range c.agents {
		due := begin.Add(c.options.ramp * time.Duration(i) / time.Duration(len(c.agents)))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		if err := a.begin(ctx); err != nil {
			return fmt.Errorf("agent %d: %w", i, err)
		}
		c.group.Go(func() { a.beat(ctx) })
		c.group.Go(func() { a.train(ctx) })
	}
	return nil
}

func (a *agent) begin(ctx context.Context) error {
	if err := a.register(ctx); err != nil {
		return err
	}
	reply, err := a.client.Lease(ctx, protocol.LeaseRequest{Worker: a.id, WaitSeconds: 10})
	if err == nil && reply.Lease == nil {
		err = problem.New(problem.Unavailable, "there was no trial for agent %s", a.id)
	}
	if err == nil {
		a.lease = *reply.Lease
	}
	return err
}

func (a *agent) register(ctx context.Context) error {
	_, err := a.client.Register(ctx, protocol.WorkerRegistration{ID: a.id, Name: a.id, Slots: 1})
	return err
}

// beat sends heartbeats as workers do: a fifth earlier or later, and four times
// as often while none is answered.
func (a *agent) beat(ctx context.Context) {
	interval := time.Duration(a.crew.options.heartbeat * float64(time.Second))
	pause := rand.N(interval)
	for wait(ctx, pause) {
		pause = time.Duration(float64(interval) * (0.8 + 0.4*rand.Float64()))
		if a.heartbeat(ctx, interval) != nil {
			pause /= 4
		}
	}
}

func (a *agent) heartbeat(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	beat := protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: a.lease.Trial, LeaseEpoch: a.lease.LeaseEpoch}}}
	sent := time.Now()
	reply, err := a.client.Heartbeat(ctx, a.id, beat)
	if problem.Is(err, problem.NotFound) { // the server is a new one
		if err := a.register(ctx); err != nil {
			a.crew.failed.Add(1)
			return err
		}
		sent = time.Now()
		reply, err = a.client.Heartbeat(ctx, a.id, beat)
	}
	if err != nil {
		a.crew.failed.Add(1)
		return err
	}
	a.crew.heartbeats.add(time.Since(sent))
	a.crew.refused.Add(int64(len(reply.Lost)))
	a.answered.Store(time.Now().UnixNano())
	return nil
}

// train reports epochs, each until it is answered.
func (a *agent) train(ctx context.Context) {
	if !wait(ctx, rand.N(a.crew.options.epoch)) {
		return
	}
	for epoch := a.lease.FirstEpoch; wait(ctx, time.Duration(float64(a.crew.options.epoch)*(0.9+0.2*rand.Float64()))); epoch++ {
		report := protocol.Report{LeaseEpoch: a.lease.LeaseEpoch, Epoch: epoch, Seconds: 10, Metrics: map[string]trial.Float{"loss": trial.Float(1 / float64(epoch))}}
		for pause := 200 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
			sent := time.Now()
			_, err := a.client.Report(ctx, a.lease.Trial, report)
			if err == nil {
				a.crew.reports.add(time.Since(sent))
				break
			}
			if problem.Is(err, problem.LeaseLost) {
				a.crew.refused.Add(1)
				return
			}
			a.crew.failed.Add(1)
			if !wait(ctx, time.Duration(float64(pause)*(0.8+0.4*rand.Float64()))) {
				return
			}
		}
	}
}

// back is how many agents had a heartbeat answered since the time.
func (c *crew) back(since time.Time) int {
	count := 0
	for _, a := range c.agents {
		if a.answered.Load() >= since.UnixNano() {
			count++
		}
	}
	return count
}

// losses is how often the study's trials were lost.
func losses(ctx context.Context, people *rest.Client, study string) (int, error) {
	sum := 0
	for offset := 0; ; {
		page, err := people.Trials(ctx, study, protocol.TrialQuery{Sort: "number", Limit: 1000, Offset: offset})
		if err != nil || len(page.Trials) == 0 {
			return sum, err
		}
		for _, t := range page.Trials {
			sum += t.Losses
		}
		offset += len(page.Trials)
	}
}
