package study_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

// breed is a type of machine, by what a pass over all data takes there.
type breed struct {
	model          string
	seconds, watts float64
}

var (
	swift  = breed{"swift", 2, 100} // 200 J
	frugal = breed{"frugal", 8, 5}  // 40 J
)

// kind is the name of the type.
func (b breed) kind() string { return protocol.Machine{CPUModel: b.model, Cores: 2}.Type() }

// probes are of a workload that is like the study's.
func (b breed) probes() []protocol.Probe {
	return []protocol.Probe{{Workload: "matrices", Seconds: b.seconds / 10, Joules: b.seconds * b.watts / 10, Method: "rapl"}}
}

// crew is workers on machines of several types, which wait for trials in long
// polls and train them in the world's time.
type crew struct {
	*world
	group   sync.WaitGroup
	ctx     context.Context
	stop    context.CancelFunc
	meter   bool // whether they know joules
	mutex   sync.Mutex
	paused  int
	trained map[string]int // epochs by type of machine
}

func newCrew(w *world) *crew {
	c := &crew{world: w, meter: true, trained: map[string]int{}}
	c.ctx, c.stop = context.WithCancel(w.ctx)
	c.group.Go(func() {
		for c.ctx.Err() == nil {
			time.Sleep(time.Second)
			if err := c.service.Tick(w.ctx); err != nil {
				w.t.Errorf("tick: %v", err)
			}
		}
	})
	return c
}

// dismiss ends all workers.
func (c *crew) dismiss() {
	c.stop()
	c.group.Wait()
}

// enrol starts a worker that works until it is dismissed or the context ends.
func (c *crew) enrol(ctx context.Context, id string, of breed, probes bool) {
	registration := protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Machine: protocol.Machine{CPUModel: of.model, Cores: 2}}
	if probes {
		registration.Probes = of.probes()
	}
	if _, err := c.service.RegisterWorker(c.world.ctx, registration); err != nil {
		c.t.Fatal(err)
	}
	c.group.Go(func() {
		for ctx.Err() == nil {
			reply, err := c.service.Lease(ctx, protocol.LeaseRequest{Worker: id, WaitSeconds: 20})
			switch {
			case err != nil && !errors.Is(err, context.Canceled):
				c.t.Errorf("%s: %v", id, err)
				return
			case reply.Lease != nil:
				c.run(ctx, reply.Lease, of)
			}
		}
	})
}

// run trains as an agent does: a checkpoint after each epoch, and what it is told.
func (c *crew) run(ctx context.Context, lease *protocol.Lease, of breed) {
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
		seconds := of.seconds * lease.Budget.DataFraction
		time.Sleep(time.Duration(seconds * float64(time.Second)))
		if ctx.Err() != nil && c.ctx.Err() == nil {
			return // it vanished
		}
		report := protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: trial.Float(seconds), Metrics: map[string]trial.Float{"accuracy": accuracy(lease, epoch)}}
		if c.meter {
			report.Energy = &trial.Energy{Joules: trial.Float(seconds * of.watts), Method: "rapl"}
		}
		directive, err := c.service.Report(c.world.ctx, lease.Trial, report)
		if problem.Is(err, problem.LeaseLost) || directive.Action == protocol.Stop {
			return
		}
		if err != nil {
			c.t.Errorf("report: %v", err)
			return
		}
		c.mutex.Lock()
		c.trained[of.model]++
		c.mutex.Unlock()
		if err := c.checkpoint(lease, epoch); err != nil && !problem.Is(err, problem.LeaseLost) {
			c.t.Errorf("checkpoint: %v", err)
		}
		if directive.Action == protocol.Pause {
			c.mutex.Lock()
			c.paused++
			c.mutex.Unlock()
			c.over(lease, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Interrupted, Reason: directive.Reason})
			return
		}
	}
	c.over(lease, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.BudgetReached})
}

func (c *crew) over(lease *protocol.Lease, request protocol.FinishRequest) {
	if _, err := c.service.Finish(c.world.ctx, lease.Trial, request); err != nil && !problem.Is(err, problem.LeaseLost) {
		c.t.Errorf("finish: %v", err)
	}
}

// until lets time pass until the studies are over.
func (c *crew) until(ids ...string) {
	c.t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Second) {
		if !slices.ContainsFunc(ids, func(id string) bool { return !c.view(id).Status.Over() }) {
			return
		}
		if time.Since(start) > 24*time.Hour {
			c.t.Fatal("a study is stuck")
		}
	}
}

