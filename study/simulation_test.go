package study_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

// errDown is what workers see while the server is down.
var errDown = errors.New("connection refused")

// fleet is a server that is killed now and then, and workers that vanish, hang,
// fail, drain and come back as zombies. What was acknowledged is written down.
type fleet struct {
	*world
	random *lockedRandom
	unsure *unsure

	// halts says that somebody stops the study now and then.
	halts bool
	// mixed says that the workers are of several types, and wait in long polls.
	mixed bool

	up      gate // passed by every call, shut by a restart
	running bool

	mutex sync.Mutex
	acked map[reportKey]trial.LeaseEpoch
	stats map[string]int
}

// gate lets many in at a time, or one who shuts it. It is no mutex because
// simulated time stands still while somebody waits for one.
type gate chan struct{}

func newGate() gate { return make(gate, 64) }

func (g gate) enter() { g <- struct{}{} }
func (g gate) leave() { <-g }

func (g gate) shut() {
	for range cap(g) {
		g.enter()
	}
}

func (g gate) open() {
	for range cap(g) {
		g.leave()
	}
}

type reportKey struct {
	trial       trial.ID
	rung, epoch int
}

// lockedRandom is shared by goroutines. Their order makes no difference to
// what is checked, only to what happens.
type lockedRandom struct {
	mutex  sync.Mutex
	random *rand.Rand
}

func (r *lockedRandom) chance(p float64) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.random.Float64() < p
}

func (r *lockedRandom) seconds(most int) time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return time.Duration(r.random.IntN(most*1000)) * time.Millisecond
}

func (f *fleet) count(what string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.stats[what]++
}

// call runs one request, unless the server is down.
func call[T any](f *fleet, request func(*study.Service) (T, error)) (T, error) {
	f.up.enter()
	defer f.up.leave()
	if !f.running {
		var none T
		return none, errDown
	}
	answer, err := request(f.service)
	if problem.Is(err, problem.Unavailable) {
		err = errDown
	}
	return answer, err
}

// serve ticks, and kills the server now and then: what it had in memory is gone.
func (f *fleet) serve(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(time.Second)
		if _, err := call(f, func(s *study.Service) (int, error) { return 0, s.Tick(f.ctx) }); err != nil && !errors.Is(err, errDown) {
			f.t.Errorf("tick: %v", err)
		}
		if !f.random.chance(0.002) {
			continue
		}
		f.count("restarts")
		f.up.shut()
		f.running = false
		f.up.open()
		time.Sleep(f.random.seconds(120))
		f.up.shut()
		f.unsure.calm.Store(true)
		f.start()
		f.unsure.calm.Store(false)
		f.running = true
		f.up.open()
	}
}

// work is a worker's life. When it vanishes another one takes its place.
func (f *fleet) work(ctx context.Context, name string) {
	for life := 0; ctx.Err() == nil; life++ {
		id := fmt.Sprintf("%s-%d", name, life)
		for ctx.Err() == nil && f.lifeOf(ctx, id) {
		}
		time.Sleep(f.random.seconds(30))
	}
}

// lifeOf registers and runs trials; false means that the worker vanished.
func (f *fleet) lifeOf(ctx context.Context, id string) bool {
	registration, wait := protocol.WorkerRegistration{ID: id, Name: id, Slots: 1}, 0.0
	if f.mixed {
		of := breedOf(id)
		registration.Machine, registration.Probes, wait = protocol.Machine{CPUModel: of.model, Cores: 2}, of.probes(), 5
	}
	_, err := call(f, func(s *study.Service) (protocol.Timing, error) { return s.RegisterWorker(f.ctx, registration) })
	for err == nil && ctx.Err() == nil {
		var reply protocol.LeaseReply
		reply, err = call(f, func(s *study.Service) (protocol.LeaseReply, error) {
			return s.Lease(ctx, protocol.LeaseRequest{Worker: id, WaitSeconds: wait})
		})
		if err != nil || ctx.Err() != nil {
			break
		}
		if reply.Lease == nil {
			time.Sleep(2 * time.Second)
			continue
		}
		if vanished := f.runLease(id, reply.Lease); vanished {
			return false
		}
	}
	time.Sleep(2 * time.Second)
	return true
}

