package study_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// gpuBox registers a worker with so many slots, and GPUs of 16 GiB.
func (w *world) gpuBox(id string, slots, gpus int) {
	w.t.Helper()
	machine := protocol.Machine{Host: id, Cores: 64, MemoryBytes: 64 << 30, GPUs: slices.Repeat([]string{"NVIDIA A100"}, gpus), GPUMemoryBytes: slices.Repeat([]int64{16 * gigabyte}, gpus)}
	if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: strings.TrimPrefix(id, "worker-"), Slots: slots, Machine: machine}); err != nil {
		w.t.Fatal(err)
	}
}

// sharing is the default study whose trials take a part of a GPU, and have nine
// epochs each.
func sharing(name, part string, lines ...string) []string {
	return append(named(name, append([]string{"resources: {gpu_share: " + part + "}"}, lines...)...), "{min: 1, max: 9}", "{min: 9, max: 9}")
}

// place is where a lease runs: which GPUs, and whether others may come.
func place(lease *protocol.Lease) string {
	if lease == nil {
		return "none"
	}
	text := strings.Trim(fmt.Sprint(lease.GPUs), "[]")
	if lease.GPUShared {
		text += " shared"
	}
	return text
}

func (w *world) wantPlace(lease *protocol.Lease, want, why string) {
	w.t.Helper()
	if got := place(lease); got != want {
		w.t.Fatalf("%s: the trial is on GPU %s, want %s", why, got, want)
	}
}

// usage has a trial report that it used so much.
func (w *world) usage(lease *protocol.Lease, epoch int, use *trial.GPUUse) {
	w.t.Helper()
	if err := w.reportUse(lease, epoch, use); err != nil {
		w.t.Fatal(err)
	}
}

// failOnGPU ends a lease as a command does that a GPU had no memory for.
func (w *world) failOnGPU(lease *protocol.Lease) trial.Trial {
	w.t.Helper()
	request := protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.CommandFailed, OutOfGPUMemory: true, Reason: "CUDA out of memory"}
	if _, err := w.service.Finish(w.ctx, lease.Trial, request); err != nil {
		w.t.Fatal(err)
	}
	return w.trial(lease.Trial)
}

// TestAnUnknownTrialRunsAloneForAMinute: then a second and a third join it, as
// they should use what it does, and a fourth waits.
func TestAnUnknownTrialRunsAloneForAMinute(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "auto")...)
		w.gpuBox("worker-box", 8, 1)
		first := w.mustLease("worker-box")
		w.wantPlace(first, "0 shared", "the first")
		w.wantPlace(w.lease("worker-box"), "none", "nothing is known of the first")
		w.wantWait("shares", "busy", "needs one that no trial has", "observed for a minute")
		w.usage(first, 1, seenAlone(0.3, 40, 4))
		w.wantPlace(w.lease("worker-box"), "none", "after 40 s")
		w.usage(first, 2, seenAlone(0.3, 30, 4))
		second, third := w.mustLease("worker-box"), w.mustLease("worker-box")
		w.wantPlace(second, "0 shared", "the second")
		w.wantPlace(third, "0 shared", "the third")
		w.wantPlace(w.lease("worker-box"), "none", "three are the most")
		w.wantWait("shares", "busy", "30 % of the time", "4 GiB", "an estimate")
		for _, lease := range []*protocol.Lease{second, third} {
			if share := w.trial(lease.Trial).GPUShare; share == nil || share.Alone || math.Abs(share.Utilization-0.3) > 1e-9 || share.MemoryBytes != 4*gigabyte || !strings.Contains(share.Basis, "observed trials, 1 so far") {
				t.Errorf("it was given %+v", share)
			}
		}
		if share := w.trial(first.Trial).GPUShare; share.Alone || math.Abs(share.Fraction-0.3) > 1e-9 {
			t.Errorf("of the first is known %+v", share)
		}
	})(t)
}

// TestHeartbeatsOpenAGPU: nobody waits for the end of a long epoch. What they say
// is not kept, and a report that says it again counts once.
func TestHeartbeatsOpenAGPU(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "auto")...)
		w.gpuBox("worker-box", 8, 1)
		first := w.mustLease("worker-box")
		beat := protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: first.Trial, LeaseEpoch: first.LeaseEpoch, GPUUse: seenAlone(0.4, 65, 4)}}}
		if _, err := w.service.Heartbeat(w.ctx, "worker-box", beat); err != nil {
			t.Fatal(err)
		}
		w.wantPlace(w.mustLease("worker-box"), "0 shared", "after a heartbeat")
		if use := w.trial(first.Trial).GPUUse; use != nil {
			t.Errorf("kept is %+v", use)
		}
		w.usage(first, 1, seenAlone(0.4, 70, 4))
		if use := w.trial(first.Trial).GPUUse; use == nil || use.Seconds != 70 {
			t.Errorf("kept is %+v", use)
		}
	})(t)
}

