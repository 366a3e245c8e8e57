package study_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/workers/demand"
)

// rescale has the service do a change, and reports whether it did.
func (w *world) rescale(worker string, action demand.Action, pretended bool) bool {
	w.t.Helper()
	change := demand.Change{At: time.Now(), Worker: worker, Action: action, Reason: "7 are wanted", Capacity: 2, Pretended: pretended}
	change.Asleep = action == demand.Wake && w.host(worker).Silent
	kept, err := w.service.Rescale(w.ctx, []demand.Change{change})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(kept) == 1
}

// host is the worker of the name as a scaler sees it.
func (w *world) host(name string) (found demand.Host) {
	for _, one := range w.service.Situation().Hosts {
		if one.Name == name {
			found = one
		}
	}
	return found
}

func TestDrainsByAdviceAreTheServersOwn(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9")
		w.rack("worker-rack", 2, 0)
		w.rack("worker-desk", 2, 0)
		lease := w.mustLease("worker-rack")
		if !w.rescale("rack", demand.Drain, false) || w.rescale("rack", demand.Drain, false) {
			t.Error("it was not drained, or twice")
		}
		if w.lease("worker-rack") != nil {
			t.Error("a drained worker got a trial")
		}
		if directive, told := w.beat("worker-rack", lease)[lease.Trial]; told {
			t.Errorf("its trial ends its rung, and is told %+v", directive)
		}
		if host := w.host("rack"); !host.Draining || !host.Advised || host.Sought || host.Trials != 1 {
			t.Errorf("%+v", host)
		}
		w.start() // it is durable
		if host := w.host("rack"); !host.Advised || !host.Silent || host.Capacity != 2 || host.ID != "rack" {
			t.Errorf("of a worker that is away, %+v is known", host)
		}
		w.rack("worker-rack", 2, 0)
		w.rack("worker-desk", 2, 0)
		if past := w.service.Situation().Past; len(past) != 1 || past[0].Reason != "7 are wanted" || past[0].Worker != "rack" {
			t.Errorf("%+v", past)
		}
		if !w.rescale("rack", demand.Wake, false) || w.host("rack").Draining {
			t.Error("it was not taken back")
		}
		w.mustLease("worker-rack")
		if !w.rescale("desk", demand.Drain, true) || w.host("desk").Draining {
			t.Error("a dry run drained it")
		}
	})(t)
}

func TestDrainsOfPeopleAreLeftAlone(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.rack("worker-rack", 2, 0)
		w.rack("worker-desk", 2, 0)
		drain := func(name string) {
			t.Helper()
			if _, err := w.service.Drain(w.ctx, name, protocol.DrainRequest{Reason: "new disk"}); err != nil {
				t.Fatal(err)
			}
		}
		drain("rack")
		if w.rescale("rack", demand.Wake, false) || w.rescale("rack", demand.Drain, false) || w.host("rack").Advised {
			t.Errorf("the drain of a person was touched: %+v", w.host("rack"))
		}
		w.rescale("desk", demand.Drain, false)
		drain("desk") // it becomes a person's
		if w.rescale("desk", demand.Wake, false) || !w.host("desk").Draining {
			t.Error("a drain that a person took over was taken back")
		}
		if _, err := w.service.Undrain(w.ctx, "rack"); err != nil {
			t.Fatal(err)
		}
		w.rescale("rack", demand.Drain, false)
		if _, err := w.service.Undrain(w.ctx, "rack"); err != nil || w.host("rack").Draining {
			t.Errorf("a person takes a drain by advice back: %+v, %v", w.host("rack"), err)
		}
	})(t)
}

func TestWorkersThatWaitingTrialsNeedAreSought(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("name: example", "name: large", "stop: {trials: 27}", "stop: {trials: 27}\nresources: {gpus: 2}")
		w.rack("worker-rack", 2, 2)
		w.rack("worker-desk", 2, 1)
		w.rescale("desk", demand.Drain, false)
		if w.host("desk").Sought || !w.host("rack").Sought {
			t.Errorf("the study fits one worker that takes trials: %+v", w.service.Situation().Hosts)
		}
		w.rescale("rack", demand.Drain, false)
		if w.host("desk").Sought || !w.host("rack").Sought {
			t.Errorf("only one of them is large enough: %+v", w.service.Situation().Hosts)
		}
		if err := w.service.RemoveWorker(w.ctx, "worker-rack"); err != nil {
			t.Fatal(err)
		}
		if w.host("desk").Sought || !w.host("rack").Sought {
			t.Errorf("one that said goodbye may be large enough: %+v", w.service.Situation().Hosts)
		}
		w.rescale("rack", demand.Wake, false)
		if host := w.host("rack"); host.Draining || !host.Silent || host.Capacity != 2 {
			t.Errorf("of one that is to be woken, %+v is known", host)
		}
	})(t)
}