// runLease trains, with everything that can go wrong on the way.
func (f *fleet) runLease(id string, lease *protocol.Lease) (vanished bool) {
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
		time.Sleep(time.Second + f.random.seconds(10))
		switch {
		case f.random.chance(0.01):
			f.count("vanished")
			return true
		case f.random.chance(0.01):
			f.count("zombies")
			time.Sleep(2 * time.Minute) // a hang: then it writes as if nothing had happened
		case f.random.chance(0.01):
			f.count("failures")
			f.end(lease, protocol.CommandFailed)
			return false
		case f.random.chance(0.01):
			f.count("drains")
			f.end(lease, protocol.Interrupted)
			return false
		}
		directive, err := f.send(id, lease, epoch)
		if err == nil && strings.HasPrefix(directive.Reason, "stopped early") {
			f.count("stops")
			if f.random.chance(0.5) { // a worker that says goodbye, late
				f.end(lease, protocol.Interrupted)
			}
		}
		if err != nil || directive.Action == protocol.Stop {
			return false
		}
		if epoch == lease.Budget.Epochs && f.random.chance(0.03) {
			f.count("vanished with a result")
			return true
		}
		if epoch == lease.Budget.Epochs || f.random.chance(0.5) {
			if f.commit(lease, epoch) != nil {
				return false
			}
		}
		if directive.Action == protocol.Pause {
			f.count("moves")
			f.end(lease, protocol.Interrupted)
			return false
		}
		f.beat(id, lease)
	}
	f.end(lease, protocol.BudgetReached)
	return false
}

// send reports until the server answers, now and then twice.
func (f *fleet) send(id string, lease *protocol.Lease, epoch int) (protocol.Directive, error) {
	for {
		directive, err := call(f, func(*study.Service) (protocol.Directive, error) { return f.tell(id, lease, epoch) })
		if errors.Is(err, errDown) || err == nil && f.random.chance(0.05) {
			time.Sleep(time.Second)
			continue
		}
		switch {
		case problem.Is(err, problem.LeaseLost):
			f.count("refused reports")
		case err != nil:
			f.t.Errorf("report of trial %d, epoch %d: %v", lease.Number, epoch, err)
		case directive.Action != protocol.Stop:
			f.mutex.Lock()
			key := reportKey{lease.Trial, lease.Rung, epoch}
			if _, before := f.acked[key]; !before {
				f.acked[key] = lease.LeaseEpoch
			}
			f.mutex.Unlock()
		}
		return directive, err
	}
}

// breedOf is the type of machine of a worker, by its name.
func breedOf(id string) breed {
	return []breed{swift, frugal}[strings.Count(id, "1")%2]
}

// tell reports an epoch, as long and at the energy that the machine takes.
func (f *fleet) tell(id string, lease *protocol.Lease, epoch int) (protocol.Directive, error) {
	if !f.mixed {
		return f.report(lease, epoch)
	}
	of := breedOf(id)
	return f.service.Report(f.ctx, lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: trial.Float(of.seconds * lease.Budget.DataFraction),
		Metrics: map[string]trial.Float{"accuracy": accuracy(lease, epoch)},
		Energy:  &trial.Energy{Joules: trial.Float(of.seconds * of.watts * lease.Budget.DataFraction), Method: "rapl"},
	})
}

func (f *fleet) commit(lease *protocol.Lease, epoch int) error {
	for {
		_, err := call(f, func(*study.Service) (int, error) { return 0, f.checkpoint(lease, epoch) })
		if !errors.Is(err, errDown) {
			return err
		}
		time.Sleep(time.Second)
	}
}

func (f *fleet) end(lease *protocol.Lease, outcome protocol.Outcome) {
	for {
		_, err := call(f, func(*study.Service) (protocol.FinishReply, error) { return f.finish(lease, outcome) })
		if err != nil && !errors.Is(err, errDown) && !problem.Is(err, problem.LeaseLost) {
			f.t.Errorf("end of trial %d: %v", lease.Number, err)
		}
		if !errors.Is(err, errDown) {
			return
		}
		time.Sleep(time.Second)
	}
}

func (f *fleet) beat(id string, lease *protocol.Lease) {
	//nolint:errcheck // a heartbeat that is lost is what this is about
	call(f, func(s *study.Service) (protocol.HeartbeatReply, error) {
		return s.Heartbeat(f.ctx, id, protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch}}})
	})
}