// TestMemoryBoundsWhoSharesAGPU: 7 GiB fit twice into 16. An idle GPU comes first.
func TestMemoryBoundsWhoSharesAGPU(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "auto")...)
		w.gpuBox("worker-box", 8, 2)
		first := w.mustLease("worker-box")
		w.usage(first, 1, seenAlone(0.2, 60, 7))
		for _, want := range []string{"1 shared", "0 shared", "1 shared", "none"} {
			w.wantPlace(w.lease("worker-box"), want, "7 GiB each")
		}
	})(t)
}

func TestUtilizationBoundsWhoSharesAGPU(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "auto")...)
		w.gpuBox("worker-box", 8, 1)
		first := w.mustLease("worker-box")
		w.usage(first, 1, seenAlone(0.55, 60, 1))
		w.wantPlace(w.lease("worker-box"), "none", "two of 55 %")
	})(t)
}

// TestTheUsersNumberIsTaken: two halves fit, and nothing has to be observed.
func TestTheUsersNumberIsTaken(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "0.5")...)
		w.gpuBox("worker-box", 8, 1)
		first, second := w.mustLease("worker-box"), w.mustLease("worker-box")
		w.wantPlace(first, "0 shared", "the first half")
		w.wantPlace(second, "0 shared", "the second half")
		w.wantPlace(w.lease("worker-box"), "none", "a third half")
		w.wantWait("shares", "busy", "50 % of its memory", "the study says 0.5 of a GPU")
		if share := w.trial(second.Trial).GPUShare; share.MemoryBytes != 8*gigabyte || share.Fraction != 0.5 {
			t.Errorf("it was given %+v", share)
		}
		w.usage(first, 1, seenAlone(0.1, 90, 9)) // more memory than the user says: what is seen counts
		if share := w.trial(first.Trial).GPUShare; share.MemoryBytes != 9*gigabyte || share.Utilization != 0.5 {
			t.Errorf("after what was seen it has %+v", share)
		}
	})(t)
}

// TestWholeGPUsAndPartsDoNotMix, in either order; and a study that shares has no
// room on a worker without GPUs.
func TestWholeGPUsAndPartsDoNotMix(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "0.3")...)
		w.wantWait("shares", "unfit", "no worker is connected")
		w.register("worker-plain")
		w.wantPlace(w.lease("worker-plain"), "none", "a worker without GPUs")
		w.wantWait("shares", "unfit", "resources.gpu_share")
		w.gpuBox("worker-box", 8, 2)
		w.wantPlace(w.mustLease("worker-box"), "0 shared", "a part")
		w.create(named("whole", "priority: 1", "resources: {gpus: 1}")...)
		whole := w.mustLease("worker-box")
		w.wantPlace(whole, "1", "a whole one")
		w.wantPlace(w.mustLease("worker-box"), "0 shared", "a second part")
		w.wantPlace(w.mustLease("worker-box"), "0 shared", "a third part")
		w.wantPlace(w.lease("worker-box"), "none", "a fourth part")
		if _, err := w.finish(whole, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		w.wantPlace(w.mustLease("worker-box"), "1", "the whole one again, which goes first")
	})(t)
}

