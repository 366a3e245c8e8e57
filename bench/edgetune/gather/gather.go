// Package gather puts requests together while they come: it is the server's
// side of a policy of inference_emu/batching, by the same rule that is simulated there.
package gather

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/batching"
	"github.com/tandem-tune/tandem/internal/problem"
)

// Runner infers a batch of requests. Several batches may be run at once if the
// gatherer has several instances.
type Runner[Request any] interface {
	Run(batch []Request) error
}

// Settings of a gatherer.
type Settings struct {
	Policy batching.Policy
	// Instances is how many batches may be run at the same time; 0 is 1.
	Instances int
	// MostWaiting is how many requests may wait; more are turned away. 0 is
	// 10,000.
	MostWaiting int
}

const defaultMostWaiting = 10_000

// Gatherer collects requests and hands them to a runner in batches, in the
// order in which they came.
type Gatherer[Request any] struct {
	settings Settings
	runner   Runner[Request]
	wake     chan struct{} // a token for each instance that shall look again
	closing  chan struct{}
	serving  sync.WaitGroup

	mutex   sync.Mutex
	waiting []*waiter[Request]
	closed  bool
}

type waiter[Request any] struct {
	request Request
	came    time.Time
	done    chan error // takes one error without a reader
}

// New starts a gatherer; [Gatherer.Close] ends it.
func New[Request any](settings Settings, runner Runner[Request]) (*Gatherer[Request], error) {
	settings.Instances = max(settings.Instances, 1)
	if settings.MostWaiting == 0 {
		settings.MostWaiting = defaultMostWaiting
	}
	policy := settings.Policy
	if policy.MaxBatch < 1 || policy.MaxBatch > settings.MostWaiting || !(policy.WaitSeconds >= 0) || policy.WaitSeconds > math.MaxInt64/2e9 {
		return nil, problem.New(problem.Invalid, "requests cannot be gathered by the policy %+v: max_batch must be from 1 to the most that may wait, %d, and wait_seconds not below 0", policy, settings.MostWaiting)
	}
	g := &Gatherer[Request]{settings: settings, runner: runner, wake: make(chan struct{}, settings.Instances), closing: make(chan struct{})}
	for range settings.Instances {
		g.serving.Go(g.serve)
	}
	return g, nil
}

// Do waits until the request was run in some batch, and returns the error of
// that batch. A request whose context ends before its batch begins is not run.
// [problem.Exhausted] says that too many wait, [problem.Unavailable] that the
// gatherer is closed.
func (g *Gatherer[Request]) Do(ctx context.Context, request Request) error {
	one := &waiter[Request]{request: request, came: time.Now(), done: make(chan error, 1)}
	if err := g.add(one); err != nil {
		return err
	}
	g.notify()
	select {
	case err := <-one.done:
		return err
	case <-ctx.Done():
		g.forget(one)
		return ctx.Err()
	}
}

func (g *Gatherer[Request]) add(one *waiter[Request]) error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.closed {
		return problem.New(problem.Unavailable, "the server takes no more requests: it is being closed")
	}
	if len(g.waiting) >= g.settings.MostWaiting {
		return problem.New(problem.Exhausted, "%d requests wait already: they come faster than they are answered", len(g.waiting))
	}
	g.waiting = append(g.waiting, one)
	return nil
}

// forget removes a request that still waits.
func (g *Gatherer[Request]) forget(one *waiter[Request]) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for i, other := range g.waiting {
		if other == one {
			g.waiting = append(g.waiting[:i:i], g.waiting[i+1:]...)
			return
		}
	}
}

// notify makes an idle instance look again. If there are as many tokens as
// instances, all will.
func (g *Gatherer[Request]) notify() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Close turns further requests away, runs those that wait without waiting for
// others, and returns when all is done.
func (g *Gatherer[Request]) Close() {
	g.mutex.Lock()
	first := !g.closed
	g.closed = true
	g.mutex.Unlock()
	if first {
		close(g.closing)
	}
	g.serving.Wait()
}

// serve is one instance.
func (g *Gatherer[Request]) serve() {
	for {
		batch, again, done := g.next()
		switch {
		case done:
			return
		case len(batch) > 0:
			g.run(batch)
		default:
			g.idle(again)
		}
	}
}

// next is the batch to run now, or how long to wait for one, or that there will
// be none.
func (g *Gatherer[Request]) next() (batch []*waiter[Request], again time.Duration, done bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	oldest := 0.0
	if len(g.waiting) > 0 {
		oldest = time.Since(g.waiting[0].came).Seconds()
	}
	take, seconds := take(g.settings.Policy, len(g.waiting), oldest)
	if take == 0 && g.closed {
		take = len(g.waiting)
		if take == 0 {
			return nil, 0, true
		}
	}
	if take == 0 {
		if math.IsInf(seconds, 1) {
			return nil, -1, false
		}
		return nil, time.Duration(math.Ceil(seconds*1e9)) + 1, false
	}
	batch = g.waiting[:take:take]
	g.waiting = g.waiting[take:]
	if len(g.waiting) > 0 {
		g.notify() // perhaps there is a batch for another instance
	}
	return batch, 0, false
}

// take decides for a free instance: how many of the waiting requests to take now, of which
// the oldest has waited so long, or, when that is 0, in how many seconds to ask again
// unless another request comes (infinite if only that can change anything).
func take(p batching.Policy, waiting int, oldestSeconds float64) (size int, againSeconds float64) {
	switch {
	case waiting >= p.MaxBatch:
		return p.MaxBatch, 0
	case waiting == 0 || p.UntilFull:
		return 0, math.Inf(1)
	case oldestSeconds >= p.WaitSeconds:
		return waiting, 0
	default:
		return 0, p.WaitSeconds - oldestSeconds
	}
}

func (g *Gatherer[Request]) run(batch []*waiter[Request]) {
	requests := make([]Request, len(batch))
	for i, one := range batch {
		requests[i] = one.request
	}
	err := g.runner.Run(requests)
	for _, one := range batch {
		one.done <- err
	}
}

// idle waits for a request, for the end, or for so long, if that is not below 0.
func (g *Gatherer[Request]) idle(again time.Duration) {
	var alarm <-chan time.Time
	if again >= 0 {
		timer := time.NewTimer(again)
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-g.wake:
	case <-g.closing:
	case <-alarm:
	}
}
