package study_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/trial"
)

// rack registers a worker with so many slots and GPUs.
func (w *world) rack(id string, slots, gpus int) {
	w.t.Helper()
	machine := protocol.Machine{Host: id, Cores: 64, MemoryBytes: 64 << 30, GPUs: slices.Repeat([]string{"NVIDIA A100"}, gpus)}
	if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: strings.TrimPrefix(id, "worker-"), Slots: slots, Machine: machine}); err != nil {
		w.t.Fatal(err)
	}
}

// beat keeps the leases and returns what the worker shall do with them.
func (w *world) beat(worker string, leases ...*protocol.Lease) map[trial.ID]protocol.Directive {
	w.t.Helper()
	beat := protocol.Heartbeat{}
	for _, lease := range leases {
		beat.Leases = append(beat.Leases, protocol.HeldLease{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch})
	}
	reply, err := w.service.Heartbeat(w.ctx, worker, beat)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(reply.Lost) > 0 {
		w.t.Fatalf("lost %v", reply.Lost)
	}
	return reply.Directives
}

// waits is why the study waits, in one line; empty: it does not.
func (w *world) waits(study string) string {
	w.t.Helper()
	var lines []string
	for _, wait := range w.view(study).Waits {
		lines = append(lines, string(wait.Cause)+": "+wait.Reason)
	}
	return strings.Join(lines, "; ")
}

// wantWait checks why the study waits.
func (w *world) wantWait(study, cause string, words ...string) {
	w.t.Helper()
	got := w.waits(study)
	for _, word := range append([]string{cause + ": "}, words...) {
		if !strings.Contains(got, word) {
			w.t.Errorf("study %s waits: %q; want %q in it", study, got, word)
		}
	}
}

// named is the default study with a name and further lines.
func named(name string, lines ...string) []string {
	return []string{"name: example", "name: " + name + "\n" + strings.Join(lines, "\n")}
}

// Dominant shares: of two users, the one whose trials take less gets more of them.
func TestUsersShareTheWorkersEvenly(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.as(user("ada")).create(named("wide", "resources: {gpus: 2}")...)
		w.as(user("bob")).create(named("narrow", "resources: {gpus: 1}")...)
		w.rack("worker-rack", 16, 12)
		count := map[string]int{}
		for lease := w.lease("worker-rack"); lease != nil; lease = w.lease("worker-rack") {
			count[lease.Study] += len(lease.GPUs)
			if difference := count["wide"] - count["narrow"]; difference < -1 || difference > 2 {
				t.Fatalf("the GPUs are shared as %v", count)
			}
		}
		if count["wide"] != 6 || count["narrow"] != 6 {
			t.Errorf("the 12 GPUs are shared as %v, want 6 each", count)
		}
	})(t)
}

func TestAWeightIsAShare(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.as(user("ada")).create(named("hers", "resources: {gpus: 1}")...)
		w.as(user("bob")).create(named("his", "resources: {gpus: 1}")...)
		if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{Weight: 2}); err != nil {
			t.Fatal(err)
		}
		w.rack("worker-rack", 16, 9)
		count := map[string]int{}
		for lease := w.lease("worker-rack"); lease != nil; lease = w.lease("worker-rack") {
			count[lease.Study]++
		}
		if count["hers"] != 6 || count["his"] != 3 {
			t.Errorf("with weights 2 and 1, 9 GPUs are shared as %v", count)
		}
	})(t)
}