// TestOutOfMemoryBesideOthersIsNoFailure: the trial comes back with more memory
// kept for it, alone in the end, and then it is its own.
func TestOutOfMemoryBesideOthersIsNoFailure(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "auto", "parallel: 2")...)
		w.gpuBox("worker-box", 8, 1)
		first := w.mustLease("worker-box")
		w.usage(first, 1, seenAlone(0.3, 60, 4))
		second := w.mustLease("worker-box")
		t1 := w.failOnGPU(second)
		if t1.State != trial.Queued || t1.Failures != 0 || t1.GPUShortage == nil || t1.GPUShortage.Times != 1 || t1.GPUShortage.NeedBytes != 5*gigabyte || !strings.Contains(t1.Reason, "no failure of its own: 5 GiB are kept") {
			t.Fatalf("%s, %d failures, %+v: %s", t1.State, t1.Failures, t1.GPUShortage, t1.Reason)
		}
		w.start()
		w.gpuBox("worker-box", 8, 1)
		second = w.mustLease("worker-box")
		if second.Trial != t1.ID || w.trial(t1.ID).GPUShare.MemoryBytes != 5*gigabyte {
			t.Fatalf("trial %s came with %+v", second.Trial, w.trial(second.Trial).GPUShare)
		}
		w.failOnGPU(second)
		third := w.failOnGPU(w.mustLease("worker-box"))
		if third.GPUShortage.Times != 3 || third.GPUShortage.NeedBytes != 16*gigabyte || third.Failures != 0 {
			t.Fatalf("after three times it needs %+v", third.GPUShortage)
		}
		w.wantPlace(w.lease("worker-box"), "none", "it wants a GPU to itself, and new ones do not pass it")
		if _, err := w.finish(first, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		alone := w.mustLease("worker-box") // queued earlier than the first, which was given back
		if alone.Trial != t1.ID {
			t.Fatalf("trial %s went first", alone.Trial)
		}
		w.wantPlace(w.lease("worker-box"), "none", "beside the one that needs all of it")
		if own := w.failOnGPU(alone); own.Failures != 1 || own.State != trial.Queued {
			t.Errorf("alone it is %s with %d failures", own.State, own.Failures)
		}
	})(t)
}

// TestAWholeGPUsMemoryIsTheTrialsOwn.
func TestAWholeGPUsMemoryIsTheTrialsOwn(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(append(named("whole", "resources: {gpus: 1}"), "{min: 1, max: 9}", "{min: 9, max: 9}")...)
		w.gpuBox("worker-box", 8, 1)
		if own := w.failOnGPU(w.mustLease("worker-box")); own.Failures != 1 || own.GPUShortage != nil {
			t.Errorf("%d failures, %+v", own.Failures, own.GPUShortage)
		}
	})(t)
}

// TestSharesSurviveTheServer: a server that starts again knows who shares what.
func TestSharesSurviveTheServer(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "auto")...)
		w.gpuBox("worker-box", 8, 2)
		first := w.mustLease("worker-box")
		w.usage(first, 1, seenAlone(0.4, 60, 6))
		second := w.mustLease("worker-box")
		w.wantPlace(second, "1 shared", "the second")
		third := w.mustLease("worker-box")
		w.wantPlace(third, "0 shared", "the third")
		w.start()
		w.view("shares") // has it loaded
		w.gpuBox("worker-box", 8, 2)
		w.wantPlace(w.mustLease("worker-box"), "1 shared", "the fourth, behind the restart")
		w.wantPlace(w.lease("worker-box"), "none", "a fifth")
		if got := w.failOnGPU(third); got.Failures != 0 || got.GPUShortage == nil {
			t.Errorf("that it had shared its GPU is forgotten: %d failures", got.Failures)
		}
	})(t)
}

// TestAnUnknownTrialStaysAloneBehindARestart.
func TestAnUnknownTrialStaysAloneBehindARestart(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "auto")...)
		w.gpuBox("worker-box", 8, 1)
		w.mustLease("worker-box")
		w.start()
		w.view("shares")
		w.gpuBox("worker-box", 8, 1)
		w.wantPlace(w.lease("worker-box"), "none", "beside one of which nothing is known")
	})(t)
}

// TestPartsCountAsFractions: of a quota of one GPU, two of 40 % fit and a third
// does not, though the worker has room; GPU-seconds and shares count so too.
func TestPartsCountAsFractions(t *testing.T) {
	in(func(t *testing.T, w *world) {
		ada := w.as(user("ada"))
		ada.create(sharing("hers", "0.4")...)
		w.gpuBox("worker-box", 8, 2)
		if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{GPUs: 1}); err != nil {
			t.Fatal(err)
		}
		first := w.mustLease("worker-box")
		second := w.mustLease("worker-box")
		w.wantPlace(w.lease("worker-box"), "none", "a third of 40 %")
		ada.wantWait("hers", "quota", "user ada holds 0.8 of their 1 GPUs")
		w.beat("worker-box", first, second)
		w.sleep(10 * time.Second)
		views := w.quotas()
		if len(views) != 1 || views[0].Uses.GPUs != 0.8 || views[0].Uses.GPUSecondsToday < 7.9 || views[0].Uses.GPUSecondsToday > 8.9 {
			t.Errorf("used are %+v", views)
		}
	})(t)
}

// TestAReservedGPUIsNotOpened: a part opens no GPU that is kept for another, but
// joins one that is shared.
func TestAReservedGPUIsNotOpened(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "0.5")...)
		w.gpuBox("worker-box", 8, 2)
		w.wantPlace(w.mustLease("worker-box"), "0 shared", "the first half")
		now := time.Now()
		if _, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{User: "bob", GPUs: 1, To: now.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		w.wantPlace(w.lease("worker-box"), "0 shared", "GPU 1 is kept for bob")
		w.wantPlace(w.lease("worker-box"), "none", "a third half")
	})(t)
}

