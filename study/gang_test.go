package study_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

func TestAGangHasItsGPUsAtOnceOrWaits(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(named("pairs", "resources: {gpus: 2, cores: 3, memory_gib: 8}")...)
		w.rack("worker-rack", 8, 5)
		first, second := w.mustLease("worker-rack"), w.mustLease("worker-rack")
		if !slices.Equal(first.GPUs, []int{0, 1}) || !slices.Equal(second.GPUs, []int{2, 3}) || first.GPUCount == nil || *first.GPUCount != 2 || first.Cores != 3 {
			t.Errorf("given are %v and %v", first.GPUs, second.GPUs)
		}
		if lease := w.lease("worker-rack"); lease != nil {
			t.Errorf("a trial has %v of 5 GPUs beside two with 2 each", lease.GPUs)
		}
		w.train(first)
		w.start() // it knows who has what
		w.rack("worker-rack", 8, 5)
		third := w.mustLease("worker-rack")
		if !slices.Equal(third.GPUs, []int{0, 1}) || w.lease("worker-rack") != nil {
			t.Errorf("behind a restart %v are given beside %v", third.GPUs, second.GPUs)
		}
		if got := w.trial(third.Trial).GPUs; !slices.Equal(got, third.GPUs) {
			t.Errorf("the trial says %v", got)
		}
	})(t)
}

func TestCommandsSeeNoGPUsOrWhatTheWorkerSays(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(named("none", "resources: {gpus: 0}")...)
		w.create(named("unsaid", "priority: -1")...)
		w.create(named("constant", "priority: -2", "system: {gpus: 1}")...)
		w.rack("worker-rack", 1, 2)
		for _, study := range []string{"none", "unsaid", "constant"} {
			lease := w.mustLease("worker-rack")
			var count string
			switch {
			case lease.GPUCount == nil:
				count = "unsaid"
			case *lease.GPUCount == 0 && len(lease.GPUs) == 0:
				count = "none"
			case *lease.GPUCount == 1 && slices.Equal(lease.GPUs, []int{0}):
				count = "constant"
			}
			if lease.Study != study || count != study {
				t.Errorf("study %s has GPUs %v, %s; want %s", lease.Study, lease.GPUs, count, study)
			}
			w.train(lease)
			if _, err := w.service.Pause(w.ctx, study); err != nil {
				t.Fatal(err)
			}
		}
	})(t)
}

func TestATrialThatFitsNoWorkerIsToldSo(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(named("huge", "resources: {gpus: 8, cores: 2}")...)
		w.wantWait("huge", "unfit", "no worker is connected: start one with 'tandem worker'")
		w.rack("worker-small", 1, 0)
		w.rack("worker-large", 1, 4)
		w.wantWait("huge", "unfit", "resources.gpus is 8", "more than 4 GPUs (large)")
		w.create(named("broad", "resources: {cores: 128}")...)
		w.wantWait("broad", "unfit", "resources.cores is 128", "more than 64")
		w.create(named("fat", "resources: {memory_gib: 60}")...)
		w.wantWait("fat", "unfit", "resources.memory_gib is 60", "57.6")
		if w.lease("worker-large") != nil {
			t.Error("a trial that fits nowhere was leased")
		}
	})(t)
}

// Small trials pass a large one a bounded number of times.
func TestALargeTrialIsNotStarvedBySmallOnes(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(named("small", "resources: {gpus: 1}")...)
		w.rack("worker-rack", 8, 4)
		w.rack("worker-other", 8, 2)
		running := []*protocol.Lease{w.mustLease("worker-rack"), w.mustLease("worker-rack"), w.mustLease("worker-rack"), w.mustLease("worker-rack")}
		w.create(named("large", "resources: {gpus: 4}", "priority: 0")...)
		passed := 0
		for {
			w.sleep(time.Second)
			w.train(running[0])
			running = running[1:]
			lease := w.lease("worker-rack")
			if lease == nil {
				w.wantWait("large", "gang", "rack is being cleared", "4 GPUs")
				if len(running) == 0 {
					t.Fatal("nothing runs and nothing is given")
				}
				continue
			}
			if lease.Study == "large" {
				break
			}
			running = append(running, lease)
			if passed++; passed > 8 {
				t.Fatalf("%d small trials have passed the large one", passed)
			}
		}
		if passed == 0 {
			t.Error("no small trial has passed: GPUs stood idle at once")
		}
		if lease := w.mustLease("worker-other"); lease.Study != "small" {
			t.Errorf("the other worker runs %s", lease.Study)
		}
	})(t)
}

// A machine is kept for nobody who cannot have it: a worker that asks for one
// study only, or belongs to another user, stands in nobody's way.
func TestNoMachineIsKeptInVain(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(named("small", "resources: {gpus: 1}")...)
		w.rack("worker-rack", 4, 4)
		first := w.mustLease("worker-rack")
		w.create(named("large", "resources: {gpus: 4}")...)
		only := func() *protocol.Lease {
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-rack", Study: "small"})
			if err != nil {
				t.Fatal(err)
			}
			return reply.Lease
		}
		lease := first
		for range 15 { // more than may pass
			w.sleep(time.Second)
			w.train(lease)
			if lease = only(); lease == nil {
				t.Fatal("the worker is kept for a study that it does not ask for")
			}
		}
	})(t)
}