func TestStudiesSurviveEverything(t *testing.T) {
	methods := []string{"method: bohb", "method: random", "method: grid, grid_points: 30", "method: tpe", "method: sobol"}
	policies := []string{"policy: multi", "policy: epochs", "policy: dataset, growth: linear"}
	promotions := []string{"asynchronous", "synchronous", "none"}
	stoppings := []string{"", ", early_stopping: {rule: median, min_trials: 3}", ", early_stopping: {rule: percentile, percentile: 60, grace_epochs: 2, every_epochs: 2}"}
	seeds := uint64(effort.Times(t, 20)) // 400 in scripts/test long
	if testing.Short() {
		seeds = 10
	}
	total := map[string]int{}
	for i := range seeds {
		seed := i/60*60 + 7*i%60 // any 60 of them have all combinations, and any few have different ones
		name := fmt.Sprintf("seed %d", seed)
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{
					world: newWorld(t, seed), mixed: seed%3 == 1, up: newGate(), running: true, acked: map[reportKey]trial.LeaseEpoch{}, stats: total,
					random: &lockedRandom{random: rand.New(rand.NewPCG(seed, 2))},
				}
				f.unsure = &unsure{Store: f.store, random: f.random}
				f.unsure.calm.Store(true)
				f.store = f.unsure
				f.start()
				promotion, policy, stopping := promotions[seed/5%3], policies[seed/15%3], stoppings[seed%3]
				if promotion == "none" && seed%2 == 1 {
					policy, stopping = "policy: epochs", ", early_stopping: halving"
				}
				repeats := ""
				if seed%4 < 2 {
					repeats = ", repeats: {trials: 2, times: 3}"
				}
				created := f.create(
					"method: bohb", methods[seed%5]+", promotion: "+promotion+stopping+repeats, "policy: multi", policy,
					"stop: {trials: 27}", fmt.Sprintf("stop: {trials: 30}\nplacement: {energy: %d}\nretry: {failures: 1}", seed%2),
				)
				f.unsure.calm.Store(false)
				f.halts = seed%2 == 0
				f.runToEnd(created.ID, 1+int(seed%7))
				for range 2 {
					if f.extend(created.ID) {
						f.runToEnd(created.ID, 1+int(seed%5))
					}
				}
				f.unsure.calm.Store(true)
				total["refused changes"] += int(f.unsure.refused.Load())
				total["changes made and denied"] += int(f.unsure.made.Load())
				total["changes behind others"] += int(f.unsure.queued.Load())
				total["changes refused with others"] += int(f.unsure.carried.Load())
				f.check(created.ID)
				total["repeats"] += f.view(created.ID).Progress.Repeats
			})
		})
	}
	t.Log(total)
	for _, what := range []string{"restarts", "vanished", "vanished with a result", "zombies", "failures", "drains", "stops", "repeats", "refused reports", "refused changes", "extensions", "halts",
		"changes made and denied", "changes behind others", "changes refused with others"} {
		if total[what] == 0 && !t.Failed() && !testing.Short() {
			t.Errorf("no simulation had any %s: the test tests less than it says", what)
		}
	}
}

func (f *fleet) runToEnd(id string, workers int) {
	ctx, cancel := context.WithCancel(f.ctx)
	var group sync.WaitGroup
	group.Go(func() { f.serve(ctx) })
	for i := range workers {
		group.Go(func() { f.work(ctx, fmt.Sprintf("worker-%d", i)) })
	}
	for start := time.Now(); ; time.Sleep(time.Minute) {
		view, err := call(f, func(s *study.Service) (protocol.StudyView, error) { return s.Study(f.ctx, id) })
		if err == nil && view.Status.Over() {
			break
		}
		if err == nil && f.halts && f.random.chance(0.08) {
			_, err := call(f, func(s *study.Service) (protocol.StudyView, error) { return s.Stop(f.ctx, id) })
			if err == nil {
				f.count("halts")
			}
		}
		if time.Since(start) > 30*24*time.Hour {
			f.t.Errorf("the study is stuck: %s, %v", view.Status, view.Progress.Trials)
			break
		}
	}
	cancel()
	group.Wait()
	if !f.running {
		f.start()
	}
}

