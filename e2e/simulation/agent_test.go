package simulation_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/history"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// agent speaks the protocol as a worker does, and does everything a worker must
// not: it vanishes, it sleeps through its leases and writes when it wakes.
type agent struct {
	world  *world
	id     string
	client *rest.Client
	// ctx is its life. Whatever it was at ends with it.
	ctx    context.Context
	vanish context.CancelFunc

	mutex  sync.Mutex
	lease  *protocol.Lease
	frozen time.Time
}

// work is a machine: when its agent vanishes, another one is started.
func (w *world) work(ctx context.Context, name string) {
	for life := 0; ctx.Err() == nil; life++ {
		a := &agent{world: w, id: fmt.Sprintf("%s-%04d", name, life), client: w.client(auth.Worker, false)}
		a.ctx, a.vanish = context.WithCancel(ctx)
		var heart sync.WaitGroup
		heart.Go(a.beat)
		a.live()
		a.vanish()
		heart.Wait()
		pass(ctx, w.dice.upTo(30*time.Second))
	}
}

// step lets time pass for the agent, which may sleep meanwhile; false: its life
// is over.
func (a *agent) step(span time.Duration) bool {
	if !pass(a.ctx, span) {
		return false
	}
	for {
		a.mutex.Lock()
		wait := time.Until(a.frozen)
		a.mutex.Unlock()
		if wait <= 0 {
			return a.ctx.Err() == nil
		}
		if !pass(a.ctx, wait) {
			return false
		}
	}
}

func (a *agent) freeze(span time.Duration) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.frozen = time.Now().Add(span)
}

func (a *agent) hold(lease *protocol.Lease) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.lease = lease
}

func (a *agent) register() error {
	_, err := a.client.Register(a.ctx, protocol.WorkerRegistration{ID: a.id, Name: a.id, Slots: 1})
	return err
}

func (a *agent) beat() {
	for a.step(8*time.Second + a.world.dice.upTo(4*time.Second)) {
		a.mutex.Lock()
		beat := protocol.Heartbeat{}
		if a.lease != nil {
			beat.Leases = []protocol.HeldLease{{Trial: a.lease.Trial, LeaseEpoch: a.lease.LeaseEpoch}}
		}
		a.mutex.Unlock()
		_, err := a.client.Heartbeat(a.ctx, a.id, beat)
		if problem.Is(err, problem.NotFound) {
			err = a.register()
		}
		a.judge("heartbeat", err)
	}
}

// judge notes an answer that no fault of ours explains.
func (a *agent) judge(what string, err error) {
	switch {
	case err == nil, a.ctx.Err() != nil, problem.Is(err, problem.Unavailable):
	case problem.Is(err, problem.LeaseLost):
		a.world.count("refused writes")
	default:
		a.world.complain("%s: %s: %v", a.id, what, err)
	}
}

// live runs one trial after the other until the agent vanishes.
func (a *agent) live() {
	a.judge("register", a.register())
	for a.step(time.Millisecond) {
		reply, err := a.client.Lease(a.ctx, protocol.LeaseRequest{Worker: a.id, WaitSeconds: 20})
		switch {
		case problem.Is(err, problem.NotFound):
			a.judge("register", a.register())
		case err != nil:
			a.judge("lease", err)
			a.step(time.Second)
		case reply.Lease != nil:
			a.world.log.Note(history.Operation{Kind: history.Lease, Trial: reply.Lease.Trial, LeaseEpoch: reply.Lease.LeaseEpoch, Worker: a.id, Rung: reply.Lease.Rung, Acknowledged: true})
			a.hold(reply.Lease)
			a.run(*reply.Lease)
			a.hold(nil)
		default:
			a.step(time.Second)
		}
	}
}

// run trains, with everything that can go wrong on the way.
func (a *agent) run(lease protocol.Lease) {
	if !a.restore(lease) {
		return
	}
	w := a.world
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
		if !a.step(time.Second + w.dice.upTo(10*time.Second)) {
			return
		}
		switch {
		case w.dice.chance(0.01):
			w.count("vanished agents")
			a.vanish()
			return
		case w.dice.chance(0.02):
			w.count("frozen agents")
			a.freeze(w.dice.upTo(3 * leaseSeconds * time.Second))
			a.step(0)
		case w.dice.chance(0.01):
			w.count("failures")
			a.finish(lease, protocol.CommandFailed)
			return
		case w.dice.chance(0.01):
			w.count("drains")
			a.finish(lease, protocol.Interrupted)
			return
		}
		directive, sent := a.report(lease, epoch)
		if !sent {
			return
		}
		if directive.Action == protocol.Stop {
			a.finish(lease, protocol.Interrupted)
			return
		}
		if (epoch == lease.Budget.Epochs || w.dice.chance(0.5)) && !a.commit(lease, epoch) {
			return
		}
	}
	a.finish(lease, protocol.BudgetReached)
}

