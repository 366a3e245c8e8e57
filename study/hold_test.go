package study

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/rules"
	"github.com/tandem-tune/tandem/workers/scheduler"
	"github.com/tandem-tune/tandem/workers/waitqueue"
)

// moving is a service with two workers with a GPU each, and a trial of ada's that had
// one and is kept for the new worker.
func moving(t *testing.T, now *time.Time) (s *Service, r *session.Session) {
	t.Helper()
	s = New(nil, nil, Options{Now: func() time.Time { return *now }})
	for _, worker := range []string{"new-1", "old-1"} {
		registration := protocol.WorkerRegistration{ID: worker, Name: worker, Slots: 1, Machine: protocol.Machine{Cores: 4, GPUs: []string{"A100"}}}
		if _, err := s.RegisterWorker(t.Context(), registration); err != nil {
			t.Fatal(err)
		}
		enqueue(t, s, access.Caller{}, worker)
	}
	r = ofAda("moving")
	r.Queue, r.Trials = []int{0}, make([]trial.Trial, 1)
	s.sessions.Add(r)
	holdFor(s, pool.Lease{Trial: "moving-0", Study: r.ID, Owner: r.Owner(), Worker: "old-1", GPUs: []int{0}}, "new-1", 0)
	return s, r
}

// anything is the choice of a worker for which nothing is meant.
var anything = choice{Choice: scheduler.Choice{Number: allocator.Next}}

// enqueue has the worker wait until the answer is called.
func enqueue(t testing.TB, s *Service, caller access.Caller, worker string) (leave func()) {
	t.Helper()
	if _, err := s.allocator.Arrive(allocator.Visit{Caller: caller, Worker: worker, Enqueue: true}); err != nil {
		t.Fatal(err)
	}
	return func() { s.allocator.Leave(worker) }
}

// holdFor has the trial with the lease given back, and held for the worker for as long.
func holdFor(s *Service, lease pool.Lease, worker string, wait time.Duration) {
	s.allocator.Regrant([]pool.Lease{lease})
	s.allocator.Hold(&allocator.Migration{Trial: lease.Trial, Worker: worker, Wait: wait, Partner: &allocator.Migration{}}, s.options.Now())
	s.allocator.Release(lease.Trial, lease.Epoch)
}

func heldOf(s *Service, r *session.Session) allocator.Held {
	return s.allocator.Placements.Held(r.ID, r.Queue)
}

func ofAda(id string) *session.Session {
	one := 1
	r := session.New(&session.Options{Now: time.Now}, journal.Study{ID: id, Owner: "ada"})
	r.Study.Definition.Resources = &definition.Resources{GPUs: &one}
	return r
}

// TestWhatATrialHadIsItsOwnersWhileItIsKept: no other trial of the owner, and nobody
// else, has it meanwhile.
func TestWhatATrialHadIsItsOwnersWhileItIsKept(t *testing.T) {
	for name, quota := range map[string]pool.Quota{"trials": {Trials: 1}, "GPUs": {GPUs: 1}} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s, r := moving(t, &now)
		s.allocator.Govern(func(r *rules.Rules) { r.SetQuota("ada", &quota) })
		if here, _ := s.reserve(ofAda("other"), "old-1", anything); here != nil {
			t.Errorf("%s: another trial of hers has the place in her quota", name)
		}
		if here, _ := s.reserve(r, "old-1", anything); here != nil {
			t.Errorf("%s: another trial of the study has it", name)
		}
		here, denied := s.reserve(r, "new-1", anything)
		if here == nil {
			t.Fatalf("%s: it may not go on where it is awaited: %s", name, denied.Reason)
		}
		here.Confirm(pool.Lease{Trial: "moving-0", Study: r.ID, Owner: r.Owner(), Worker: "new-1", GPUs: here.GPUs})
		if held := s.allocator.Snapshot().Held.ByOwner["ada"]; held.Trials != 1 || held.GPUs != 1 || len(s.allocator.Holds()) != 0 {
			t.Errorf("%s: then she has %+v, and %v is held", name, held, s.allocator.Holds())
		}
	}
}