func TestQuotasAreKeptAndTold(t *testing.T) {
	in(func(t *testing.T, w *world) {
		ada := w.as(user("ada"))
		ada.create(named("hers", "resources: {gpus: 2}")...)
		w.rack("worker-rack", 16, 8)
		if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{GPUs: 4}); err != nil {
			t.Fatal(err)
		}
		first, second := w.mustLease("worker-rack"), w.mustLease("worker-rack")
		for range 2 { // the second time behind a restart
			if lease := w.lease("worker-rack"); lease != nil {
				t.Fatalf("beyond the quota GPUs %v were given", lease.GPUs)
			}
			ada.wantWait("hers", "quota", "user ada holds 4 of their 4 GPUs")
			w.start()
			ada = w.as(user("ada"))
			w.rack("worker-rack", 16, 8)
		}
		quotas := ada.service.Quotas(ada.ctx)
		if len(quotas) != 1 || quotas[0].User != "ada" || quotas[0].Quota.GPUs != 4 || quotas[0].Uses.GPUs != 4 || quotas[0].Uses.Trials != 2 || quotas[0].Uses.DominantShare != 0.5 {
			t.Errorf("ada sees %+v", quotas)
		}
		bob := w.as(user("bob"))
		if foreign := bob.service.Quotas(bob.ctx); len(foreign) != 1 || foreign[0].User != "bob" {
			t.Errorf("bob sees %+v", foreign)
		}
		if _, err := bob.service.Quota(bob.ctx, "ada"); !problem.Is(err, problem.NotFound) {
			t.Errorf("bob gets ada's quota: %v", err)
		}
		w.train(first)
		if again := w.mustLease("worker-rack"); !slices.Equal(again.GPUs, first.GPUs) {
			t.Errorf("the GPUs that were let go of are %v, given were %v", first.GPUs, again.GPUs)
		}
		if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{Trials: 2}); err != nil {
			t.Fatal(err)
		}
		ada.wantWait("hers", "quota", "runs 2 of their 2 trials")
		if err := w.service.RemoveQuota(w.ctx, "ada"); err != nil {
			t.Fatal(err)
		}
		if waits := ada.waits("hers"); waits != "" {
			t.Errorf("without a quota it waits: %s", waits)
		}
		w.mustLease("worker-rack")
		w.train(second)
		if err := w.service.RemoveQuota(w.ctx, "ada"); !problem.Is(err, problem.NotFound) {
			t.Errorf("a quota that is not there: %v", err)
		}
		if _, err := w.service.SetQuota(w.ctx, "a:b", protocol.Quota{}); !problem.Is(err, problem.Invalid) {
			t.Errorf("a user that cannot be: %v", err)
		}
	})(t)
}