func TestThePoolTellsWhatItDrains(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.rack("worker-rack", 2, 0)
		for range 120 {
			w.rescale("rack", demand.Drain, false)
			w.rescale("rack", demand.Wake, false)
		}
		w.rescale("rack", demand.Drain, false)
		seen, err := w.service.Pool(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		told := seen.Autoscale
		if told.Mode != protocol.AutoscaleOff || len(told.Changes) != 50 || told.Changes[0].Action != "drain" || told.Changes[1].Action != "wake" || told.Changes[0].Reason != "7 are wanted" {
			t.Errorf("%+v", told)
		}
		if machine := seen.Machines[0]; !machine.Drained || !machine.Advised {
			t.Errorf("%+v", machine)
		}
		if past := w.service.Situation().Past; len(past) != 200 || past[199].Action != demand.Drain {
			t.Errorf("%d changes are kept", len(past))
		}
		alone := access.WithCaller(w.ctx, access.Caller{Owner: "alice", Sight: access.Own, Holder: "user:alice"})
		if seen, err = w.service.Pool(alone); err != nil || seen.Autoscale.Changes[0].Reason != "" {
			t.Errorf("a user is told how much all want: %+v, %v", seen.Autoscale, err)
		}
	})(t)
}

func TestWhatWasDoneLastIsKeptOfEveryWorker(t *testing.T) {
	in(func(t *testing.T, w *world) {
		var many []demand.Change
		for i := range 300 {
			many = append(many, demand.Change{At: time.Now(), Worker: fmt.Sprint("one-", i), Action: demand.Drain, Reason: "none is wanted", Capacity: 1})
		}
		for _, changes := range [][]demand.Change{many, many} { // the second time they are drained already
			if _, err := w.service.Rescale(w.ctx, changes); err != nil {
				t.Fatal(err)
			}
		}
		w.start()
		known := map[string]bool{}
		past := w.service.Situation().Past
		for _, one := range past {
			known[one.Worker] = true
		}
		if len(known) != 300 || len(past) != 300 {
			t.Errorf("of %d workers it is known what was last done, by %d changes", len(known), len(past))
		}
	})(t)
}

// TestOneWorkerThatAStudyCanUseIsNotDrainedAndWoken: as long as the study has work, a
// busy worker that only it can use is sought before it is drained, and no longer as
// soon as another one comes.
func TestOneWorkerThatAStudyCanUseIsNotDrainedAndWoken(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("name: example", "name: large", "stop: {trials: 27}", "stop: {trials: 27}\nparallel: 1\nresources: {gpus: 2}")
		w.rack("worker-rack", 2, 2)
		w.rack("worker-desk", 2, 1)
		lease := w.mustLease("worker-rack")
		if !w.host("rack").Sought || w.host("desk").Sought {
			t.Errorf("it runs its only trial at once there: %+v", w.service.Situation().Hosts)
		}
		w.rack("worker-other", 2, 2)
		if w.host("rack").Sought || w.host("other").Sought {
			t.Errorf("either would do: %+v", w.service.Situation().Hosts)
		}
		w.rescale("other", demand.Drain, false)
		if !w.host("rack").Sought || w.host("other").Sought {
			t.Errorf("one is drained: %+v", w.service.Situation().Hosts)
		}
		if _, err := w.service.Stop(w.ctx, created.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.finish(lease, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if w.host("rack").Sought {
			t.Error("the study is over")
		}
	})(t)
}

// TestDrainsOfWorkersThatNeverReturnAreLetGo: they would be in the way of others for
// ever, and behind every restart.
func TestDrainsOfWorkersThatNeverReturnAreLetGo(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.rack("worker-pod-1", 2, 0)
		w.rescale("pod-1", demand.Drain, false)
		drained := w.host("pod-1").Drained
		w.start()
		if host := w.host("pod-1"); !host.Advised || !host.Silent || !host.Drained.Equal(drained) || drained.IsZero() {
			t.Fatalf("%+v, drained at %v", host, drained)
		}
		if !w.rescale("pod-1", demand.Forgotten, false) {
			t.Error("it was not forgotten")
		}
		w.start()
		if hosts := w.service.Situation().Hosts; len(hosts) != 0 {
			t.Errorf("of one that was forgotten there is %+v", hosts)
		}
	})(t)
}
