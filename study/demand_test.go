package study_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	launching "github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/selector"
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
		w.ctx = access.WithCaller(alone, access.Caller{Owner: "alice", Sight: access.Own, Holder: "user:alice"})
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

// What is wanted is what a study could start now, and not what runs plus one.
func TestDemandIsWhatAStudyCouldStartNow(t *testing.T) {
	t.Parallel()
	wide := []string{"stop: {trials: 27}", "stop: {trials: 100}\nparallel: 30"}
	alice := access.Caller{Owner: "alice", Sight: access.Own, Holder: "user:alice"}
	for _, c := range []struct {
		name    string
		replace []string
		quota   protocol.Quota
		slots   int
		wanted  demand.Want // once each slot has a trial
	}{
		{"up to parallel", wide, protocol.Quota{}, 2, demand.Want{Running: 2, Waiting: 28}},
		{"two trials left", []string{"stop: {trials: 27}", "stop: {trials: 4}\nparallel: 30"}, protocol.Quota{}, 2, demand.Want{Running: 2, Waiting: 2}},
		{"none left", []string{"stop: {trials: 27}", "stop: {trials: 2}\nparallel: 30"}, protocol.Quota{}, 2, demand.Want{Running: 2}},
		{"up to the quota of trials", wide, protocol.Quota{Trials: 5}, 2, demand.Want{Running: 2, Waiting: 3}},
		{"at the quota of trials", wide, protocol.Quota{Trials: 2}, 2, demand.Want{Running: 2}},
		{"gangs up to the quota of GPUs", append(wide, "command: [train]", "command: [train]\nresources: {gpus: 2}"), protocol.Quota{GPUs: 7}, 2, demand.Want{Running: 4, Waiting: 2}},
		{"with an own bound that is reached", []string{"stop: {trials: 27}", "stop: {trials: 100}\nparallel: 2"}, protocol.Quota{}, 2, demand.Want{Running: 2}},
		{"the places that there are", []string{"stop: {trials: 27}", "stop: {trials: 1000}"}, protocol.Quota{}, 2, demand.Want{Running: 2, Waiting: 2}},
	} {
		t.Run(c.name, in(func(t *testing.T, w *world) {
			admin := w.ctx
			w.ctx = access.WithCaller(admin, alice)
			created := w.create(c.replace...)
			w.ctx = admin
			if c.quota != (protocol.Quota{}) {
				if _, err := w.service.SetQuota(w.ctx, "alice", c.quota); err != nil {
					t.Fatal(err)
				}
			}
			w.rack("worker-rack", c.slots, 4)
			for range c.slots {
				w.mustLease("worker-rack")
			}
			if got := w.service.Demand().Owners["alice"]; got != c.wanted {
				t.Errorf("wanted is %+v, want %+v", got, c.wanted)
			}
			if _, err := w.service.Pause(w.ctx, created.ID); err != nil {
				t.Fatal(err)
			}
			if got := w.service.Demand().Owners["alice"]; got.Waiting != 0 {
				t.Errorf("paused, it wants %+v", got)
			}
		}))
	}
}

// Nobody is woken for a trial that no machine there is can run.
func TestWhatFitsNoWorkerIsNoDemand(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(named("huge", "resources: {gpus: 8}", "parallel: 30")...)
		w.rack("worker-rack", 2, 4)
		if want := w.service.Demand().Want(); want.Total() != 0 {
			t.Errorf("a trial that fits nowhere is wanted: %+v", want)
		}
		w.wantWait("huge", "unfit", "resources.gpus is 8", "more than 4 GPUs")
		w.rack("worker-large", 1, 8)
		if want := w.service.Demand().Want(); want.Waiting != 8*27 {
			t.Errorf("with a machine for it: %+v", want)
		}
	})(t)
}

// A launcher may start what no worker there is fits; it sees what its user may see.
func TestWantedIsWhatNewWorkersWouldRun(t *testing.T) {
	in(func(t *testing.T, w *world) {
		admin := w.ctx
		w.ctx = access.WithCaller(admin, access.Caller{Owner: "alice", Sight: access.Own, Holder: "user:alice"})
		created := w.create(named("huge", "resources: {gpus: 8, gpu_type: H100, labels: {zone: a}}", "parallel: 30")...)
		w.rack("worker-rack", 2, 4)
		want := launching.WantedStudy{Study: "huge", StudyID: created.ID, Trials: 27, GPUs: 8, Selector: selector.Selector{GPUTypes: []string{"H100"}, Labels: map[string]string{"zone": "a"}}}
		got, err := w.service.Wanted(w.ctx)
		if err != nil || len(got.Studies) != 1 || !reflect.DeepEqual(got.Studies[0], want) {
			t.Errorf("wanted is %+v, %v, want %+v", got, err, want)
		}
		if _, err := w.service.SetQuota(admin, "alice", protocol.Quota{GPUs: 17}); err != nil {
			t.Fatal(err)
		}
		if got, err := w.service.Wanted(w.ctx); err != nil || got.Studies[0].Trials != 2 {
			t.Errorf("within the quota %+v is wanted, %v", got, err)
		}
		if got, err := w.service.Wanted(access.WithCaller(admin, access.Caller{Owner: "bob", Sight: access.Own})); err != nil || len(got.Studies) != 0 || got.User != "bob" {
			t.Errorf("another user sees %+v, %v", got, err)
		}
		if got, err := w.service.Wanted(admin); err != nil || len(got.Studies) != 1 || got.User != "" {
			t.Errorf("an administrator sees %+v, %v", got, err)
		}
		if _, err := w.service.Pause(w.ctx, created.ID); err != nil {
			t.Fatal(err)
		}
		if got, err := w.service.Wanted(w.ctx); err != nil || len(got.Studies) != 0 {
			t.Errorf("a paused study wants %+v, %v", got, err)
		}
	})(t)
}