// A day's joules and GPU-seconds survive a restart, and end with the day.
func TestWhatADayMayUse(t *testing.T) {
	in(func(t *testing.T, w *world) {
		ada := w.as(user("ada"))
		ada.create(named("hers", "resources: {gpus: 1}")...)
		w.rack("worker-rack", 16, 8)
		if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{JoulesADay: 5, GPUSecondsADay: 1e6}); err != nil {
			t.Fatal(err)
		}
		w.train(w.mustLease("worker-rack")) // an epoch of 3 J
		lease := w.mustLease("worker-rack")
		w.sleep(20 * time.Second)
		w.train(lease)
		ada.wantWait("hers", "quota", "has used 6 of their 5 J of today (UTC)")
		if uses := ada.service.Quotas(ada.ctx)[0].Uses; uses.JoulesToday != 6 || uses.GPUSecondsToday < 19 || uses.GPUSecondsToday > 21 {
			t.Errorf("used are %+v", uses)
		}
		if err := w.service.Close(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.start()
		ada = w.as(user("ada"))
		w.rack("worker-rack", 16, 8)
		ada.wantWait("hers", "quota", "has used 6 of their 5 J")
		if w.lease("worker-rack") != nil {
			t.Error("a trial began beyond the day's joules")
		}
		time.Sleep(24 * time.Hour)
		if err := w.service.Tick(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.rack("worker-rack", 16, 8)
		w.mustLease("worker-rack")
	})(t)
}

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
		w.wantWait("huge", "unfit", "no worker is connected")
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

func TestParallelBoundsTheTrialsOfAStudy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(named("two", "parallel: 2")...)
		w.register("worker-1", "worker-2", "worker-3")
		first := w.mustLease("worker-1")
		w.mustLease("worker-2")
		if w.lease("worker-3") != nil {
			t.Error("a third trial runs")
		}
		w.wantWait("two", "parallel", "2 of at most 2")
		w.train(first)
		w.mustLease("worker-3")
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

func TestADrainedWorkerLetsItsTrialsGo(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9")
		w.rack("worker-rack", 2, 0)
		w.rack("worker-desk", 2, 0)
		lease := w.mustLease("worker-rack")
		w.mustReport(lease, 1)
		if err := w.checkpoint(lease, 1); err != nil {
			t.Fatal(err)
		}
		if drained, err := w.service.Drain(w.ctx, "rack", protocol.DrainRequest{Reason: "new disk"}); err != nil || !slices.Equal(drained.Workers, []string{"rack"}) || drained.Trials != 1 {
			t.Fatalf("%+v, %v", drained, err)
		}
		if w.lease("worker-rack") != nil || len(w.beat("worker-rack", lease)) != 0 {
			t.Error("a drained worker got a trial, or has to let one go")
		}
		seen, err := w.service.Pool(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, machine := range seen.Machines {
			if machine.Drained != (machine.ID == "worker-rack") {
				t.Errorf("the pool says of %s that it is drained: %v", machine.ID, machine.Drained)
			}
		}
		if _, err := w.service.Drain(w.ctx, "worker-rack", protocol.DrainRequest{Now: true, Reason: "new disk"}); err != nil {
			t.Fatal(err)
		}
		w.start() // it is durable, for the name
		w.rack("worker-rack", 2, 0)
		w.rack("worker-desk", 2, 0)
		if directive := w.beat("worker-rack", lease)[lease.Trial]; directive.Action != protocol.Pause || !strings.Contains(directive.Reason, "rack is drained: new disk") {
			t.Errorf("the worker is told %+v", directive)
		}
		if _, err := w.finish(lease, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if stored := w.trial(lease.Trial); stored.State != trial.Queued || stored.Failures != 0 || stored.Preemptions != 0 {
			t.Errorf("the trial is %+v", stored)
		}
		if w.lease("worker-rack") != nil {
			t.Error("the drained worker got it again")
		}
		if again := w.mustLease("worker-desk"); again.Trial != lease.Trial || again.FirstEpoch != 2 {
			t.Errorf("the other worker got %s from epoch %d", again.Trial, again.FirstEpoch)
		}
		for _, worker := range w.service.Workers(w.ctx) {
			if (worker.Drained != nil) != (worker.Name == "rack") {
				t.Errorf("worker %s is drained: %+v", worker.Name, worker.Drained)
			}
		}
		if _, err := w.service.Undrain(w.ctx, "rack"); err != nil {
			t.Fatal(err)
		}
		w.mustLease("worker-rack")
		if _, err := w.service.Drain(w.ctx, "nobody", protocol.DrainRequest{}); !problem.Is(err, problem.NotFound) {
			t.Errorf("a worker that is not there: %v", err)
		}
	})(t)
}

func TestAllWorkersDrainedIsTold(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		w.rack("worker-rack", 1, 0)
		if _, err := w.service.Drain(w.ctx, "rack", protocol.DrainRequest{}); err != nil {
			t.Fatal(err)
		}
		w.wantWait("example", "drained", "worker rack is drained")
	})(t)
}

// The youngest trial of the lowest class makes way, by checkpoint, and is left in
// peace for a while.
func TestPreemptionWhenAskedFor(t *testing.T) {
	in(func(t *testing.T, w *world) {
		long := []string{"policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9"}
		w.create(append(named("lowest", "priority: -2"), long...)...)
		w.rack("worker-a", 1, 0)
		w.rack("worker-b", 1, 0)
		w.rack("worker-c", 1, 0)
		older := w.mustLease("worker-a")
		w.sleep(time.Second)
		younger := w.mustLease("worker-b")
		w.create(append(named("low", "priority: -1"), long...)...)
		low := w.mustLease("worker-c")
		for _, lease := range []*protocol.Lease{older, younger, low} {
			w.mustReport(lease, 1)
			if err := w.checkpoint(lease, 1); err != nil {
				t.Fatal(err)
			}
		}
		ada := w.as(user("ada"))
		ada.create(append(append(named("urgent", "priority: 3", "preempt: true"), "trials: 27", "trials: 1"), long...)...)
		w.sleep(2 * time.Second)
		told := func() (told []trial.ID) {
			for worker, lease := range map[string]*protocol.Lease{"worker-a": older, "worker-b": younger, "worker-c": low} {
				for id, directive := range w.beat(worker, lease) {
					if directive.Action != protocol.Pause || !strings.Contains(directive.Reason, "makes way for study urgent") {
						t.Errorf("trial %s is told %+v", id, directive)
					}
					told = append(told, id)
				}
			}
			return told
		}
		if got := told(); len(got) != 0 {
			t.Fatalf("ada may not preempt, and %v make way", got)
		}
		ada.wantWait("urgent", "busy", "3 workers that suit it are busy")
		if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{Preempt: true}); err != nil {
			t.Fatal(err)
		}
		w.sleep(5 * time.Second)
		if got := told(); !slices.Equal(got, []trial.ID{younger.Trial}) {
			t.Fatalf("%v make way, want %s alone", got, younger.Trial)
		}
		ada.wantWait("urgent", "preemption", "making way")
		if _, err := w.finish(younger, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if stored := w.trial(younger.Trial); stored.State != trial.Queued || stored.Preemptions != 1 || stored.Preempted == nil || stored.Failures != 0 || stored.Losses != 0 {
			t.Errorf("the trial that made way is %+v", stored)
		}
		if lease := w.mustLease("worker-b"); lease.Study != "urgent" {
			t.Errorf("its place went to %s", lease.Study)
		}
		w.sleep(5 * time.Second)
		for worker, lease := range map[string]*protocol.Lease{"worker-a": older, "worker-c": low} {
			if told := w.beat(worker, lease); len(told) != 0 {
				t.Errorf("the study's only trial runs, and on %s %+v make way", worker, told)
			}
		}
		if view := ada.view("urgent"); len(view.Waits) != 0 {
			t.Errorf("the study's only trial runs, and it waits for %+v", view.Waits)
		}
	})(t)
}