// halving is a study in which rungs end together: 9 trials, then 3, then 1.
func (w *world) halving(name string, energy float64) protocol.StudyView {
	return w.create("name: example", fmt.Sprintf("name: %s\nplacement: {energy: %g}", name, energy),
		"method: bohb", "method: random, promotion: synchronous, brackets: 1", "trials: 27", "trials: 9")
}

// TestTheUserDecidesWhereTrialsRun: as soon as fewer trials are left than workers
// wait, those of a study with H=1 run on the frugal machines, and those of one with
// H=0 on the swift ones.
func TestTheUserDecidesWhereTrialsRun(t *testing.T) {
	joules, took := map[float64]float64{}, map[float64]time.Duration{}
	for energy, want := range map[float64]breed{0: swift, 1: frugal} {
		in(func(t *testing.T, w *world) {
			c := newCrew(w)
			defer c.dismiss()
			for i := range 2 {
				c.enrol(c.ctx, fmt.Sprintf("swift-%d-x", i), swift, false)
				c.enrol(c.ctx, fmt.Sprintf("frugal-%d", i), frugal, false)
			}
			began := time.Now()
			created := w.halving("halving", energy)
			c.until(created.ID)
			took[energy] = time.Since(began)
			joules[energy] = float64(w.view(created.ID).Progress.Energy.Joules)
			for _, one := range trialsOf(t, w, created.ID) {
				reports, err := w.store.Reports(w.ctx, one.ID)
				if err != nil {
					t.Fatal(err)
				}
				if last := reports[len(reports)-1]; last.Rung == 2 && last.Machine != want.kind() {
					t.Errorf("H=%g: trial %d ended on %s, want %s: %+v", energy, one.Number, last.Machine, want.kind(), one.Placement)
				}
				if one.Rung == 2 && (one.Placement == nil || len(one.Placement.Options) != 2 || one.Placement.Machine != want.kind() || one.Placement.Options[0].Machine != want.kind()) {
					t.Errorf("H=%g: trial %d does not say why it ran there: %+v", energy, one.Number, one.Placement)
				}
			}
			checkDecisions(t, w, created.ID)
		})(t)
	}
	if joules[1] >= joules[0] || took[0] >= took[1] {
		t.Errorf("H=0 took %.0f J and %v, H=1 %.0f J and %v", joules[0], took[0], joules[1], took[1])
	}
}

