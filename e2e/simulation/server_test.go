package simulation_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/history"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/guard"
	"github.com/tandem-tune/tandem/web/usecases"
)

// leaseSeconds is the server's default term.
const leaseSeconds = 60

var errDown = errors.New("connection refused")

// dice is shared by goroutines: the seed decides what happens, and the
// scheduler to whom.
type dice struct {
	mutex  sync.Mutex
	random *rand.Rand
}

func (d *dice) chance(p float64) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.random.Float64() < p
}

// upTo is a span of at most that long.
func (d *dice) upTo(most time.Duration) time.Duration {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return time.Duration(d.random.Int64N(int64(most)))
}

func (d *dice) bits() uint64 {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.random.Uint64()
}

// world is everything of one simulation. Only the store and the artifacts
// outlive a server.
type world struct {
	t         *testing.T
	dice      *dice
	store     *memory.Store
	artifacts *shelf
	secrets   map[auth.Scope]string
	log       history.Log
	// hasty makes the disk say that it has written before it has: the fault
	// that the checks must find.
	hasty bool
	// doom asks for a crash at this moment: changes are on their way then.
	doom chan struct{}

	mutex  sync.Mutex
	server *server // nil while there is none
	wrong  int     // answers that no fault of ours explains
	stats  map[string]int
}

func newWorld(t *testing.T, seed uint64, stats map[string]int) *world {
	t.Helper()
	w := &world{
		t: t, dice: &dice{random: rand.New(rand.NewPCG(seed, 3))}, store: memory.New(),
		artifacts: &shelf{kept: map[string][]byte{}}, secrets: map[auth.Scope]string{}, stats: stats, doom: make(chan struct{}, 1),
	}
	for _, scope := range []auth.Scope{auth.Admin, auth.Worker} {
		request := auth.Request{Name: "simulation", Scope: scope}
		if scope == auth.Worker {
			request.Worker = auth.AnyWorker
		}
		secret, _, err := auth.Issue(t.Context(), w.store, request)
		if err != nil {
			t.Fatal(err)
		}
		w.secrets[scope] = secret
	}
	return w
}

func (w *world) count(what string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.stats[what]++
}

// complain notes an answer that no fault of ours explains. From a hasty disk
// such answers are to be expected.
func (w *world) complain(format string, args ...any) {
	w.t.Helper()
	w.mutex.Lock()
	w.wrong++
	w.mutex.Unlock()
	if !w.hasty {
		w.t.Errorf(format, args...)
	}
}

func (w *world) current() *server {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.server
}

// server is one life of the server.
type server struct {
	handler http.Handler
	service *study.Service
	disk    *disk
	ctx     context.Context
	kill    context.CancelFunc
	ended   sync.WaitGroup
	// frozen is until when it stands still, as a stopped process does.
	mutex  sync.Mutex
	frozen time.Time
}

// start starts a server on what the one before has left.
func (w *world) start() {
	w.t.Helper()
	s := &server{disk: &disk{Store: w.store, dice: w.dice, hasty: w.hasty, count: w.count, doom: w.doom}}
	s.ctx, s.kill = context.WithCancel(context.Background())
	s.service = study.New(s.disk, w.store, study.Options{
		Now: time.Now, Random: w.dice.bits, LeaseSeconds: leaseSeconds, HeartbeatSeconds: 10,
	})
	if err := s.service.Start(s.ctx); err != nil {
		w.t.Fatalf("start: %v", err)
	}
	s.handler = api.New(api.Config{
		Studies: usecases.New(s.service), Artifacts: w.artifacts,
		Config: guard.Config{Tokens: w.store, Now: time.Now, Logger: slog.New(slog.DiscardHandler)},
	})
	s.ended.Go(func() { w.tick(s) })
	w.mutex.Lock()
	w.server = s
	w.mutex.Unlock()
}

// crash ends the server as kill -9 does: what the disk has not got is gone, and
// so is every answer that is on its way.
func (w *world) crash() {
	s := w.current()
	w.mutex.Lock()
	w.server = nil
	w.mutex.Unlock()
	s.disk.die()
	s.kill()
	s.ended.Wait()
}

func (w *world) tick(s *server) {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(time.Second):
		}
		if !s.awake(s.ctx) {
			return
		}
		if err := s.service.Tick(s.ctx); err != nil && s.ctx.Err() == nil && !problem.Is(err, problem.Unavailable) {
			w.complain("tick: %v", err)
		}
	}
}

