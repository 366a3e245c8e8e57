package study_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
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
		quotas := ada.quotas()
		if len(quotas) != 1 || quotas[0].User != "ada" || quotas[0].Quota.GPUs != 4 || quotas[0].Uses.GPUs != 4 || quotas[0].Uses.Trials != 2 || quotas[0].Uses.DominantShare != 0.5 {
			t.Errorf("ada sees %+v", quotas)
		}
		bob := w.as(user("bob"))
		if foreign := bob.quotas(); len(foreign) != 1 || foreign[0].User != "bob" {
			t.Errorf("bob sees %+v", foreign)
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
		if uses := ada.quotas()[0].Uses; uses.JoulesToday != 6 || uses.GPUSecondsToday < 19 || uses.GPUSecondsToday > 21 {
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

// What a user has used today survives a server that is killed, also where the study is
// over or deleted, and the user had no quota then.
func TestADaysUseSurvivesAKilledServer(t *testing.T) {
	for name, quota := range map[string]protocol.Quota{"quota": {JoulesADay: 1000, GPUSecondsADay: 1e6}, "no quota": {}} {
		t.Run(name, in(func(t *testing.T, w *world) {
			ada := w.as(user("ada"))
			created := ada.create(append(named("hers", "resources: {gpus: 1}"), "trials: 27", "trials: 2")...)
			w.rack("worker-rack", 1, 1)
			if quota != (protocol.Quota{}) {
				if _, err := w.service.SetQuota(w.ctx, "ada", quota); err != nil {
					t.Fatal(err)
				}
			}
			for lease := w.mustLease("worker-rack"); lease != nil; lease = w.lease("worker-rack") {
				w.sleep(20 * time.Second)
				w.train(lease)
				w.sleep(time.Second)
			}
			if view := w.view(created.ID); !view.Status.Over() {
				t.Fatalf("the study is %s", view.Status)
			}
			if err := ada.service.Delete(ada.ctx, "hers"); err != nil {
				t.Fatal(err)
			}
			before := ada.quotas()[0].Uses
			for range 2 {
				w.start() // nothing was closed
				if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{JoulesADay: 5}); err != nil {
					t.Fatal(err)
				}
				uses := w.quotas()[0].Uses
				if uses.JoulesToday == 0 || uses.JoulesToday != before.JoulesToday || uses.GPUSecondsToday < before.GPUSecondsToday-10 {
					t.Errorf("behind the restart ada has used %+v, before %+v", uses, before)
				}
			}
		}))
	}
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

// Who came by a link hears nothing of users and workers.
func TestALinkDoesNotSayWhyAStudyWaits(t *testing.T) {
	in(func(t *testing.T, w *world) {
		id := w.create().ID
		if w.waits(id) == "" {
			t.Fatal("without a worker, it does not wait")
		}
		guest := w.as(access.Caller{Sight: access.Shared, Study: id, Holder: "link:x"})
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
	if _, err := w.service.SetQuota(w.ctx, access.Administrators, protocol.Quota{Trials: 3, GPUs: 3}); err != nil {
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
