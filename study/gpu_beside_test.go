package study_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// ran has a trial report epochs of so many seconds, from the next one on.
func (w *world) ran(lease *protocol.Lease, epoch *int, count int, seconds float64, alone bool) {
	w.t.Helper()
	for range count {
		*epoch++
		use := seenAlone(0.3, 30, 4)
		use.Alone = alone
		w.reportSeen(lease, *epoch, seconds, use)
	}
}

// meet lets one trial of each study run alone on a GPU and then both on one, where
// their epochs take so many times as long. Both are over then.
func (w *world) meet(slower float64) {
	w.t.Helper()
	var epochs, others int
	w.gpuBox("worker-one", 3, 1)
	first := w.of("worker-one", "first")
	w.ran(first, &epochs, 3, 10, true)
	w.gpuBox("worker-two", 3, 1)
	alone := w.of("worker-two", "second")
	w.ran(alone, &others, 3, 20, true)
	if _, err := w.finish(alone, protocol.Interrupted); err != nil {
		w.t.Fatal(err)
	}
	beside := w.of("worker-one", "second")
	w.ran(first, &epochs, 1, 10*slower, false) // in which the other came
	for range 3 {
		w.ran(first, &epochs, 1, 10*slower, false)
		w.ran(beside, &others, 1, 20*slower, false)
	}
	w.ran(beside, &others, 1, 20*slower, false) // its first one is not counted
	for _, lease := range []*protocol.Lease{first, beside} {
		if _, err := w.finish(lease, protocol.Interrupted); err != nil {
			w.t.Fatal(err)
		}
	}
}

// of leases a trial of the study.
func (w *world) of(worker, study string) *protocol.Lease {
	w.t.Helper()
	reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: worker, Study: study})
	if err != nil {
		w.t.Fatal(err)
	}
	if reply.Lease == nil {
		w.t.Fatalf("there was nothing of %s for %s: %s", study, worker, w.waits(study))
	}
	return reply.Lease
}

func TestTrialsThatSlowEachOtherDownAreKeptApart(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("first", "0.3")...)
		w.create(sharing("second", "0.3")...)
		w.meet(2.5)
		if err := w.service.RemoveWorker(w.ctx, "worker-two"); err != nil {
			t.Fatal(err)
		}
		w.of("worker-one", "first")
		reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-one", Study: "second"})
		if err != nil || reply.Lease != nil {
			t.Fatalf("%+v, %v: it would lose beside the first", reply.Lease, err)
		}
		w.wantWait("second", "busy", "beside a trial of another study it would lose: such two were seen together: one runs at 0.40 of its speed and the other at 0.40")
		// A GPU that it has to itself is another matter, and so is a trial of its own
		// kind, of which nothing is known.
		w.gpuBox("worker-two", 3, 1)
		w.of("worker-two", "second")
		if waits := w.waits("second"); strings.Contains(waits, "would lose") {
			t.Errorf("it has a GPU: %s", waits)
		}
		w.of("worker-two", "second")
		// What was seen outlives the server; who runs where is known again when they
		// report.
		if err := w.service.Close(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.start()
		pool, err := w.service.Pool(w.ctx)
		if err != nil || len(pool.GPUModels) != 1 || pool.GPUModels[0].Pairs.Seen != 1 || pool.GPUModels[0].Pairs.Kinds != 2 {
			t.Errorf("%+v, %v", pool.GPUModels, err)
		}
	})(t)
}

func TestTrialsThatHardlyDisturbShare(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("first", "0.3")...)
		w.create(sharing("second", "0.3")...)
		w.meet(1.2)
		w.of("worker-one", "first")
		w.wantPlace(w.of("worker-one", "second"), "0 shared", "both do more together")
	})(t)
}

// Of several GPUs that have room, a trial joins those with whom it does most.
func TestATrialJoinsWhomItDisturbsLeast(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("first", "0.3")...)
		w.create(sharing("second", "0.3")...)
		w.meet(1.8) // gains 1.11
		w.gpuBox("worker-wide", 8, 2)
		one, two := w.of("worker-wide", "first"), w.of("worker-wide", "second")
		w.wantPlace(one, "0 shared", "an idle GPU")
		w.wantPlace(two, "1 shared", "an idle GPU")
		// Two of the second kind want less than a GPU together. Nobody saw how much they
		// disturb each other: less than these two, if they are like most.
		w.wantPlace(w.of("worker-wide", "second"), "1 shared", "beside its own kind")
	})(t)
}

