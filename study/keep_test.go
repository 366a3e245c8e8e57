package study

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/workers/pool"
)

// moving is a service with two workers with a GPU each, and a trial of ada's that had
// one and is kept for the new worker.
func moving(t *testing.T, now *time.Time) (s *Service, r *session) {
	t.Helper()
	s = New(nil, nil, Options{Now: func() time.Time { return *now }})
	for _, worker := range []string{"new-1", "old-1"} {
		registration := protocol.WorkerRegistration{ID: worker, Name: worker, Slots: 1, Machine: protocol.Machine{Cores: 4, GPUs: []string{"A100"}}}
		if _, err := s.RegisterWorker(t.Context(), registration); err != nil {
			t.Fatal(err)
		}
		s.standInLine(t.Context(), protocol.LeaseRequest{Worker: worker, WaitSeconds: 60})
	}
	r = ofAda("moving")
	r.queue = []int{0}
	s.sessions[r.id] = r
	s.leases.Keep(pool.Keeping{Lease: pool.Lease{Trial: "moving-0", Study: r.id, Owner: r.owner, Worker: "new-1", GPUs: []int{0}}, Until: now.Add(keptSpan), Awaited: *now})
	return s, r
}

func ofAda(id string) *session {
	one := 1
	r := &session{id: id, owner: "ada"}
	r.study.Definition.Resources = &definition.Resources{GPUs: &one}
	return r
}

// TestWhatATrialHadIsItsOwnersWhileItIsKept: no other trial of the owner, and nobody
// else, has it meanwhile.
func TestWhatATrialHadIsItsOwnersWhileItIsKept(t *testing.T) {
	for name, quota := range map[string]pool.Quota{"trials": {Trials: 1}, "GPUs": {GPUs: 1}} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s, r := moving(t, &now)
		s.rules.quotas["ada"] = quota
		if _, fits := s.reserve(ofAda("other"), "old-1"); fits {
			t.Errorf("%s: another trial of hers has the place in her quota", name)
		}
		if _, fits := s.reserve(r, "old-1"); fits {
			t.Errorf("%s: another trial of the study has it", name)
		}
		here, fits := s.reserve(r, "new-1")
		if !fits {
			t.Fatalf("%s: it may not go on where it is awaited: %s", name, here.withheld)
		}
		s.granted(r, pool.Lease{Trial: "moving-0", Study: r.id, Owner: r.owner, Worker: "new-1", GPUs: here.gpus}, here.ticket)
		if held := s.holdings().ByOwner["ada"]; held.Trials != 1 || held.GPUs != 1 || len(s.leases.Kept()) != 0 {
			t.Errorf("%s: then she has %+v, and %v is kept", name, held, s.leases.Kept())
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
		"there still": {func(_ *Service, now *time.Time) { *now = now.Add(keptSpan - 1) }, false},
		"too late":    {func(_ *Service, now *time.Time) { *now = now.Add(keptSpan) }, true},
		"taken": {func(s *Service, _ *time.Time) {
			s.granted(ofAda("other"), pool.Lease{Trial: "other-0", Worker: "new-1", GPUs: []int{0}}, 0)
			if len(s.leases.Kept()) != 0 {
				panic("it is kept until the next tick")
			}
		}, true},
		"drained": {func(s *Service, _ *time.Time) {
			s.rules.drains = map[drainKey]protocol.Drain{{"new-1", ""}: {}}
		}, true},
		"reserved": {func(s *Service, now *time.Time) {
			s.rules.reservations = []pool.Reservation{{User: "bob", Worker: "new-1", To: now.Add(time.Hour)}}
		}, true},
		"gone for a moment": {func(s *Service, now *time.Time) {
			delete(s.line.waiting, "new-1")
			*now = now.Add(patience - 1)
		}, false},
		"gone": {func(s *Service, now *time.Time) {
			delete(s.line.waiting, "new-1")
			*now = now.Add(patience)
		}, true},
		"not queued": {func(s *Service, _ *time.Time) { s.sessions["moving"].queue = nil }, true},
	} {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s, r := moving(t, &now)
		if _, found := r.nextQueued(now, "old-1", next, s.awaitingOf(r)); found {
			t.Errorf("%s: the old worker has it", name)
		}
		test.take(s, &now)
		s.letGoOfKept(now)
		if goes := len(s.leases.Kept()) == 0; goes != test.goes {
			t.Errorf("%s: let go is %v", name, goes)
		}
		if _, found := r.nextQueued(now, "old-1", next, s.awaitingOf(r)); found != (test.goes && len(r.queue) > 0) {
			t.Errorf("%s: the old worker may have it: %v", name, found)
		}
	}
}
