package study_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// post registers a worker of a type that is known by its probes.
func (w *world) post(id string, of breed, slots, gpus int) {
	w.t.Helper()
	machine := protocol.Machine{CPUModel: of.model, Cores: 2, MemoryBytes: 8 << 30}
	for range gpus {
		machine.GPUs = append(machine.GPUs, "NVIDIA A100")
	}
	if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: id, Slots: slots, Machine: machine, Probes: of.probes()}); err != nil {
		w.t.Fatal(err)
	}
}

// got is what a worker that waited was given, and after how long.
type got struct {
	worker string
	lease  *protocol.Lease
	after  time.Duration
}

// wait has the workers wait in long polls, one for each time they are named, lets
// work come, and says who was given what within the span.
func (w *world) wait(span time.Duration, work func(), workers ...string) (given []got) {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.ctx)
	answers, began := make(chan got, len(workers)), time.Now()
	for _, worker := range workers {
		go func() {
			reply, _ := w.service.Lease(ctx, protocol.LeaseRequest{Worker: worker, WaitSeconds: 20})
			answers <- got{worker, reply.Lease, time.Since(began)}
		}()
	}
	synctest.Wait()
	work()
	w.sleep(span)
	stop()
	for range workers {
		if one := <-answers; one.lease != nil {
			given = append(given, one)
		}
	}
	return given
}

// TestPlacementKeepsTheRulesOfThePool: a swift and a frugal worker wait, and a study
// for which the swift one is better. Where the rules leave room for one trial it is
// the swift one's, and where they keep that one away the frugal one waits for nobody.
func TestPlacementKeepsTheRulesOfThePool(t *testing.T) {
	reserve := protocol.ReservationRequest{User: "bob", Worker: "swift-1"}
	for name, test := range map[string]struct {
		study   []string
		rule    func(w *world) error
		workers []string
		want    map[string]int
	}{
		"free":     {nil, func(*world) error { return nil }, nil, map[string]int{"swift-1": 1, "frugal-1": 1}},
		"parallel": {[]string{"parallel: 1"}, func(*world) error { return nil }, nil, map[string]int{"swift-1": 1}},
		"quota": {nil, func(w *world) error {
			_, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{Trials: 1})
			return err
		}, nil, map[string]int{"swift-1": 1}},
		"quota of GPUs": {[]string{"resources: {gpus: 2}"}, func(w *world) error {
			_, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{GPUs: 3})
			return err
		}, nil, map[string]int{"swift-1": 1}},
		"gang":   {[]string{"resources: {gpus: 2}"}, func(*world) error { return nil }, []string{"swift-1", "swift-1", "frugal-1"}, map[string]int{"swift-1": 1, "frugal-1": 1}},
		"cores":  {[]string{"parallel: 2", "resources: {cores: 2}"}, func(*world) error { return nil }, []string{"swift-1", "swift-1", "frugal-1"}, map[string]int{"swift-1": 1, "frugal-1": 1}},
		"memory": {[]string{"parallel: 2", "resources: {memory_gib: 4}"}, func(*world) error { return nil }, []string{"swift-1", "swift-1", "frugal-1"}, map[string]int{"swift-1": 1, "frugal-1": 1}},
		"reservation": {nil, func(w *world) error {
			reserve.To = time.Now().Add(time.Hour)
			_, err := w.service.Reserve(w.ctx, reserve)
			return err
		}, nil, map[string]int{"frugal-1": 1}},
		"drain": {nil, func(w *world) error {
			_, err := w.service.Drain(w.ctx, "swift-1", protocol.DrainRequest{})
			return err
		}, nil, map[string]int{"frugal-1": 1}},
		"beside what nobody can run": {[]string{"parallel: 1"}, func(w *world) error {
			w.create(named("huge", "resources: {gpus: 8}", "priority: 5")...)
			return nil
		}, nil, map[string]int{"swift-1": 1}},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			ada := w.as(user("ada"))
			ada.create(named("hers", test.study...)...)
			w.post("swift-1", swift, 2, 2)
			w.post("frugal-1", frugal, 2, 2)
			w.train(w.mustLease("swift-1")) // now it is known how it trains
			if err := test.rule(w); err != nil {
				t.Fatal(err)
			}
			workers := test.workers
			if workers == nil {
				workers = []string{"frugal-1", "swift-1"}
			}
			for range 5 {
				if _, err := ada.service.Pause(ada.ctx, "hers"); err != nil {
					t.Fatal(err)
				}
				count := map[string]int{}
				for _, one := range w.wait(2*time.Second, func() {
					if _, err := ada.service.Resume(ada.ctx, "hers"); err != nil {
						t.Error(err)
					}
				}, workers...) {
					count[one.worker]++
					if one.after > 0 {
						t.Errorf("%s was made to wait for %v", one.worker, one.after)
					}
					w.train(one.lease)
				}
				if count["swift-1"] != test.want["swift-1"] || count["frugal-1"] != test.want["frugal-1"] {
					t.Fatalf("given are %v, want %v", count, test.want)
				}
				w.sleep(5 * time.Second) // that one was made to wait is forgotten
			}
		}))
	}
}

