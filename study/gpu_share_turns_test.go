package study_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// TestAHeartbeatAndItsReportCountOnce: what a report says, heartbeats have said
// before: 40 s are no minute.
func TestAHeartbeatAndItsReportCountOnce(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "auto")...)
		w.gpuBox("worker-box", 8, 1)
		first := w.mustLease("worker-box")
		beat := protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: first.Trial, LeaseEpoch: first.LeaseEpoch, GPUUse: seenAlone(0.4, 35, 4)}}}
		if _, err := w.service.Heartbeat(w.ctx, "worker-box", beat); err != nil {
			t.Fatal(err)
		}
		w.usage(first, 1, seenAlone(0.4, 40, 4))
		if share := w.trial(first.Trial).GPUShare; !share.Alone {
			t.Errorf("after 40 s it has %+v", share)
		}
		w.wantPlace(w.lease("worker-box"), "none", "after 40 s")
	})(t)
}

// TestAnUnknownTrialIsNotPassedForEver: a study of which nothing is known needs a
// GPU that no trial has, which small parts of others must not keep from it for
// ever.
func TestAnUnknownTrialIsNotPassedForEver(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("small", "0.3")...)
		w.gpuBox("worker-box", 8, 1)
		leases := []*protocol.Lease{w.mustLease("worker-box"), w.mustLease("worker-box")}
		w.create(sharing("unknown", "auto")...)
		for range 20 {
			w.sleep(2 * time.Second)
			one := leases[0]
			w.train(one)
			leases = leases[1:]
			for {
				lease := w.lease("worker-box")
				if lease == nil {
					break
				}
				if lease.Study == "unknown" {
					return
				}
				leases = append(leases, lease)
			}
			if len(leases) == 0 {
				t.Fatal("nothing runs, and the unknown one did not come")
			}
			w.beat("worker-box", leases...)
		}
		t.Error("twenty small ones passed it")
	})(t)
}

// sizedBox is gpuBox with one GPU of so many GiB.
func (w *world) sizedBox(id string, gigabytes int64) {
	w.t.Helper()
	machine := protocol.Machine{Host: id, Cores: 64, GPUs: []string{"NVIDIA A100"}, GPUMemoryBytes: []int64{gigabytes * gigabyte}}
	if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: id, Slots: 8, Machine: machine}); err != nil {
		w.t.Fatal(err)
	}
}

// TestACrowdedTrialHasAnyGPUToItself: of another size than the one that it ran out
// of memory on, and nothing joins it there.
func TestACrowdedTrialHasAnyGPUToItself(t *testing.T) {
	for _, size := range []int64{12, 80} {
		in(func(t *testing.T, w *world) {
			w.create(sharing("shares", "auto", "parallel: 3")...)
			w.gpuBox("worker-box", 8, 1)
			first := w.mustLease("worker-box")
			w.usage(first, 1, seenAlone(0.3, 60, 4))
			var crowded trial.Trial
			for range 3 {
				crowded = w.failOnGPU(w.mustLease("worker-box"))
			}
			w.sizedBox("worker-other", size)
			lease := w.mustLease("worker-other")
			if lease.Trial != crowded.ID {
				t.Fatalf("trial %s went first", lease.Trial)
			}
			if share := w.trial(lease.Trial).GPUShare; !share.Alone || share.Fraction != 1 || !strings.Contains(share.Basis, "3 times") {
				t.Errorf("it has %+v", share)
			}
			w.usage(lease, 1, seenAlone(0.1, 70, 5))
			w.wantPlace(w.lease("worker-other"), "none", "beside one that has the GPU to itself")
		})(t)
	}
}

// TestOutOfMemoryBeforeTheWorkerIsBack: a server that has just started does not
// know how large the GPU is.
func TestOutOfMemoryBeforeTheWorkerIsBack(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "0.25")...)
		w.gpuBox("worker-box", 8, 1)
		w.mustLease("worker-box")
		second := w.mustLease("worker-box")
		w.start()
		if got := w.failOnGPU(second); got.Failures != 0 || got.GPUShortage.NeedBytes != 5*gigabyte || !strings.Contains(got.Reason, "5 GiB are kept") {
			t.Errorf("%d failures, %+v: %s", got.Failures, got.GPUShortage, got.Reason)
		}
	})(t)
}

// TestATrialThatIsTooLargeForAWorkerHoldsNobodyUpThere: new ones of its study may
// start where it could never run.
func TestATrialThatIsTooLargeForAWorkerHoldsNobodyUpThere(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "0.1")...)
		w.gpuBox("worker-box", 1, 1)
		first := w.mustLease("worker-box")
		w.usage(first, 1, seenAlone(0.3, 60, 12))
		if _, err := w.finish(first, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		w.sizedBox("worker-small", 8)
		if lease := w.mustLease("worker-small"); lease.Trial == first.Trial {
			t.Error("12 GiB are in a GPU of 8")
		}
		if lease := w.mustLease("worker-box"); lease.Trial != first.Trial {
			t.Errorf("trial %s passed it", lease.Trial)
		}
	})(t)
}