// freeze stops the server for a while.
func (s *server) freeze(span time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.frozen = time.Now().Add(span)
}

// awake waits until the server runs; false: until the context ended.
func (s *server) awake(ctx context.Context) bool {
	for {
		s.mutex.Lock()
		wait := time.Until(s.frozen)
		s.mutex.Unlock()
		if wait <= 0 {
			return ctx.Err() == nil
		}
		if !pass(ctx, wait) {
			return false
		}
	}
}

// pass lets time pass; false: the context ended first.
func pass(ctx context.Context, span time.Duration) bool {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// disk is a store that takes its time with each change, and whose server may
// die before a change is made, or before it is told that it was.
type disk struct {
	study.Store
	dice  *dice
	hasty bool
	count func(string)
	doom  chan<- struct{}

	mutex sync.Mutex
	dead  bool
	line  []write // in the order in which they were handed in
}

type write struct {
	change  journal.Change
	outcome *journal.Outcome
}

func errDead() error { return problem.New(problem.Unavailable, "the server is dead") }

// Apply makes the change and waits for it.
func (d *disk) Apply(ctx context.Context, change journal.Change) error {
	return d.Submit(ctx, change).Wait()
}

// Submit queues the change.
func (d *disk) Submit(_ context.Context, change journal.Change) *journal.Outcome {
	one := write{change, journal.NewOutcome()}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.dead {
		one.outcome.Settle(errDead())
		return one.outcome
	}
	told := one.outcome
	if d.hasty {
		told = journal.NewOutcome()
		told.Settle(nil)
	}
	if d.line = append(d.line, one); len(d.line) == 1 {
		go d.serve()
	}
	d.invite(0.003)
	return told
}

// serve makes the changes until none is left, or the server is dead.
func (d *disk) serve() {
	for left := true; left; {
		if d.dice.chance(0.5) {
			time.Sleep(d.dice.upTo(200 * time.Millisecond))
		}
		one, err, alive := d.next()
		if !alive {
			return
		}
		if d.invite(riskOf(one.change)) || d.dice.chance(0.5) {
			time.Sleep(d.dice.upTo(200 * time.Millisecond))
		}
		d.mutex.Lock()
		if d.dead {
			d.count("changes made behind which the server died")
		}
		d.line = d.line[min(1, len(d.line)):]
		left = len(d.line) > 0
		d.mutex.Unlock()
		one.outcome.Settle(err)
	}
}

// riskOf is how likely the server dies right behind the change. What follows a
// loss is rare, and worth looking at.
func riskOf(change journal.Change) float64 {
	for _, event := range change.Events {
		if event.Kind == journal.TrialState && event.State == string(trial.Lost) {
			return 0.3
		}
	}
	return 0.004
}

// invite asks for a crash right now, while a change is on its way.
func (d *disk) invite(p float64) bool {
	if !d.dice.chance(p) {
		return false
	}
	select {
	case d.doom <- struct{}{}:
	default:
	}
	return true
}

// next makes the first change of the line, unless the server is dead.
func (d *disk) next() (one write, err error, alive bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.dead {
		for _, lost := range d.line {
			d.count("changes lost with the server")
			lost.outcome.Settle(errDead())
		}
		d.line = nil
		return write{}, nil, false
	}
	one = d.line[0]
	return one, d.Store.Apply(context.Background(), one.change), true
}

// die lets no further change through.
func (d *disk) die() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.dead = true
}

// shelf keeps artifacts in memory, by their hash.
type shelf struct {
	mutex sync.Mutex
	kept  map[string][]byte
}

// Put stores what it reads.
func (s *shelf) Put(_ context.Context, name string, r io.Reader, limit int64) (int64, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit))
	if err != nil {
		return 0, err
	}
	if hashOf(data) != name {
		return 0, problem.New(problem.Invalid, "the bytes have another hash")
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.kept[name] = data
	return int64(len(data)), nil
}

// Open returns the bytes.
func (s *shelf) Open(name string) (io.ReadCloser, int64, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	data, found := s.kept[name]
	if !found {
		return nil, 0, problem.New(problem.NotFound, "there is no artifact %s", name)
	}
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), nil
}

func hashOf(data []byte) string {
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:])
}