// insist makes a call until it is answered for good; false: it was refused, or
// the agent's life is over.
func (a *agent) insist(what string, call func() error) bool {
	for {
		err := call()
		if err == nil {
			return a.step(0)
		}
		a.judge(what, err)
		if !problem.Is(err, problem.Unavailable) || !a.step(time.Second) {
			return false
		}
	}
}

func metricsOf(lease protocol.Lease, epoch int) map[string]trial.Float {
	x, _ := lease.Params["x"].Number()
	accuracy := (1 - (x-0.7)*(x-0.7)) * (1 - 1/float64(epoch+1))
	if x > 0.95 {
		accuracy = math.NaN()
	}
	return map[string]trial.Float{"accuracy": trial.Float(accuracy), "loss": trial.Float(1 / accuracy)}
}

func (a *agent) report(lease protocol.Lease, epoch int) (directive protocol.Directive, sent bool) {
	one := history.Operation{
		Kind: history.Report, Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, Worker: a.id, Rung: lease.Rung, Epoch: epoch, Metrics: metricsOf(lease, epoch),
	}
	a.world.log.Note(one)
	sent = a.insist("report", func() (err error) {
		directive, err = a.client.Report(a.ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Metrics: one.Metrics, Seconds: 1})
		if err == nil {
			one.Acknowledged, one.Void = true, directive.Action == protocol.Stop
			a.world.log.Note(one)
		}
		return err
	})
	return directive, sent
}

func contentOf(id trial.ID, epoch int) []byte { return fmt.Appendf(nil, "%s %d", id, epoch) }

func (a *agent) commit(lease protocol.Lease, epoch int) bool {
	content := contentOf(lease.Trial, epoch)
	one := history.Operation{
		Kind: history.Checkpoint, Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, Worker: a.id, Rung: lease.Rung, Epoch: epoch, Artifact: hashOf(content),
	}
	a.world.log.Note(one)
	for again := true; again; {
		again = false
		sent := a.insist("upload", func() error {
			return a.client.PutArtifact(a.ctx, one.Artifact, int64(len(content)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		}) && a.insist("checkpoint", func() error {
			err := a.client.CommitCheckpoint(a.ctx, lease.Trial, protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Artifact: one.Artifact, Bytes: int64(len(content))})
			if problem.Is(err, problem.Conflict) { // the server was started anew in between
				again = true
				a.world.count("sent again")
				return nil
			}
			if err == nil {
				one.Acknowledged = true
				a.world.log.Note(one)
			}
			return err
		})
		if !sent {
			return false
		}
	}
	return true
}

// restore fetches the lease's checkpoint, which must be what was committed.
func (a *agent) restore(lease protocol.Lease) bool {
	if lease.Checkpoint == nil {
		return true
	}
	return a.insist("restore", func() error {
		body, err := a.client.Artifact(a.ctx, lease.Checkpoint.Artifact)
		if problem.Is(err, problem.NotFound) { // as for who has lost the lease meanwhile
			reply, asked := a.client.Heartbeat(a.ctx, a.id, protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch}}})
			switch {
			case problem.Is(asked, problem.Unavailable):
				return asked
			case problem.Is(asked, problem.NotFound), asked == nil && slices.Contains(reply.Lost, lease.Trial):
				return problem.New(problem.LeaseLost, "the lease is lost")
			}
		}
		if err != nil {
			return err
		}
		defer body.Close()
		content, err := io.ReadAll(body)
		if err != nil {
			return problem.New(problem.Unavailable, "%w", err)
		}
		if want := fmt.Sprintf(" %d", lease.Checkpoint.Epoch); !strings.HasSuffix(string(content), want) || lease.FirstEpoch != lease.Checkpoint.Epoch+1 {
			a.world.complain("trial %s goes on at epoch %d from %q", lease.Trial, lease.FirstEpoch, content)
		}
		a.world.count("resumed")
		return nil
	})
}

func (a *agent) finish(lease protocol.Lease, outcome protocol.Outcome) {
	a.insist("finish", func() error {
		reply, err := a.client.Finish(a.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: outcome})
		if err == nil {
			a.world.log.Note(history.Operation{Kind: history.Finish, Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, Worker: a.id, Rung: lease.Rung, State: reply.State, Acknowledged: true})
		}
		return err
	})
}