// TestATrialWaitsForNobodyWhoIsTaken, drained, reserved or gone: any other worker may
// have it at once.
func TestATrialWaitsForNobodyWhoIsTaken(t *testing.T) {
	for name, test := range map[string]struct {
		take func(s *Service, now *time.Time)
		goes bool
	}{
		"there still": {func(_ *Service, now *time.Time) { *now = now.Add(allocator.HoldSpan - 1) }, false},
		"too late":    {func(_ *Service, now *time.Time) { *now = now.Add(allocator.HoldSpan) }, true},
		"taken": {func(s *Service, _ *time.Time) {
			here, _ := s.reserve(ofAda("other"), "new-1", anything)
			here.Confirm(pool.Lease{Trial: "other-0", Worker: "new-1", GPUs: []int{0}})
			if len(s.allocator.Holds()) != 0 {
				panic("it is kept until the next tick")
			}
		}, true},
		"drained": {func(s *Service, _ *time.Time) {
			s.allocator.Govern(func(r *rules.Rules) { r.SetDrains(map[rules.WorkerName]*protocol.Drain{{Name: "new-1"}: {}}) })
		}, true},
		"reserved": {func(s *Service, now *time.Time) {
			s.allocator.Govern(func(r *rules.Rules) {
				r.AddReservation(pool.Reservation{User: "bob", Worker: "new-1", To: now.Add(time.Hour)})
			})
		}, true},
		"gone for a moment": {func(s *Service, now *time.Time) {
			s.allocator.Leave("new-1")
			*now = now.Add(waitqueue.Patience - 1)
		}, false},
		"gone": {func(s *Service, now *time.Time) {
			s.allocator.Leave("new-1")
			*now = now.Add(waitqueue.Patience)
		}, true},
		"not queued": {func(s *Service, _ *time.Time) { s.sessions.InMemory("moving").Queue = nil }, true},
	} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s, r := moving(t, &now)
		if _, found := r.NextQueued(now, "old-1", allocator.Next, heldOf(s, r)); found {
			t.Errorf("%s: the old worker has it", name)
		}
		test.take(s, &now)
		s.allocator.ReleaseHolds(now, s.sessions.IsQueued)
		if goes := len(s.allocator.Holds()) == 0; goes != test.goes {
			t.Errorf("%s: let go is %v", name, goes)
		}
		if _, found := r.NextQueued(now, "old-1", allocator.Next, heldOf(s, r)); found != (test.goes && len(r.Queue) > 0) {
			t.Errorf("%s: the old worker may have it: %v", name, found)
		}
	}
}

// TestAKeptTrialIsForItsMachineForAWhile.
func TestAKeptTrialIsForItsMachineForAWhile(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := New(nil, nil, Options{Now: func() time.Time { return now }})
	if _, err := s.RegisterWorker(t.Context(), protocol.WorkerRegistration{ID: "new-home", Name: "new", Slots: 1}); err != nil {
		t.Fatal(err)
	}
	defer enqueue(t, s, access.Caller{}, "new-home")()
	r := session.New(&session.Options{Now: time.Now}, journal.Study{ID: "study"})
	r.Queue, r.Resting = []int{4, 7, 9}, map[int]time.Time{7: now.Add(time.Hour)}
	s.sessions.Add(r)
	holdFor(s, pool.Lease{Trial: "study-4", Study: r.ID}, "new-home", 0)
	for _, test := range []struct {
		worker string
		meant  int
		want   int
	}{{"other", allocator.Next, 9}, {"other", 4, 9}, {"new-home", allocator.Next, 4}, {"new-home", 9, 4}, {"other", 9, 9}} {
		if number, found := r.NextQueued(now, test.worker, test.meant, heldOf(s, r)); !found || number != test.want {
			t.Errorf("%s, for which %d is meant, gets %d, %t; want %d", test.worker, test.meant, number, found, test.want)
		}
	}
	if s.allocator.ReleaseHolds(now, s.sessions.IsQueued) {
		t.Error("it is let go at once")
	}
	now = now.Add(allocator.HoldSpan)
	if !s.allocator.ReleaseHolds(now, s.sessions.IsQueued) {
		t.Error("it is never let go")
	}
	if number, _ := r.NextQueued(now, "other", allocator.Next, heldOf(s, r)); number != 4 {
		t.Errorf("afterwards another one gets %d", number)
	}
}

// TestATrialThatMovesKeepsItsPlace among those of a study that may have one at once.
func TestATrialThatMovesKeepsItsPlace(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := New(nil, nil, Options{Now: func() time.Time { return now }})
	r := session.New(&session.Options{Now: time.Now}, journal.Study{ID: "study"})
	r.Queue = []int{1, 2}
	r.Study.Definition.Parallel = 1
	holdFor(s, pool.Lease{Trial: "study-2", Study: r.ID}, "new", 0)
	if kept := heldOf(s, r); !r.Full(kept.Besides("other")) || r.Full(kept.Besides("new")) {
		t.Error("its place is another one's, or nobody's")
	}
	if first := heldOf(s, r).First(r.Queue)[0]; first != 2 {
		t.Errorf("trial %d is offered first", first)
	}
	if now = now.Add(allocator.HoldSpan); r.Full(heldOf(s, r).Besides("other")) {
		t.Error("its place is kept for ever")
	}
}