// TestATrialStaysWhenItsNewMachineIsTaken: it is drained or reserved after the move
// was decided, and before the trial's worker reports.
func TestATrialStaysWhenItsNewMachineIsTaken(t *testing.T) {
	for name, take := range map[string]func(w *world) error{
		"drained": func(w *world) error {
			_, err := w.service.Drain(w.ctx, "frugal-1", protocol.DrainRequest{})
			return err
		},
		"reserved": func(w *world) error {
			_, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{User: "bob", Worker: "frugal-1", To: time.Now().Add(100 * time.Hour)})
			return err
		},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			c := newCrew(w)
			defer c.dismiss()
			slow := swift
			slow.seconds = 40
			c.enrol(c.ctx, "slow-1-xx", slow, true)
			created := w.single("single", 1)
			time.Sleep(45 * time.Second)
			c.enrol(c.ctx, "frugal-1", frugal, true)
			for at := 0; ; at++ {
				time.Sleep(time.Second)
				if machines := poolOf(t, w).Machines; len(machines[1].Running) == 1 && machines[1].Running[0].Moves != "" {
					break
				}
				if at > 60 {
					t.Fatal("it was never to move")
				}
			}
			if err := take(w); err != nil {
				t.Fatal(err)
			}
			c.until(created.ID)
			if one := w.trial(trial.ID(created.ID + "-0")); one.Epochs != 30 || one.Losses+one.Failures != 0 || len(one.Migrations) != 0 || c.paused != 0 {
				t.Errorf("%d epochs, %d losses, %d failures, %d moves, %d pauses", one.Epochs, one.Losses, one.Failures, len(one.Migrations), c.paused)
			}
		}))
	}
}

// TestATrialOfAnOwnerAtQuotaMoves: where it goes it takes no more than it gives back.
func TestATrialOfAnOwnerAtQuotaMoves(t *testing.T) {
	in(func(t *testing.T, w *world) {
		c := newCrew(w)
		defer c.dismiss()
		c.enrol(c.ctx, "swift-1-x", swift, true)
		if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{Trials: 1, JoulesADay: 100000}); err != nil {
			t.Fatal(err)
		}
		ada := w.as(user("ada"))
		created := ada.single("single", 1)
		ada.create(named("another")...)
		time.Sleep(5 * time.Second)
		c.enrol(c.ctx, "frugal-1", frugal, true)
		for w.trial(trial.ID(created.ID+"-0")).State != trial.Completed {
			time.Sleep(time.Second)
			if quotas := w.quotas(); len(quotas) != 1 || quotas[0].Uses.Trials > 1 {
				t.Fatalf("quotas: %+v", quotas)
			}
		}
		one := w.trial(trial.ID(created.ID + "-0"))
		if len(one.Migrations) != 1 || one.Migrations[0].Arrived != "frugal-1" || one.Epochs != 30 {
			t.Errorf("%d epochs, moves: %+v", one.Epochs, one.Migrations)
		}
	})(t)
}

// TestAReservationDoesNotNameOthersStudies to those who wait for it.
func TestAReservationDoesNotNameOthersStudies(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.as(user("ada")).create(named("secret")...)
		bob := w.as(user("bob"))
		bob.create(named("his")...)
		w.rack("worker-rack", 1, 0)
		if _, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{Study: "ada:secret", Worker: "rack", To: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		bob.wantWait("his", "reservation", "worker rack is reserved for another study until")
	})(t)
}
