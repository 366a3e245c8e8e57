package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/clock"
)

// watchEvery is how closely deadlines are kept.
const watchEvery = 100 * time.Millisecond

// beat sends heartbeats until the context ends: regularly, sooner when one
// failed, and at once for a new lease.
func (a *Agent) beat(ctx context.Context) {
	healthy := true
	for {
		interval := clock.Jittered(clock.Seconds(a.times().HeartbeatSeconds))
		if !healthy {
			interval /= 4
		}
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-a.soon:
			timer.Stop()
		case <-timer.C:
		}
		a.meter.Sample()
		err := a.heartbeat(ctx)
		if err != nil && ctx.Err() == nil && healthy {
			a.options.Logger.Warn("a heartbeat was not answered", "error", err)
		}
		healthy = err == nil
	}
}

// heartbeat renews the leases of the running trials and does what the server
// answers about them.
func (a *Agent) heartbeat(ctx context.Context) error {
	registrations, runs := a.registered(), a.running()
	quiet := map[*run]float64{}
	beat := protocol.Heartbeat{Leases: make([]protocol.HeldLease, 0, len(runs)), Load: a.load(), Sprint: a.sprints.Balance(clock.Now())}
	for _, r := range runs {
		quiet[r] = r.quietSeconds(clock.Now())
		held := protocol.HeldLease{Trial: r.lease.Trial, LeaseEpoch: r.lease.LeaseEpoch, QuietSeconds: quiet[r], Keyed: r.keyed.Load()}
		if r.lease.GPUShared {
			held.GPUUse = r.gpu.Peek()
		}
		beat.Leases = append(beat.Leases, held)
	}
	reply, sent, err := a.send(ctx, beat)
	if problem.Is(err, problem.NotFound) {
		// The server was restarted. The trials go on: it knows their leases.
		if err := a.register(ctx, registrations); err != nil {
			return err
		}
		reply, sent, err = a.send(ctx, beat)
	}
	if _, ok := errors.AsType[protocol.Kept](err); ok {
		for _, r := range runs {
			r.renew(sent)
		}
	}
	if err != nil {
		return err
	}
	for _, r := range runs {
		if slices.Contains(reply.Lost, r.lease.Trial) {
			r.givenAway()
			continue
		}
		r.renew(sent)
		if quiet[r] > 0 {
			r.noticed()
		}
		r.sprint.Trigger(slices.Contains(reply.Hurried, r.lease.Trial))
		r.mutex.Lock()
		r.orders.Direct(reply.Directives[r.lease.Trial])
		r.mutex.Unlock()
	}
	return nil
}

// send returns with the answer when the heartbeat was sent: the leases were
// renewed no earlier than that.
func (a *Agent) send(ctx context.Context, beat protocol.Heartbeat) (protocol.HeartbeatReply, clock.Moment, error) {
	ctx, cancel := context.WithTimeout(ctx, max(time.Second, clock.Seconds(a.times().HeartbeatSeconds)))
	defer cancel()
	sent := clock.Now()
	reply, err := a.options.Server.Heartbeat(ctx, a.id, beat)
	return reply, sent, err
}

// watch keeps the running trials' deadlines.
func (a *Agent) watch(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for _, r := range a.running() {
				r.check(clock.Now())
			}
			if due := a.staying.Due(); due != nil {
				a.leave(due)
			}
		}
	}
}

// load is how busy the machine was since the heartbeat before; nil where that is
// not known.
func (a *Agent) load() *protocol.Load {
	load, known := a.gauge.Read()
	if !known {
		return nil
	}
	return &protocol.Load{CPUUtilization: load.CPUUtilization, MemoryUtilization: load.MemoryUtilization, Watts: load.Watts, Method: load.Method}
}
