package study_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
)

// reservations are those that hold or will, as the world's caller is told.
func (w *world) reservations() []protocol.Reservation {
	w.t.Helper()
	list, err := w.service.Reservations(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// quotas are those that the world's caller is told of.
func (w *world) quotas() []protocol.QuotaView {
	w.t.Helper()
	list, err := w.service.Quotas(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

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
		if list := w.reservations(); len(list) != 1 || !list[0].Active || list[0].User != "ada" {
			t.Errorf("the reservations are %+v", list)
		}
		w.sleep(time.Hour)
		if entries, err := w.store.PoolEntries(w.ctx, "reservation"); err != nil || len(entries) != 0 || len(w.reservations()) != 0 {
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
		if list := bob.reservations(); len(list) != 1 || list[0].Study != "" || list[0].GPUs != 3 {
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

// TestAWorkerIsReservedForOne: of two that hold at once neither would keep it.
func TestAWorkerIsReservedForOne(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.as(user("ada")).create(named("hers")...)
		now := time.Now()
		reserve := func(worker, user, study string, from, to time.Duration) (protocol.Reservation, error) {
			begin := now.Add(from)
			return w.service.Reserve(w.ctx, protocol.ReservationRequest{User: user, Study: study, Worker: worker, From: &begin, To: now.Add(to)})
		}
		first, err := reserve("rack", "ada", "", 0, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		_, err = reserve("rack", "zed", "", 30*time.Minute, 2*time.Hour)
		for _, word := range []string{"reserved for ada", first.ID, first.To.Format(time.RFC3339), "remove that one first"} {
			if !problem.Is(err, problem.Conflict) || !strings.Contains(err.Error(), word) {
				t.Errorf("a second one for another user: %v; want a conflict with %q", err, word)
			}
		}
		if _, err := reserve("rack", "", "ada:hers", 0, time.Hour); !problem.Is(err, problem.Conflict) {
			t.Errorf("a second one for a study: %v", err)
		}
		for _, fine := range []func() (protocol.Reservation, error){
			func() (protocol.Reservation, error) { return reserve("rack", "zed", "", time.Hour, 2*time.Hour) },
			func() (protocol.Reservation, error) { return reserve("rack", "ada", "", 0, time.Minute) },
			func() (protocol.Reservation, error) { return reserve("other", "zed", "", 0, time.Hour) },
		} {
			if one, err := fine(); err != nil {
				t.Errorf("%+v: %v", one, err)
			}
		}
		if err := w.service.Unreserve(w.ctx, first.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := reserve("rack", "zed", "", 2*time.Minute, time.Hour); err != nil {
			t.Errorf("once the first is removed: %v", err)
		}
	})(t)
}

// TestThePoolSaysWhatIsInTheWay: a worker waits and has room, and what keeps it from
// the study is a rule, which is named as the study itself names it.
func TestThePoolSaysWhatIsInTheWay(t *testing.T) {
	for cause, rule := range map[string]func(w *world) error{
		"worker rack is reserved for user ada until": func(w *world) error {
			_, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{User: "ada", Worker: "rack", To: time.Now().Add(time.Hour)})
			return err
		},
		"4 GPUs are reserved, the last for user ada until": func(w *world) error {
			_, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{User: "ada", GPUs: 4, To: time.Now().Add(time.Hour)})
			return err
		},
		"worker rack is drained: new disk": func(w *world) error {
			_, err := w.service.Drain(w.ctx, "rack", protocol.DrainRequest{Reason: "new disk"})
			return err
		},
		"user bob may have": func(w *world) error {
			_, err := w.service.SetQuota(w.ctx, "bob", protocol.Quota{GPUs: 1})
			return err
		},
	} {
		in(func(t *testing.T, w *world) {
			bob := w.as(user("bob"))
			bob.create(named("his", "resources: {gpus: 2}")...)
			w.rack("worker-rack", 8, 4)
			if err := rule(w); err != nil {
				t.Fatal(err)
			}
			w.wait(time.Second, func() {
				if his, all := poolOf(t, bob).Waiting, poolOf(t, w).Waiting; his[0].Study != "his" || all[0].Study != "bob:his" {
					t.Errorf("bob's study is called %q to him and %q to administrators", his[0].Study, all[0].Study)
				}
				for _, one := range []protocol.Pool{poolOf(t, bob), poolOf(t, w)} {
					if reserved := one.Machines[0].Reserved; strings.HasPrefix(reserved, "user ada until ") != strings.HasPrefix(cause, "worker rack is reserved") {
						t.Errorf("the worker is reserved for %q", reserved)
					}
					if len(one.Waiting) != 1 || !strings.Contains(one.Waiting[0].Why, cause) {
						t.Errorf("what waits: %+v; want %q", one.Waiting, cause)
					}
				}
			}, "worker-rack")
		})(t)
	}
}

// TestWhatIsNamedAndNotThereIsSaid: a worker may be yet to come, and a name may be
// misspelt, so both are taken and both are said.
func TestWhatIsNamedAndNotThereIsSaid(t *testing.T) {
	in(func(t *testing.T, w *world) {
		there := map[string]bool{"ada": true}
		w.service = study.New(w.store, w.logs, study.Options{Now: time.Now, Random: w.random.Uint64, LeaseSeconds: 60, HeartbeatSeconds: 10,
			Users: func(context.Context) (map[string]bool, error) { return there, nil }})
		if err := w.service.Start(w.ctx); err != nil {
			t.Fatal(err)
		}
		made, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{User: "adda", Worker: "rack", To: time.Now().Add(time.Hour)})
		if err != nil || !made.WorkerAbsent || !made.UserAbsent {
			t.Errorf("%+v, %v; neither the worker nor the user is there", made, err)
		}
		for user, absent := range map[string]bool{"adda": true, "ada": false, "admin": false} {
			view, err := w.service.SetQuota(w.ctx, user, protocol.Quota{Trials: 1})
			if err != nil || view.UserAbsent != absent {
				t.Errorf("%+v, %v; absent is %v", view, err, absent)
			}
			listed := w.quotas()
			if at := slices.IndexFunc(listed, func(one protocol.QuotaView) bool { return one.User == user }); at < 0 || listed[at].UserAbsent != absent {
				t.Errorf("%+v; absent is %v", listed, absent)
			}
		}
		if many, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{User: "ada", GPUs: 3, To: time.Now().Add(time.Minute)}); err != nil || many.GPUsAbsent != 3 {
			t.Errorf("%+v, %v; there is no GPU", many, err)
		}
		ada := w.as(user("ada"))
		if one := ada.reservations()[0]; !one.WorkerAbsent || one.UserAbsent {
			t.Errorf("a user is told %+v: who has a token is not for users to know", one)
		}
		w.rack("worker-rack", 8, 2)
		if many := w.reservations()[1]; many.GPUsAbsent != 1 {
			t.Errorf("2 of 3 GPUs are there, and %+v is said", many)
		}
		there["adda"] = true
		if one := w.reservations()[0]; one.WorkerAbsent || one.UserAbsent {
			t.Errorf("both are there now, and %+v is said", one)
		}
		w.sleep(2 * time.Minute)
		if one := w.reservations()[0]; !one.WorkerAbsent {
			t.Errorf("the worker is silent, and %+v is said", one)
		}
	})(t)
}
