package study_test

import (
	"context"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// moody is a store that refuses every change while it is told to.
type moody struct {
	study.Store
	refuses bool
}

func (m *moody) Apply(ctx context.Context, change journal.Change) error {
	if m.refuses {
		return problem.New(problem.Unavailable, "not now")
	}
	return m.Store.Apply(ctx, change)
}

func (m *moody) Submit(ctx context.Context, change journal.Change) *journal.Outcome {
	outcome := journal.NewOutcome()
	outcome.Settle(m.Apply(ctx, change))
	return outcome
}

// TestAStoreThatRefusesCostsNoLease: a worker's heartbeats come while the store
// refuses what one of its trials would have written. None of its trials is taken from
// it once the store is back; that of a silent worker is.
func TestAStoreThatRefusesCostsNoLease(t *testing.T) {
	in(func(t *testing.T, w *world) {
		store := &moody{Store: w.store}
		w.store = store
		w.start()
		for _, name := range []string{"stalls", "works", "silent"} {
			w.create(append(oneRung, "name: example", "name: "+name+"\nstall_seconds: 60")...)
		}
		if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: "worker-1", Name: "worker-1", Slots: 2}); err != nil {
			t.Fatal(err)
		}
		w.register("worker-2")
		leases := map[string]*protocol.Lease{}
		for name, worker := range map[string]string{"stalls": "worker-1", "works": "worker-1", "silent": "worker-2"} {
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: worker, Study: name})
			if err != nil || reply.Lease == nil {
				t.Fatalf("%+v, %v", reply, err)
			}
			leases[name] = reply.Lease
		}
		beat := func(quiet float64) (protocol.HeartbeatReply, error) {
			return w.service.Heartbeat(w.ctx, "worker-1", protocol.Heartbeat{Leases: []protocol.HeldLease{
				{Trial: leases["stalls"].Trial, LeaseEpoch: 1, QuietSeconds: quiet}, {Trial: leases["works"].Trial, LeaseEpoch: 1},
			}})
		}
		store.refuses = true
		for second := range 200 {
			time.Sleep(time.Second)
			_ = w.service.Tick(w.ctx) // it cannot take the silent one's trial
			if second%10 == 0 {
				if _, err := beat(100); err == nil {
					t.Fatal("the stall was stored")
				}
			}
		}
		store.refuses = false
		w.sleep(2 * time.Second) // before the next heartbeat comes
		reply, err := beat(0)
		if err != nil || len(reply.Lost) > 0 {
			t.Errorf("the next heartbeat was answered %+v, %v", reply, err)
		}
		for name, losses := range map[string]int{"stalls": 0, "works": 0, "silent": 1} {
			if got := w.trial(leases[name].Trial); got.Losses != losses {
				t.Errorf("the trial of %s was lost %d times, want %d", name, got.Losses, losses)
			}
		}
	})(t)
}

// TestOnlyTheWorkersOwnerExcusesIt: what keeps a lease is not for everybody.
func TestOnlyTheWorkersOwnerExcusesIt(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(oneRung...)
		mine := access.WithCaller(w.ctx, access.Caller{Sight: access.Held, Holder: "worker:worker-1"})
		if _, err := w.service.RegisterWorker(mine, protocol.WorkerRegistration{ID: "worker-1", Name: "worker-1", Slots: 1}); err != nil {
			t.Fatal(err)
		}
		reply, err := w.service.Lease(mine, protocol.LeaseRequest{Worker: "worker-1"})
		if err != nil || reply.Lease == nil {
			t.Fatalf("%+v, %v", reply, err)
		}
		kept := func(ctx context.Context) trial.Trial {
			for range 10 {
				w.sleep(20 * time.Second)
				w.service.Excuse(ctx, "worker-1")
			}
			return w.trial(reply.Lease.Trial)
		}
		if got := kept(mine); got.Losses != 0 || !got.State.Held() {
			t.Errorf("its owner's word: %d losses, %s", got.Losses, got.State)
		}
		if got := kept(access.WithCaller(w.ctx, access.Caller{Owner: "bob", Sight: access.Own, Holder: "user:bob"})); got.Losses != 1 {
			t.Errorf("somebody else's word: %d losses, %s", got.Losses, got.State)
		}
	})(t)
}
