package study_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
)

func TestHeartbeatsKeepALease(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		for range 30 {
			w.sleep(10 * time.Second)
			reply, err := w.service.Heartbeat(w.ctx, "worker-1", protocol.Heartbeat{
				Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch}},
			})
			if err != nil || len(reply.Lost) > 0 || len(reply.Directives) > 0 {
				t.Fatalf("a heartbeat was answered %+v, %v", reply, err)
			}
		}
		w.train(lease)
	})(t)
}

func TestARestartKeepsLeasesAlive(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		time.Sleep(time.Hour) // the server is down, and the worker trains on
		w.start()
		w.sleep(50 * time.Second)
		_, err := w.service.Heartbeat(w.ctx, "worker-1", protocol.Heartbeat{})
		if !problem.Is(err, problem.NotFound) {
			t.Errorf("a worker from before the restart was answered %v, want not_found: register again", err)
		}
		w.register("worker-1")
		w.train(lease)
	})(t)
}

func TestStopAfterSeconds(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("trials: 27", "trials: 27, seconds: 30")
		w.register("worker-1")
		w.mustLease("worker-1")
		w.sleep(31 * time.Second)
		if view := w.view(created.ID); view.Status != protocol.StudyCompleted || !strings.Contains(view.Reason, "time") {
			t.Errorf("after its time the study is %s: %s", view.Status, view.Reason)
		}
	})(t)
}

// TestWaitingDoesNotCountAsTime of a study: for its first worker, between two trials, or
// for its quota. Then its time is what its trials were leased for.
func TestWaitingDoesNotCountAsTime(t *testing.T) {
	in(func(t *testing.T, w *world) {
		ada := w.as(user("ada"))
		created := ada.create("trials: 27", "trials: 27, seconds: 60")
		elapsed := func(when string, want float64) {
			t.Helper()
			if view := w.view(created.ID); view.Status != protocol.StudyRunning || view.Progress.ElapsedSeconds != want {
				t.Errorf("%s it is %s (%s) after %g s, want %g", when, view.Status, view.Reason, view.Progress.ElapsedSeconds, want)
			}
		}
		w.sleep(time.Hour)
		elapsed("without a worker", 0)
		w.register("worker-1", "worker-2")
		first, second := w.mustLease("worker-1"), w.mustLease("worker-2")
		w.sleep(10 * time.Second)
		w.train(first)
		w.sleep(10 * time.Second)
		w.train(second)
		elapsed("when two trials have overlapped", 20)
		if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{JoulesADay: 1e-9}); err != nil {
			t.Fatal(err)
		}
		w.sleep(time.Hour)
		elapsed("without quota", 20)
		w.start()
		w.sleep(time.Hour)
		elapsed("behind a restart", 20)
		if err := w.service.RemoveQuota(w.ctx, "ada"); err != nil {
			t.Fatal(err)
		}
		w.register("worker-1")
		w.mustLease("worker-1")
		for range 5 {
			w.sleep(7 * time.Second)
		}
		elapsed("with a trial again", 55)
		w.sleep(5 * time.Second)
		w.ended(created.ID, protocol.StudyCompleted, "its time of 60 s is up")
	})(t)
}

func TestAWaitingWorkerIsWokenByAMeasurement(t *testing.T) {
	in(func(t *testing.T, w *world) {
		// Nine trials at the bottom, and the tenth lease can only be a
		// promotion, which needs measurements.
		w.create("trials: 27", "trials: 9", "method: bohb", "method: bohb, brackets: 1")
		w.register("worker-1", "worker-2")
		var leases []*protocol.Lease
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			leases = append(leases, lease)
		}
		if len(leases) != 9 {
			t.Fatalf("%d leases before any measurement, want 9", len(leases))
		}
		got := make(chan *protocol.Lease)
		go func() {
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-2", WaitSeconds: 30})
			if err != nil {
				t.Error(err)
			}
			got <- reply.Lease
		}()
		asked := time.Now()
		for _, lease := range leases[:8] {
			time.Sleep(time.Second)
			w.train(lease)
		}
		lease := <-got
		if lease == nil || lease.Checkpoint == nil || time.Since(asked) > 10*time.Second {
			t.Errorf("the waiting worker got %+v after %v, want a promotion at once", lease, time.Since(asked))
		}
	})(t)
}

func TestALongPollEndsEmptyHanded(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.register("worker-1")
		asked := time.Now()
		reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-1", WaitSeconds: 30})
		if err != nil || reply.Lease != nil || time.Since(asked) != 30*time.Second {
			t.Errorf("without studies a lease was answered %+v, %v after %v", reply, err, time.Since(asked))
		}
	})(t)
}

