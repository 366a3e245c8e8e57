package study

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/pool"
)

// TestNobodyWaitsLongForABetterOne looks from within: the better one stands in
// line and never takes what is meant for it.
func TestNobodyWaitsLongForABetterOne(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := New(nil, nil, Options{Now: func() time.Time { return now }})
	leave := s.standInLine(t.Context(), protocol.LeaseRequest{Worker: "better-1", WaitSeconds: 20})
	meant := choice{study: "study", better: "better-1", machine: "slow"}
	call := s.callOf("better-1")
	if !s.passOver("worse-1", meant) {
		t.Fatal("it is not made to wait")
	}
	select {
	case <-call:
	default:
		t.Error("the better one is not called")
	}
	call = s.callOf("better-1")
	now = now.Add(patience / 2)
	if !s.passOver("worse-1", meant) {
		t.Error("it is not made to wait until its patience ends")
	}
	select {
	case <-call:
	default:
		t.Error("the better one is not called again")
	}
	now = now.Add(patience / 2)
	if s.passOver("worse-1", meant) {
		t.Error("it waits for ever")
	}
	// Long after that it is another matter.
	now = now.Add(time.Hour)
	if !s.passOver("worse-1", meant) {
		t.Error("it is never made to wait again")
	}
	if first := s.firstPassed(&transaction{session: &session{id: "study"}}); first != "slow" {
		t.Errorf("the first to be made to wait is of type %q", first)
	}
	if first := s.firstPassed(&transaction{session: &session{id: "study"}}); first != "" {
		t.Errorf("it is said twice: %q", first)
	}
	leave()
	if s.passOver("worse-1", meant) {
		t.Error("it is made to wait for one that has gone")
	}
	now = now.Add(time.Hour)
	s.callAgain(now)
	if len(s.line.passed)+len(s.line.first)+len(s.line.waiting) != 0 {
		t.Errorf("what is long ago is kept: %+v", s.line)
	}
}

// TestAKeptTrialIsForItsMachineForAWhile.
func TestAKeptTrialIsForItsMachineForAWhile(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := New(nil, nil, Options{Now: func() time.Time { return now }})
	if _, err := s.RegisterWorker(t.Context(), protocol.WorkerRegistration{ID: "new-home", Name: "new", Slots: 1}); err != nil {
		t.Fatal(err)
	}
	defer s.standInLine(t.Context(), protocol.LeaseRequest{Worker: "new-home", WaitSeconds: 60})()
	r := &session{id: "study", queue: []int{4, 7, 9}, resting: map[int]time.Time{7: now.Add(time.Hour)}}
	s.sessions[r.id] = r
	s.leases.Keep(pool.Keeping{Lease: pool.Lease{Trial: "study-4", Study: r.id, Worker: "new-home"}, Until: now.Add(keptSpan), Awaited: now})
	for _, test := range []struct {
		worker string
		meant  int
		want   int
	}{{"other", next, 9}, {"other", 4, 9}, {"new-home", next, 4}, {"new-home", 9, 4}, {"other", 9, 9}} {
		if number, found := r.nextQueued(now, test.worker, test.meant, s.awaitingOf(r)); !found || number != test.want {
			t.Errorf("%s, for which %d is meant, gets %d, %t; want %d", test.worker, test.meant, number, found, test.want)
		}
	}
	if s.letGoOfKept(now) {
		t.Error("it is let go at once")
	}
	now = now.Add(keptSpan)
	if !s.letGoOfKept(now) {
		t.Error("it is never let go")
	}
	if number, _ := r.nextQueued(now, "other", next, s.awaitingOf(r)); number != 4 {
		t.Errorf("afterwards another one gets %d", number)
	}
}