// extend lets the study that is over go on, unless there is nothing that it could do.
func (f *fleet) extend(id string) bool {
	for {
		_, err := call(f, func(s *study.Service) (protocol.StudyView, error) {
			return s.Extend(f.ctx, id, protocol.ExtendRequest{Trials: 4})
		})
		if !errors.Is(err, errDown) && err != nil && !problem.Is(err, problem.Conflict) {
			f.t.Errorf("extend: %v", err)
		}
		if view, seen := call(f, func(s *study.Service) (protocol.StudyView, error) { return s.Study(f.ctx, id) }); seen == nil && !view.Status.Over() {
			f.count("extensions")
			return true
		}
		if !errors.Is(err, errDown) {
			return false
		}
		time.Sleep(time.Second)
	}
}

// check compares the store with what was acknowledged, and with itself.
func (f *fleet) check(id string) {
	events, err := f.store.Events(f.ctx, id, 0, 1<<30)
	if err != nil {
		f.t.Fatal(err)
	}
	leases := map[trial.ID]trial.LeaseEpoch{}
	for i, event := range events {
		if event.Sequence != int64(i)+1 {
			f.t.Fatalf("event %d has sequence %d", i+1, event.Sequence)
		}
		if event.Kind == journal.TrialState && event.State == string(trial.Leased) {
			leases[event.Trial]++
		}
	}
	trials, err := f.store.Trials(f.ctx, id)
	if err != nil {
		f.t.Fatal(err)
	}
	epochs := 0
	for number, t := range trials {
		if t.Number != number || !t.State.Terminal() && t.State != trial.Paused {
			f.t.Errorf("trial %d at %d is %s after the end", t.Number, number, t.State)
		}
		if leases[t.ID] != t.LeaseEpoch {
			f.t.Errorf("trial %d is under lease %d after %d leases", number, t.LeaseEpoch, leases[t.ID])
		}
		epochs += f.checkTrial(t)
	}
	for key, epoch := range f.acked {
		f.t.Errorf("the report of %s, rung %d, epoch %d was acknowledged under lease %d and is gone", key.trial, key.rung, key.epoch, epoch)
	}
	if view := f.view(id); view.Progress.Epochs != epochs {
		f.t.Errorf("the study counts %d epochs, its reports are %d", view.Progress.Epochs, epochs)
	}
	f.checkReplay(id, events)
}

// checkTrial takes the trial's reports off the acknowledged ones and returns
// how many there are.
func (f *fleet) checkTrial(t trial.Trial) int {
	reports, err := f.store.Reports(f.ctx, t.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	if len(reports) != t.Epochs {
		f.t.Errorf("trial %d counts %d epochs and has %d reports", t.Number, t.Epochs, len(reports))
	}
	seen, newest := map[reportKey]bool{}, trial.LeaseEpoch(0)
	for _, report := range reports {
		key := reportKey{t.ID, report.Rung, report.Epoch}
		if seen[key] {
			f.t.Errorf("epoch %d at rung %d of trial %d counts twice", report.Epoch, report.Rung, t.Number)
		}
		if report.LeaseEpoch < newest {
			f.t.Errorf("trial %d took a report of lease %d after one of lease %d", t.Number, report.LeaseEpoch, newest)
		}
		seen[key], newest = true, report.LeaseEpoch
		delete(f.acked, key)
	}
	if t.State == trial.Failed && t.Failures != 2 || t.State != trial.Failed && t.Failures > 1 {
		f.t.Errorf("trial %d is %s after %d failures, with 1 retry", t.Number, t.State, t.Failures)
	}
	return len(reports)
}

// checkReplay puts the log's decisions to a new search, which must take the
// same ones.
func (f *fleet) checkReplay(id string, events []journal.Event) {
	stored, err := f.store.Study(f.ctx, id)
	if err != nil {
		f.t.Fatal(err)
	}
	least := 30
	if f.halts { // it may have been stopped early
		least = 5
	}
	if decisions, err := session.Replay(stored.Definition, events); err != nil || decisions < least {
		f.t.Errorf("%d decisions came out the same: %v", decisions, err)
	}
	for _, event := range events {
		if !json.Valid(event.Data) && len(event.Data) > 0 {
			f.t.Errorf("event %d has data that is no JSON: %s", event.Sequence, event.Data)
		}
	}
}
