package study_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/workers/demand"
)

func TestDemand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		if look := w.service.Demand(); look.Want() != (demand.Want{}) || len(look.Hosts) != 0 {
			t.Errorf("of nothing: %+v", look)
		}
		w.create()
		paused := w.create("name: example", "name: second")
		if _, err := w.service.Pause(w.ctx, paused.ID); err != nil {
			t.Fatal(err)
		}
		alone := w.ctx
		w.ctx = study.WithCaller(alone, study.Caller{Owner: "alice", Sight: study.Own, Holder: "user:alice"})
		w.create("name: example", "name: third", "stop: {trials: 27}", "stop: {trials: 27}\nsystem: {gpus: 2}")
		w.ctx = alone
		wanted := map[string]demand.Want{"": {Waiting: 1}, "alice": {Waiting: 2}} // each would begin a trial
		if look := w.service.Demand(); !maps.Equal(look.Owners, wanted) {
			t.Errorf("with two running studies and no worker: %+v", look.Owners)
		}
		for _, one := range []protocol.WorkerRegistration{
			{ID: "worker-slots", Slots: 3}, {ID: "worker-elastic", Slots: 8, Elastic: true, Machine: protocol.Machine{Cores: 8}},
			{ID: "worker-gpus", Slots: 1, Machine: protocol.Machine{GPUs: []string{"A100", "A100"}}},
		} {
			one.Name = one.ID
			if _, err := w.service.RegisterWorker(w.ctx, one); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			w.mustLease("worker-slots") // the trials with GPUs fit only one worker
		}
		w.mustLease("worker-gpus")
		look := w.service.Demand()
		if want := (demand.Want{Running: 5, Waiting: 3}); look.Want() != want {
			t.Errorf("with four leases: %+v", look.Owners)
		}
		if look.Capacity() != 3+1+2 || !look.GPUs() {
			t.Errorf("the hosts are %+v", look.Hosts)
		}
		at := slices.IndexFunc(look.Hosts, func(one demand.Host) bool { return one.ID == "worker-slots" })
		if host := look.Hosts[at]; host.Trials != 3 || host.Capacity != 3 || host.GPUs || host.Silent {
			t.Errorf("%+v", host)
		}
		for range 4 {
			time.Sleep(20 * time.Second)
			if err := w.service.Tick(w.ctx); err != nil {
				t.Fatal(err)
			}
		}
		w.register("worker-new")
		if look := w.service.Demand(); look.Capacity() != 1 || !look.GPUs() || len(look.Hosts) != 4 {
			t.Errorf("after 80 s without a word: %+v", look.Hosts)
		}
		if want := w.service.Demand().Want(); want.Running != 0 || want.Waiting < 4 {
			t.Errorf("trials that were lost wait to go on: %+v", want)
		}
	})
}

// What a study's bound keeps from running is not waited for, and a worker that
// is drained is not awake.
func TestDemandKnowsBoundsAndDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.create("name: example", "name: example\nparallel: 1")
		w.register("rack", "desk")
		if want := w.service.Demand().Want(); want != (demand.Want{Waiting: 1}) {
			t.Errorf("before its one trial: %+v", want)
		}
		w.mustLease("rack")
		if want := w.service.Demand().Want(); want != (demand.Want{Running: 1}) {
			t.Errorf("with its one trial: %+v", want)
		}
		if _, err := w.service.Drain(w.ctx, "desk", protocol.DrainRequest{}); err != nil {
			t.Fatal(err)
		}
		look := w.service.Demand()
		at := slices.IndexFunc(look.Hosts, func(one demand.Host) bool { return one.ID == "desk" })
		if look.Capacity() != 1 || !look.Hosts[at].Draining {
			t.Errorf("%+v", look.Hosts)
		}
	})
}