// checkDecisions puts a study's decisions to a new search: what ran where is
// nothing that it knows.
func checkDecisions(t *testing.T, w *world, id string) {
	t.Helper()
	stored, err := w.store.Study(w.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	events, err := w.store.Events(w.ctx, id, 0, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Replay(stored.Definition, events); err != nil {
		t.Error(err)
	}
}

// single is a study of one trial of 30 epochs over all data.
func (w *world) single(name string, energy float64) protocol.StudyView {
	return w.create("name: example", fmt.Sprintf("name: %s\nplacement: {energy: %g}", name, energy),
		"{min: 1, max: 9}", "{min: 30, max: 30}", "min: 0.25, max: 1", "min: 1, max: 1", "policy: multi", "policy: epochs", "method: bohb", "method: random", "trials: 27", "trials: 1")
}

// TestARunningTrialMovesByItsCheckpoint: a better machine comes while the trial
// trains. It goes on there behind its checkpoint, with the result that it has
// without the move, and at no cost of retries.
func TestARunningTrialMovesByItsCheckpoint(t *testing.T) {
	results := map[string]trial.Result{}
	for name, test := range map[string]struct {
		energy float64
		comes  bool
		moves  int
	}{
		"alone": {1, false, 0}, "for energy": {1, true, 1}, "not for time": {0, true, 0},
	} {
		in(func(t *testing.T, w *world) {
			c := newCrew(w)
			defer c.dismiss()
			c.enrol(c.ctx, "swift-1-x", swift, true)
			created := w.single("single", test.energy)
			time.Sleep(5 * time.Second)
			if test.comes {
				c.enrol(c.ctx, "frugal-1", frugal, true)
			}
			c.until(created.ID)
			one := w.trial(trial.ID(created.ID + "-0"))
			results[name] = trial.Result{Rung: one.Results[0].Rung, Values: one.Results[0].Values}
			if len(one.Migrations) != test.moves || c.paused != test.moves || one.Losses+one.Failures != 0 || one.Epochs != 30 {
				t.Fatalf("%s: %d moves, %d pauses, %d losses, %d failures, %d epochs", name, len(one.Migrations), c.paused, one.Losses, one.Failures, one.Epochs)
			}
			if test.moves == 0 {
				return
			}
			m := one.Migrations[0]
			if m.From != "swift-1-x" || m.To != "frugal-1" || m.Arrived != "frugal-1" || m.ArrivedType != frugal.kind() || m.There <= m.Here || m.Goes.Joules >= m.Stays.Joules {
				t.Errorf("%s: %+v", name, m)
			}
			// The machine takes per epoch what its probes said it would.
			if m.Epochs != c.trained["frugal"] || m.Epochs < 15 || m.Energy.Joules != trial.Float(m.Epochs)*40 {
				t.Errorf("%s: afterwards %d epochs took %v J", name, m.Epochs, m.Energy.Joules)
			}
			pool, err := w.service.Pool(w.ctx)
			if err != nil || len(pool.Machines) != 2 {
				t.Errorf("%+v, %v", pool, err)
			}
			checkDecisions(t, w, created.ID)
		})(t)
	}
	for name, result := range results {
		if fmt.Sprint(result) != fmt.Sprint(results["alone"]) {
			t.Errorf("%s it has %+v, alone %+v", name, result, results["alone"])
		}
	}
}

// TestATrialThatMovesAndIsNotMetGoesOn: the machine that it moves to goes away
// before it comes.
func TestATrialThatMovesAndIsNotMetGoesOn(t *testing.T) {
	in(func(t *testing.T, w *world) {
		c := newCrew(w)
		defer c.dismiss()
		slow := swift
		slow.seconds = 40
		c.enrol(c.ctx, "slow-1-xx", slow, true)
		created := w.single("single", 1)
		time.Sleep(45 * time.Second)
		ctx, vanish := context.WithCancel(c.ctx)
		c.enrol(ctx, "frugal-1", frugal, true)
		meant := false
		for range 60 {
			time.Sleep(time.Second)
			for _, m := range poolOf(t, w).Machines {
				meant = meant || len(m.Running) == 1 && m.Running[0].Moves != ""
			}
			if meant {
				break
			}
		}
		if !meant {
			t.Error("it was never to move")
		}
		vanish()
		c.until(created.ID)
		if one := w.trial(trial.ID(created.ID + "-0")); one.Epochs != 30 || one.Losses+one.Failures != 0 || len(one.Migrations) != 0 || c.paused != 0 {
			t.Errorf("%d epochs, %d losses, %d failures, %d moves, %d pauses", one.Epochs, one.Losses, one.Failures, len(one.Migrations), c.paused)
		}
	})(t)
}

func poolOf(t *testing.T, w *world) protocol.Pool {
	t.Helper()
	pool, err := w.service.Pool(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// TestWhatWasLearnedOfMachinesIsStored: after a restart the models are made again
// from the trials that are stored.
func TestWhatWasLearnedOfMachinesIsStored(t *testing.T) {
	in(func(t *testing.T, w *world) {
		c := newCrew(w)
		c.enrol(c.ctx, "swift-1-x", swift, false)
		c.enrol(c.ctx, "frugal-1", frugal, false)
		w.create("trials: 27", "trials: 2000")
		time.Sleep(5 * time.Minute)
		before := poolOf(t, w)
		c.dismiss()
		w.start()
		c = newCrew(w)
		defer c.dismiss()
		if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: "frugal-1", Name: "frugal-1", Slots: 1, Machine: protocol.Machine{CPUModel: frugal.model, Cores: 2}}); err != nil {
			t.Fatal(err)
		}
		after := poolOf(t, w)
		if len(before.Models) != 2 || len(after.Models) != 1 || after.Models[0].Basis != trial.OwnEpochs || after.Models[0].Epochs == 0 || after.Models[0].SecondsError == nil {
			t.Fatalf("before %+v, after %+v", before.Models, after.Models)
		}
		if off := *after.Models[0].SecondsError; off > 0.1 {
			t.Errorf("the median error is %.2f", float64(off))
		}
		if len(after.Waiting) == 0 || after.Waiting[0].Why != "no worker has room for another trial now" || after.Waiting[0].New == 0 {
			t.Errorf("waiting: %+v", after.Waiting)
		}
	})(t)
}

// TestTheNextStudyOfACommandKnowsTheMachines before it has trained anything. One of
// another command does not.
func TestTheNextStudyOfACommandKnowsTheMachines(t *testing.T) {
	for name, test := range map[string]struct {
		command string
		energy  float64
		basis   trial.Basis
		want    breed
	}{
		"for energy": {"train", 1, trial.EarlierEpochs, frugal}, "for time": {"train", 0, trial.EarlierEpochs, swift},
		"another command": {"other", 1, trial.Unknown, breed{}},
	} {
		in(func(t *testing.T, w *world) {
			c := newCrew(w)
			defer c.dismiss()
			c.enrol(c.ctx, "swift-1-x", swift, false)
			c.enrol(c.ctx, "frugal-1", frugal, false)
			c.until(w.halving("first", 0).ID)
			time.Sleep(time.Minute)
			next := w.create("name: example", fmt.Sprintf("name: next\nplacement: {energy: %g}", test.energy), "command: [train]", "command: ["+test.command+"]", "trials: 27", "trials: 1")
			time.Sleep(100 * time.Millisecond)
			placed := w.trial(trial.ID(next.ID + "-0")).Placement
			if placed == nil || len(placed.Options) != 2 {
				t.Fatalf("%s: %+v", name, placed)
			}
			for _, one := range placed.Options {
				if one.Basis != test.basis || (one.Epoch != nil) != (test.basis == trial.EarlierEpochs) {
					t.Errorf("%s: %+v", name, one)
				}
			}
			if test.basis == trial.EarlierEpochs && (placed.Machine != test.want.kind() || !strings.Contains(placed.Why, "from an earlier study of this command")) {
				t.Errorf("%s: %s", name, placed.Why)
			}
		})(t)
	}
}

// TestWithoutMetersTimeDecides, and it is said.
func TestWithoutMetersTimeDecides(t *testing.T) {
	in(func(t *testing.T, w *world) {
		c := newCrew(w)
		defer c.dismiss()
		c.meter = false
		for i := range 2 {
			c.enrol(c.ctx, fmt.Sprintf("swift-%d-x", i), swift, false)
			c.enrol(c.ctx, fmt.Sprintf("frugal-%d", i), frugal, false)
		}
		created := w.halving("halving", 1)
		c.until(created.ID)
		for _, one := range trialsOf(t, w, created.ID) {
			if one.Rung == 2 && (one.Placement == nil || !one.Placement.ByTime || one.Placement.Machine != swift.kind() || !strings.Contains(one.Placement.Why, "by time alone")) {
				t.Errorf("trial %d: %+v", one.Number, one.Placement)
			}
		}
	})(t)
}

// TestEveryReadyTrialIsTakenWhileAWorkerWaits: workers of several types come and
// go, several studies wait with different wishes and priorities. Whatever is
// ready is leased within seconds as long as a worker waits that may run it, and
// all studies end.
func TestEveryReadyTrialIsTakenWhileAWorkerWaits(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 3
	}
	moved, placed := 0, 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed)
			c := newCrew(w)
			random := rand.New(rand.NewPCG(seed, 5))
			var ids []string
			for i := range 1 + random.IntN(3) {
				ids = append(ids, w.halving(fmt.Sprintf("halving-%d", i), float64(random.IntN(3))/2).ID)
			}
			ids = append(ids, w.single("single", 1).ID)
			breeds := []breed{swift, frugal, {"other", 4, 30}}
			for i := range 2 + random.IntN(5) {
				life, end := context.WithCancel(c.ctx)
				if random.IntN(3) == 0 && i > 0 { // it vanishes some time
					span := time.Duration(1+random.IntN(300)) * time.Second
					c.group.Go(func() { time.Sleep(span); end() })
				} else {
					defer end()
				}
				c.enrol(life, fmt.Sprintf("worker-%d", i), breeds[random.IntN(3)], random.IntN(2) == 0)
			}
			late := 0
			for start := time.Now(); slices.ContainsFunc(ids, func(id string) bool { return !w.view(id).Status.Over() }); time.Sleep(time.Second) {
				synctest.Wait()
				idle := slices.ContainsFunc(poolOf(t, w).Waiting, func(one protocol.PoolTask) bool {
					return slices.ContainsFunc(one.Options, func(o trial.PlacementOption) bool { return o.Waiting > 0 })
				})
				if late++; !idle {
					late = 0
				}
				if late > 5 || time.Since(start) > 24*time.Hour {
					t.Errorf("seed %d: for %d s a worker has waited beside a trial that it may run: %+v", seed, late, poolOf(t, w).Waiting)
					break
				}
			}
			for _, id := range ids {
				for _, one := range trialsOf(t, w, id) {
					moved += len(one.Migrations)
					if one.Placement != nil {
						placed++
					}
				}
			}
			c.dismiss()
		})
	}
	if placed == 0 && !t.Failed() && !testing.Short() {
		t.Errorf("no trial was placed: the test tests less than it says")
	}
	t.Logf("%d moves, %d placements", moved, placed)
}