// TestAPartMakesWay: preemption takes the fewest that make room, and drains hold.
func TestAPartMakesWay(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "0.5")...)
		w.gpuBox("worker-box", 8, 1)
		first := w.mustLease("worker-box")
		w.sleep(time.Second)
		second := w.mustLease("worker-box")
		w.create(sharing("urgent", "0.5", "priority: 3", "preempt: true")...)
		w.sleep(time.Second)
		directives := w.beat("worker-box", first, second)
		if len(directives) != 1 || directives[second.Trial].Action != protocol.Pause {
			t.Fatalf("asked to make way: %v", directives)
		}
		if _, err := w.finish(second, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		urgent := w.mustLease("worker-box")
		if urgent.Study != "urgent" || place(urgent) != "0 shared" {
			t.Errorf("study %s came on GPU %s", urgent.Study, place(urgent))
		}
		if _, err := w.service.Drain(w.ctx, "box", protocol.DrainRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.finish(first, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		w.wantPlace(w.lease("worker-box"), "none", "it is drained")
	})(t)
}

// TestNobodyMakesWayForAGPUThatIsReserved: a trial with a whole GPU is not paused for a
// part of it that the reservation of another would keep from who asks; nor is it spared
// where the reservation leaves a GPU.
func TestNobodyMakesWayForAGPUThatIsReserved(t *testing.T) {
	for gpus, want := range map[int]int{1: 0, 2: 1} {
		in(func(t *testing.T, w *world) {
			w.create(named("whole", "parallel: 1", "resources: {gpus: 1}")...)
			w.gpuBox("worker-box", 1, 1)
			whole := w.mustLease("worker-box")
			if gpus == 2 {
				w.gpuBox("worker-kept", 1, 1) // idle, which is enough for bob
			}
			if _, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{User: "bob", GPUs: 1, To: time.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			w.create(sharing("urgent", "0.5", "priority: 3", "preempt: true")...)
			w.sleep(time.Second)
			if gpus == 2 {
				w.wantPlace(w.lease("worker-kept"), "none", "it is kept for bob")
				w.wantWait("urgent", "reservation", "GPUs are reserved")
			}
			if directives := w.beat("worker-box", whole); len(directives) != want {
				t.Errorf("with %d GPUs, asked to make way: %v", gpus, directives)
			}
			if want == 0 {
				return
			}
			if _, err := w.finish(whole, protocol.Interrupted); err != nil {
				t.Fatal(err)
			}
			if urgent := w.mustLease("worker-box"); urgent.Study != "urgent" {
				t.Errorf("study %s came", urgent.Study)
			}
		})(t)
	}
}

// TestThePoolSaysWhoSharesAGPU: each sees its own trials there, and how many of
// others there are.
func TestThePoolSaysWhoSharesAGPU(t *testing.T) {
	in(func(t *testing.T, w *world) {
		ada, bob := w.as(user("ada")), w.as(user("bob"))
		ada.create(sharing("hers", "0.3", "parallel: 2")...)
		bob.create(sharing("his", "0.3", "parallel: 1")...)
		w.gpuBox("worker-box", 8, 1)
		leases := map[string][]*protocol.Lease{}
		for range 3 {
			lease := w.mustLease("worker-box")
			leases[lease.Study] = append(leases[lease.Study], lease)
		}
		w.usage(leases["hers"][0], 1, seenAlone(0.2, 30, 3))
		seen := func(of *world) (said []string) {
			pool, err := of.service.Pool(of.ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range pool.Machines[0].Running {
				text := fmt.Sprintf("%s on %v beside %d and %d", run.Study, run.GPU.Places, len(run.GPU.Beside), run.GPU.Others)
				if run.GPU.Use != nil {
					text += fmt.Sprintf(", seen %g", run.GPU.Use.Utilization)
				}
				said = append(said, text)
			}
			slices.Sort(said)
			return said
		}
		if got := seen(ada); !slices.Equal(got, []string{"hers on [0] beside 1 and 1", "hers on [0] beside 1 and 1, seen 0.2"}) {
			t.Errorf("ada sees %q", got)
		}
		if got := seen(bob); !slices.Equal(got, []string{"his on [0] beside 0 and 2"}) {
			t.Errorf("bob sees %q", got)
		}
	})(t)
}