// TestMakingWayNamesNoStudyOfOthers to the user whose trial makes way; the
// administrators are told.
func TestMakingWayNamesNoStudyOfOthers(t *testing.T) {
	for owner, want := range map[string]string{"ada": "study secret, ", "bob": "a study of another user, ", "": "study secret, "} {
		in(func(t *testing.T, w *world) {
			his := w
			if owner != "" {
				his = w.as(user(owner))
			}
			long := []string{"policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9"}
			his.create(append(named("his", "priority: -1"), long...)...)
			w.rack("worker-a", 1, 0)
			lease := w.mustLease("worker-a")
			w.mustReport(lease, 1)
			if err := w.checkpoint(lease, 1); err != nil {
				t.Fatal(err)
			}
			w.as(user("ada")).create(named("secret", "preempt: true")...)
			if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{Preempt: true}); err != nil {
				t.Fatal(err)
			}
			w.sleep(5 * time.Second)
			reason := w.beat("worker-a", lease)[lease.Trial].Reason
			if !strings.Contains(reason, want+"whose priority is higher (0)") {
				t.Errorf("%q is told: %q", owner, reason)
			}
		})(t)
	}
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

// Who came by a link hears nothing of users and workers.
func TestALinkDoesNotSayWhyAStudyWaits(t *testing.T) {
	in(func(t *testing.T, w *world) {
		id := w.create().ID
		if w.waits(id) == "" {
			t.Fatal("without a worker, it does not wait")
		}
		guest := w.as(study.Caller{Sight: study.Shared, Study: id, Holder: "link:x"})
		if waits := guest.view(id).Waits; waits != nil {
			t.Errorf("a guest hears %v", waits)
		}
	})(t)
}

// Quotas hold whoever asks at once.
func TestQuotasHoldUnderConcurrency(t *testing.T) {
	w := newWorld(t, 1)
	for i := range 4 {
		w.create(named(fmt.Sprint("study-", i), "resources: {gpus: 1}")...)
	}
	if _, err := w.service.SetQuota(w.ctx, study.Administrators, protocol.Quota{Trials: 3, GPUs: 3}); err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	var mutex sync.Mutex
	given := map[string][]int{}
	for i := range 8 {
		worker := fmt.Sprint("worker-", i%2)
		w.rack(worker, 8, 4)
		asking.Go(func() {
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: worker})
			mutex.Lock()
			defer mutex.Unlock()
			if err != nil {
				t.Error(err)
			} else if reply.Lease != nil {
				given[worker] = append(given[worker], reply.Lease.GPUs...)
			}
		})
	}
	asking.Wait()
	total := 0
	for worker, gpus := range given {
		total += len(gpus)
		if slices.Sort(gpus); len(slices.Compact(slices.Clone(gpus))) != len(gpus) {
			t.Errorf("a GPU of %s is given twice: %v", worker, gpus)
		}
	}
	if total > 3 || total == 0 {
		t.Errorf("%d GPUs are given, with a quota of 3", total)
	}
}
