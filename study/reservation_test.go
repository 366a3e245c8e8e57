package study_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/protocol"
)

func TestReservationsKeepWorkersAndGPUs(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.as(user("ada")).create(named("hers", "resources: {gpus: 1}")...)
		bob := w.as(user("bob"))
		bob.create(named("his", "resources: {gpus: 1}", "priority: 5")...)
		w.rack("worker-rack", 8, 4)
		begin := time.Now().Add(time.Minute)
		made, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{User: "ada", Worker: "rack", From: &begin, To: begin.Add(time.Hour)})
		if err != nil || made.Active {
			t.Fatalf("%+v, %v", made, err)
		}
		if lease := w.mustLease("worker-rack"); lease.Study != "his" {
			t.Errorf("before it begins %s is served", lease.Study)
		}
		w.sleep(time.Minute + time.Second)
		w.rack("worker-rack", 8, 4)
		if lease := w.mustLease("worker-rack"); lease.Study != "hers" {
			t.Errorf("once it has begun %s is served", lease.Study)
		}
		bob.wantWait("his", "reservation", "worker rack is reserved for user ada until")
		w.start() // it is durable
		w.rack("worker-rack", 8, 4)
		if list := w.service.Reservations(w.ctx); len(list) != 1 || !list[0].Active || list[0].User != "ada" {
			t.Errorf("the reservations are %+v", list)
		}
		w.sleep(time.Hour)
		if entries, err := w.store.PoolEntries(w.ctx, "reservation"); err != nil || len(entries) != 0 || len(w.service.Reservations(w.ctx)) != 0 {
			t.Errorf("a reservation that is over is still there: %v, %v", entries, err)
		}
	})(t)
	in(func(t *testing.T, w *world) {
		w.as(user("ada")).create(named("hers", "resources: {gpus: 1}")...)
		bob := w.as(user("bob"))
		bob.create(named("his", "resources: {gpus: 1}", "priority: 5")...)
		w.rack("worker-rack", 8, 4)
		made, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{Study: "ada:hers", GPUs: 3, To: time.Now().Add(time.Hour)})
		if err != nil || !made.Active || made.Study != "ada:hers" {
			t.Fatalf("%+v, %v", made, err)
		}
		var served []string
		for lease := w.lease("worker-rack"); lease != nil; lease = w.lease("worker-rack") {
			served = append(served, lease.Study)
		}
		if !slices.Equal(served, []string{"his", "hers", "hers", "hers"}) {
			t.Errorf("with 3 of 4 GPUs kept for hers, served are %v", served)
		}
		if list := bob.service.Reservations(bob.ctx); len(list) != 1 || list[0].Study != "" || list[0].GPUs != 3 {
			t.Errorf("bob sees %+v", list)
		}
		if err := w.service.Unreserve(w.ctx, made.ID); err != nil {
			t.Fatal(err)
		}
		if err := w.service.Unreserve(w.ctx, made.ID); !problem.Is(err, problem.NotFound) {
			t.Errorf("a reservation that is not there: %v", err)
		}
	})(t)
}

func TestReservationsAreChecked(t *testing.T) {
	in(func(t *testing.T, w *world) {
		later := time.Now().Add(time.Hour)
		for want, ask := range map[string]protocol.ReservationRequest{
			"user":   {Worker: "rack", To: later},
			"worker": {User: "ada", Worker: "rack", GPUs: 1, To: later},
			"to":     {User: "ada", Worker: "rack", To: time.Now().Add(-time.Second)},
			"gpus":   {User: "ada", GPUs: -1, To: later},
		} {
			_, err := w.service.Reserve(w.ctx, ask)
			if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v", ask, err)
			}
		}
		if _, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{Study: "nowhere", GPUs: 1, To: later}); !problem.Is(err, problem.NotFound) {
			t.Errorf("for a study that is not there: %v", err)
		}
	})(t)
}
