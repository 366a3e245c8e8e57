package study

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
)

// TestFreeCoresAreKeptWhileATrialIsChosen looks from within, as what happens
// between the two steps is a matter of microseconds: a trial that reports
// meanwhile must not grow into the cores of the one that is being chosen.
func TestFreeCoresAreKeptWhileATrialIsChosen(t *testing.T) {
	s := New(nil, nil, Options{Now: time.Now})
	_, err := s.RegisterWorker(t.Context(), protocol.WorkerRegistration{
		ID: "worker-1", Name: "box", Slots: 4, Elastic: true, Machine: protocol.Machine{Cores: 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	here, denied := s.reserve(session.New(&session.Options{Now: time.Now}, journal.Study{}), "worker-1", anything)
	if here == nil || here.Cores != 4 {
		t.Fatalf("the chosen trial has %+v of 4 cores, denied %+v", here, denied)
	}
	if free := s.allocator.SiteOf("worker-1", "").Room.Cores; free != 0 {
		t.Errorf("others see %d free cores while it is chosen", free)
	}
	here.Cancel()
	if free := s.allocator.SiteOf("worker-1", "").Room.Cores; free != 4 {
		t.Errorf("afterwards %d of 4 cores are free", free)
	}
}
