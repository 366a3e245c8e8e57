package study_test

import (
	"context"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/session"
)

// treacherous is a store that does something else with one change.
type treacherous struct {
	study.Store
	// next, if set, takes the next change.
	next func(journal.Change) error
}

func (s *treacherous) Apply(ctx context.Context, change journal.Change) error {
	return s.Submit(ctx, change).Wait()
}

func (s *treacherous) Submit(ctx context.Context, change journal.Change) *journal.Outcome {
	if take := s.next; take != nil {
		s.next = nil
		outcome := journal.NewOutcome()
		outcome.Settle(take(change))
		return outcome
	}
	return s.Store.Submit(ctx, change)
}

func (w *world) betray() *treacherous {
	s := &treacherous{Store: w.store}
	w.store = s
	w.start()
	return s
}

// TestALeaseThatWasMadeAndDeniedIsNotCalledNothing asks for any study's trial
// while the store makes the change and says that it did not. Who is told that
// there is no trial does not ask again, and the trial is lost for a lease term.
func TestALeaseThatWasMadeAndDeniedIsNotCalledNothing(t *testing.T) {
	in(func(t *testing.T, w *world) {
		store := w.betray()
		w.create()
		w.register("worker-1")
		store.next = func(change journal.Change) error {
			if err := store.Store.Apply(w.ctx, change); err != nil {
				t.Fatal(err)
			}
			return problem.New(problem.Unavailable, "made, and not said so")
		}
		reply, err := w.service.Lease(registry.WithIdempotency(w.ctx, "key", "key"), protocol.LeaseRequest{Worker: "worker-1"})
		if !problem.Is(err, problem.Unavailable) {
			t.Fatalf("it was answered %+v, %v: nobody would ask again", reply, err)
		}
		stored, found, err := w.service.Receipt(w.ctx, "key", "key")
		if err != nil || !found {
			t.Fatalf("the lease has no receipt: %s, %v", stored, err)
		}
		lease := w.leaseUnder("other", "worker-1").Lease
		if lease == nil || lease.Number != 1 {
			t.Fatalf("the next lease is %+v, and trial 0 is out", lease)
		}
	})(t)
}

// TestAPanicLeavesNothingBesideTheStore lets a use case panic between its
// decision and its write, and goes on: the log must be that of a search to which
// this never happened.
func TestAPanicLeavesNothingBesideTheStore(t *testing.T) {
	in(func(t *testing.T, w *world) {
		store := w.betray()
		created := w.create()
		w.register("worker-1")
		w.train(w.mustLease("worker-1"))
		store.next = func(journal.Change) error { panic("on purpose") }
		func() {
			defer func() {
				if recover() == nil {
					t.Fatal("nothing panicked")
				}
			}()
			w.lease("worker-1")
		}()
		for range 8 {
			w.train(w.mustLease("worker-1"))
		}
		events, err := w.store.Events(w.ctx, created.ID, 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := w.store.Study(w.ctx, created.ID)
		if err != nil {
			t.Fatal(err)
		}
		if decisions, err := session.Replay(stored.Definition, events); err != nil {
			t.Errorf("after %d decisions: %v", decisions, err)
		}
	})(t)
}