func TestAServerThatSleptBlamesNoWorker(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create()
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		w.sleep(5 * time.Second)
		time.Sleep(2 * time.Hour) // the machine was suspended
		w.sleep(30 * time.Second)
		w.train(lease)
	})(t)
}

func TestTimeWithoutAServerDoesNotCount(t *testing.T) {
	for name, stop := range map[string]func(w *world){
		"closed": func(w *world) {
			if err := w.service.Close(w.ctx); err != nil {
				w.t.Fatal(err)
			}
		},
		"killed": func(*world) {},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			created := w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9", "trials: 27", "trials: 27, seconds: 60")
			w.register("worker-1")
			lease := w.mustLease("worker-1")
			w.sleep(20 * time.Second)
			w.mustReport(lease, 1)
			stop(w)
			time.Sleep(12 * time.Hour)
			w.start()
			if got := w.view(created.ID).Progress.ElapsedSeconds; got != 20 {
				t.Errorf("after a night without a server the study has run for %g s, want 20", got)
			}
			w.sleep(30 * time.Second)
			if view := w.view(created.ID); view.Status != protocol.StudyRunning || view.Progress.ElapsedSeconds != 50 {
				t.Errorf("the study is %s after %g s, want running after 50", view.Status, view.Progress.ElapsedSeconds)
			}
			w.sleep(20 * time.Second)
			if view := w.view(created.ID); view.Status != protocol.StudyCompleted {
				t.Errorf("the study is %s after its 60 s", view.Status)
			}
		}))
	}
}

func TestTimeLeftIsNeverNothingWhileTrialsRun(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		w.register("worker-1")
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			left := w.view(created.ID).Progress.RemainingSeconds
			if left != nil && *left <= 0 {
				t.Fatalf("%g seconds are left, and trial %d runs", *left, lease.Number)
			}
			for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
				time.Sleep(2 * time.Second)
				w.mustReport(lease, epoch)
			}
			if err := w.checkpoint(lease, lease.Budget.Epochs); err != nil {
				t.Fatal(err)
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
	})(t)
}

// A trial that reports only the last of its epochs has trained them all: where half
// of the trials have ended, about as much time is left as has passed.
func TestTimeLeftCountsTheEpochsThatNobodyReported(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("budget: {policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}, eta: 3}", "budget: {epochs: 10}", "trials: 27", "trials: 4")
		w.register("worker-1")
		for range 2 {
			lease := w.mustLease("worker-1")
			time.Sleep(10 * time.Second)
			w.mustReport(lease, 10)
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
		left := w.view(created.ID).Progress.RemainingSeconds
		if left == nil || *left < 19 || *left > 21 {
			t.Errorf("left are %v seconds, want the 20 that the first half took", left)
		}
	})(t)
}

func TestAStudyWithoutAnEndHasNoTimeLeft(t *testing.T) {
	for trials, known := range map[string]bool{"trials: 27": true, "trials: 1000000": false, "trials: 1000000, seconds: 600": true} {
		t.Run(trials, in(func(t *testing.T, w *world) {
			created := w.create("trials: 27", trials)
			w.register("worker-1")
			lease := w.mustLease("worker-1")
			w.sleep(2 * time.Second)
			w.mustReport(lease, 1)
			if left := w.view(created.ID).Progress.RemainingSeconds; (left != nil) != known {
				t.Errorf("left: %v", left)
			}
		}))
	}
}

// While workers start their first trials, the time left does not grow with each second that
// they take; where all have reported, what passed counts in full.
func TestTimeLeftDoesNotGrowWhileWorkersStart(t *testing.T) {
	for starting, most := range map[bool]float64{true: 1.1, false: 1.4} {
		in(func(t *testing.T, w *world) {
			created := w.create()
			workers := []string{"worker-1", "worker-2", "worker-3", "worker-4"}
			w.register(workers...)
			var leases []*protocol.Lease
			for _, worker := range workers {
				leases = append(leases, w.mustLease(worker))
			}
			w.sleep(20 * time.Second)
			for i, lease := range leases {
				w.train(lease)
				if w.mustLease(workers[i]); starting {
					break
				}
			}
			left := func() float64 { return *w.view(created.ID).Progress.RemainingSeconds }
			before := left()
			w.sleep(6 * time.Second)
			if after := left(); after > most*before || !starting && before < 20 {
				t.Errorf("starting: %v, %g s are left, and %g s after 6 s without a report", starting, before, after)
			}
		})(t)
	}
}