// A trial of an architecture that is known has companions at once: what it uses is
// foretold, where its own study says nothing.
func TestWhatIsForetoldIsShared(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(networks("teacher")...)
		w.gpuBox("worker-box", 3, 1)
		for range 40 {
			w.trainAlone(w.of("worker-box", "teacher"))
		}
		if _, err := w.service.Stop(w.ctx, "teacher"); err != nil {
			t.Fatal(err)
		}
		sharers := replaced(networks("sharers"), "gpus: 1", "gpu_share: auto")
		w.create(sharers...)
		// Before anything is learned, the first runs alone.
		first := w.of("worker-box", "sharers")
		w.wantPlace(w.lease("worker-box"), "none", "nothing is known of the first")
		w.wantWait("sharers", "busy", "nothing is known of it yet")
		if _, err := w.finish(first, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		w.learn()
		first = w.of("worker-box", "sharers")
		share := w.trial(first.Trial).GPUShare
		is := usedBy(first)
		if share == nil || share.Alone || !strings.Contains(share.Basis, "by its architecture, from") || share.Utilization < is.Utilization-0.05 || share.Utilization > is.Utilization+0.3 {
			t.Fatalf("it was given %+v, it uses %+v", share, is)
		}
		leases := []*protocol.Lease{first}
		for lease := w.lease("worker-box"); lease != nil; lease = w.lease("worker-box") {
			w.wantPlace(lease, "0 shared", "beside the first")
			leases = append(leases, lease)
		}
		sum := 0.0
		for _, one := range trialsOf(t, w, "sharers") {
			if one.State.Held() {
				sum += one.GPUShare.Utilization
			}
		}
		if len(leases) > 3 || sum > 1+1e-9 {
			t.Fatalf("%d trials share it, of which %.2f is expected", len(leases), sum)
		}
		// What is observed of it goes before what was foretold, of itself only: of another
		// one what is foretold is nearer than what this one uses.
		w.reportSeen(first, first.FirstEpoch, 60, &trial.GPUUse{Utilization: 0.11, MemoryBytes: gigabyte, GPUMemoryBytes: 16 * gigabyte, Seconds: 70, Alone: true, Method: trial.GPUUseByProcess})
		if share := w.trial(first.Trial).GPUShare; share.Utilization != 0.11 || !strings.Contains(share.Basis, "it was observed") {
			t.Errorf("%+v", share)
		}
		for _, other := range leases[1:] {
			if _, err := w.finish(other, protocol.Interrupted); err != nil {
				t.Fatal(err)
			}
		}
		w.gpuBox("worker-other", 1, 1)
		another := w.of("worker-other", "sharers")
		if share := w.trial(another.Trial).GPUShare; share.Utilization == 0.11 || !strings.Contains(share.Basis, "by its architecture, from") {
			t.Errorf("another one was given %+v", share)
		}
	})(t)
}

// Of a trial that the search has not begun, it is not known what it trains: when it
// is, it is kept from who it would lose beside, and waits for another GPU.
func TestATrialThatHasBegunIsKeptApart(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("first", "0.3")...)
		w.create(append(sharing("second", "0.3"), "{x: {type: float, low: 0, high: 1}}", "{x: {type: float, low: 0, high: 1}, batch_size: {values: [32]}}")...)
		w.meet(2.5)
		if err := w.service.RemoveWorker(w.ctx, "worker-two"); err != nil {
			t.Fatal(err)
		}
		// The trial that met the first is over: the next one of its study is new.
		beside := w.of("worker-one", "second")
		for epoch := 1; epoch <= 9; epoch++ {
			w.reportSeen(beside, epoch, 20, nil)
		}
		if _, err := w.finish(beside, protocol.BudgetReached); err != nil {
			t.Fatal(err)
		}
		w.of("worker-one", "first")
		before := len(trialsOf(t, w, "second"))
		for range 3 {
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-one", Study: "second"})
			if err != nil || reply.Lease != nil {
				t.Fatalf("%+v, %v: it would lose beside the first", reply.Lease, err)
			}
		}
		trials := trialsOf(t, w, "second")
		if newest := trials[len(trials)-1]; len(trials) > before+1 || newest.State != trial.Queued || !strings.Contains(newest.Reason, "waits for another GPU: beside a trial of another study it would lose") {
			t.Errorf("of %d trials, %d before, the newest is %s: %s", len(trials), before, newest.State, newest.Reason)
		}
		w.wantWait("second", "busy", "one runs at 0.40 of its speed")
		w.gpuBox("worker-two", 3, 1)
		w.of("worker-two", "second")
	})(t)
}