// TestTunedSharersDivideAnElasticWorker: one whose configuration says nothing of
// cores takes its part of the machine, and one that says all of them all.
func TestTunedSharersDivideAnElasticWorker(t *testing.T) {
	for values, want := range map[string]int{
		"system: {loader_workers: {values: [1, 2]}}": 2,
		"system: {cpu_threads: {values: [6, 8]}}":    1,
	} {
		in(func(t *testing.T, w *world) {
			w.create(sharing("shares", "0.5", values)...)
			machine := protocol.Machine{Host: "box", Cores: 8, GPUs: []string{"A100"}, GPUMemoryBytes: []int64{16 * gigabyte}}
			if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: "worker-box", Name: "box", Slots: 8, Elastic: true, Machine: machine}); err != nil {
				t.Fatal(err)
			}
			got := 0
			for w.lease("worker-box") != nil {
				got++
			}
			if got != want {
				t.Errorf("%s: %d trials at once, want %d", values, got, want)
			}
		})(t)
	}
}

// TestThatATrialHadNeighboursOutlivesTheServer: the others have left when the server
// is started again, and then there is no memory left: that is no failure of the trial's
// own. Under its next lease, where it is alone, it is.
func TestThatATrialHadNeighboursOutlivesTheServer(t *testing.T) {
	for _, closes := range []bool{true, false} {
		in(func(t *testing.T, w *world) {
			w.create(sharing("shares", "0.4", "parallel: 2")...)
			w.gpuBox("worker-box", 8, 1)
			stays, leaves := w.mustLease("worker-box"), w.mustLease("worker-box")
			w.beat("worker-box", stays, leaves)
			w.sleep(time.Second)
			if _, err := w.finish(leaves, protocol.Interrupted); err != nil {
				t.Fatal(err)
			}
			if _, err := w.service.Pause(w.ctx, "shares"); err != nil { // or it would come back
				t.Fatal(err)
			}
			if closes {
				if err := w.service.Close(w.ctx); err != nil {
					t.Fatal(err)
				}
			}
			w.start()
			w.gpuBox("worker-box", 8, 1)
			if got := w.failOnGPU(stays); got.Failures != 0 || got.GPUShortage == nil || got.GPUShortage.Times != 1 {
				t.Errorf("that it had neighbours is forgotten: %d failures, %+v", got.Failures, got.GPUShortage)
			}
			w.sleep(2 * time.Second)
			if entries, err := w.store.PoolEntries(w.ctx, "neighbour"); err != nil || len(entries) != 0 {
				t.Errorf("%d entries of leases that are over, %v", len(entries), err)
			}
			if _, err := w.service.Resume(w.ctx, "shares"); err != nil {
				t.Fatal(err)
			}
			alone := w.mustLease("worker-box")
			w.start()
			w.gpuBox("worker-box", 8, 1)
			if got := w.failOnGPU(alone); got.Failures != 1 {
				t.Errorf("alone it has %d failures", got.Failures)
			}
		})(t)
	}
}

// TestATrialThatIsLargerThanEveryGPUIsUnfit: it says how much it needs, and what
// the largest GPU has; one whose memory nobody knows may do.
func TestATrialThatIsLargerThanEveryGPUIsUnfit(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "auto")...)
		w.sizedBox("worker-large", 80)
		large := w.mustLease("worker-large")
		w.usage(large, 1, seenAlone(0.3, 60, 30))
		if _, err := w.finish(large, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if err := w.service.RemoveWorker(w.ctx, "worker-large"); err != nil {
			t.Fatal(err)
		}
		w.gpuBox("worker-box", 8, 2)
		w.wantWait("shares", "unfit", "hold 30 GiB", "observed alone for 60 s", "16 GiB (NVIDIA A100 on box)", "smaller batches")
		w.sizedBox("worker-old", 0)
		w.wantPlace(w.mustLease("worker-old"), "0 shared", "on a GPU of which nobody knows how large it is")
	})(t)
}

// TestThatATrialHadNeighboursIsStoredThoughTheStoreWasFull: what could not be written
// when they came is written when there is room again.
func TestThatATrialHadNeighboursIsStoredThoughTheStoreWasFull(t *testing.T) {
	in(func(t *testing.T, w *world) {
		full := &unwritable{Store: w.store, refuses: func(change journal.Change) bool {
			return slices.ContainsFunc(change.Pool, func(entry journal.PoolEntry) bool { return entry.Kind == "neighbour" })
		}}
		w.store = full
		w.start()
		w.create(sharing("shares", "0.4", "parallel: 2")...)
		w.gpuBox("worker-box", 8, 1)
		stays, leaves := w.mustLease("worker-box"), w.mustLease("worker-box")
		w.beat("worker-box", stays, leaves)
		if err := w.service.Tick(w.ctx); !errors.Is(err, errFull) {
			t.Fatalf("with a full store it is %v", err)
		}
		full.refuses = nil
		if _, err := w.finish(leaves, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if _, err := w.service.Pause(w.ctx, "shares"); err != nil { // or it would come back
			t.Fatal(err)
		}
		w.sleep(2 * time.Second)
		w.start()
		w.gpuBox("worker-box", 8, 1)
		if got := w.failOnGPU(stays); got.Failures != 0 {
			t.Errorf("that it had neighbours is forgotten: %d failures", got.Failures)
		}
	})(t)
}
