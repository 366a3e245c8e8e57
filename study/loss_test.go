package study_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/trial"
)

// oneRung is a study whose trials train nine epochs at once.
var oneRung = []string{"policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9"}

// registerOn registers a worker as one that was started on the machine.
func (w *world) registerOn(host, id string) {
	w.t.Helper()
	_, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Machine: protocol.Machine{Host: host}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// again leases the trial as soon as it can be had, and returns how long that took.
func (w *world) again(worker string, id trial.ID) time.Duration {
	w.t.Helper()
	for began := time.Now(); ; w.sleep(time.Second) {
		reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: worker})
		if err != nil {
			w.t.Fatal(err)
		}
		switch {
		case reply.Lease == nil:
		case reply.Lease.Trial == id:
			return time.Since(began)
		default:
			w.t.Fatalf("trial %d was leased, as there is nothing else to do", reply.Lease.Number)
		}
		if time.Since(began) > time.Hour {
			w.t.Fatal("an hour has passed")
		}
	}
}

// TestAMachineThatRestartsItsWorkerIsOneMachine loses a trial on one machine
// again and again, whose worker comes back under a new id each time: that says
// nothing against the trial, but it is not tried for ever.
func TestAMachineThatRestartsItsWorkerIsOneMachine(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(append(oneRung, "trials: 27", "trials: 1")...)
		w.registerOn("box", "worker-0")
		lease := w.mustLease("worker-0")
		var rests []time.Duration
		for life := 1; life < 20; life++ {
			_, err := w.service.Finish(w.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Vanished})
			if err != nil {
				t.Fatal(err)
			}
			if stored := w.trial(lease.Trial); stored.State != trial.Queued || stored.Losses != life || len(stored.LostOn) != 1 || stored.Host != "box" {
				t.Fatalf("after %d losses it is %s, lost on %v", life, stored.State, stored.LostOn)
			}
			worker := "worker-" + string(rune('a'+life))
			w.registerOn("box", worker)
			rests = append(rests, w.again(worker, lease.Trial))
			lease.LeaseEpoch++
		}
		for i, rest := range rests {
			want := min(5*time.Second<<(max(i, 1)-1), 5*time.Minute)
			if i == 0 {
				want = 0
			}
			if rest < want || rest > want+time.Second {
				t.Errorf("after loss %d it rested for %v, want %v", i+1, rest, want)
			}
		}
		reply, err := w.service.Finish(w.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Vanished})
		stored := w.trial(lease.Trial)
		if err != nil || reply.State != trial.Lost || stored.Failures != 0 || !strings.Contains(stored.Reason, "given up, as it was lost 20 times") {
			t.Errorf("after 20 losses it is %s with %d failures: %s, %v", reply.State, stored.Failures, stored.Reason, err)
		}
	})(t)
}

// TestATrialThatTakesThreeMachinesDownIsQuarantined names them.
func TestATrialThatTakesThreeMachinesDownIsQuarantined(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(append(oneRung, "trials: 27", "trials: 1")...)
		w.registerOn("one", "worker-0")
		lease := w.mustLease("worker-0")
		lose := func() trial.Trial {
			_, err := w.service.Finish(w.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Vanished})
			if err != nil {
				t.Fatal(err)
			}
			return w.trial(lease.Trial)
		}
		next := func(host, worker string) {
			w.registerOn(host, worker)
			w.again(worker, lease.Trial)
			lease.LeaseEpoch++
		}
		lose()
		next("two", "worker-1")
		w.mustReport(lease, 1) // it got somewhere: what was before does not count
		lose()
		next("three", "worker-2")
		lose()
		next("two", "worker-3")
		if stored := lose(); stored.State != trial.Queued || len(stored.LostOn) != 2 {
			t.Fatalf("lost on %v it is %s", stored.LostOn, stored.State)
		}
		next("four", "worker-4")
		stored := lose()
		if stored.State != trial.Lost || !strings.Contains(stored.Reason, "quarantined") || !strings.Contains(stored.Reason, "two, three, four") || stored.Failures != 0 {
			t.Errorf("it is %s: %s", stored.State, stored.Reason)
		}
	})(t)
}

// TestARestEndsALongPoll: a worker that waits gets the trial when it has rested.
func TestARestEndsALongPoll(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(append(oneRung, "trials: 27", "trials: 1")...)
		w.registerOn("one", "worker-0")
		lease := w.mustLease("worker-0")
		for range 2 {
			if _, err := w.service.Finish(w.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Vanished}); err != nil {
				t.Fatal(err)
			}
			if w.trial(lease.Trial).Losses == 2 {
				break
			}
			w.again("worker-0", lease.Trial)
			lease.LeaseEpoch++
		}
		began, got := time.Now(), make(chan *protocol.Lease, 1)
		go func() {
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-0", WaitSeconds: 60})
			if err != nil {
				t.Error(err)
			}
			got <- reply.Lease
		}()
		w.sleep(30 * time.Second)
		select {
		case leased := <-got:
			if leased == nil || leased.Trial != lease.Trial {
				t.Errorf("it got %+v", leased)
			}
		default:
			t.Errorf("it still waits %v after the loss", time.Since(began))
		}
	})(t)
}

// TestAVanishedWorkersResultCounts: what was measured before the worker died
// is a result, and no loss.
func TestAVanishedWorkersResultCounts(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(oneRung...)
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		w.mustReport(lease, 9)
		reply, err := w.finish(lease, protocol.Vanished)
		if err != nil || reply.State != trial.Completed || w.trial(lease.Trial).Losses != 0 {
			t.Errorf("it is %s after %d losses: %v", reply.State, w.trial(lease.Trial).Losses, err)
		}
		if _, err := w.finish(&protocol.Lease{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch + 1}, protocol.Vanished); !problem.Is(err, problem.LeaseLost) {
			t.Errorf("the end of a lease that never was is answered %v", err)
		}
	})(t)
}

// TestACheckpointThatCannotBeRestored goes on from the one before, and from the
// first epoch when there is none; no epoch counts twice.
func TestACheckpointThatCannotBeRestored(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(append(oneRung, "trials: 27", "trials: 1")...)
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		for epoch := 1; epoch <= 5; epoch++ {
			w.mustReport(lease, epoch)
			if epoch%2 == 1 {
				if err := w.checkpoint(lease, epoch); err != nil {
					t.Fatal(err)
				}
			}
		}
		spoilt := func(artifact string) protocol.FinishReply {
			reply, err := w.service.Finish(w.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Interrupted, Reason: "damaged", Unusable: artifact})
			if err != nil {
				t.Fatal(err)
			}
			lease = w.mustLease("worker-1")
			return reply
		}
		used, err := w.service.Referenced(w.ctx)
		if err != nil || len(used) != 2 || !used[artifactOf(5)] || !used[artifactOf(3)] {
			t.Errorf("the artifacts that are kept are %v, %v", used, err)
		}
		spoilt(artifactOf(1)) // not the one it had
		if lease.FirstEpoch != 6 {
			t.Fatalf("it goes on at epoch %d for the fault of another checkpoint", lease.FirstEpoch)
		}
		spoilt(artifactOf(5))
		if stored := w.trial(lease.Trial); lease.FirstEpoch != 4 || lease.Checkpoint.Epoch != 3 || stored.Failures != 0 || stored.Losses != 0 {
			t.Fatalf("it goes on at epoch %d from %+v, with %d failures", lease.FirstEpoch, lease.Checkpoint, stored.Failures)
		}
		w.mustReport(lease, 4) // which counts already
		spoilt(artifactOf(3))
		if lease.FirstEpoch != 1 || lease.Checkpoint != nil {
			t.Fatalf("it goes on at epoch %d from %+v", lease.FirstEpoch, lease.Checkpoint)
		}
		w.train(lease)
		if further := w.lease("worker-1"); further != nil {
			t.Errorf("there is another trial: %+v", further)
		}
		if view := w.view(created.ID); view.Progress.Epochs != 9 || view.Status != protocol.StudyCompleted {
			t.Errorf("the study is %s with %d epochs", view.Status, view.Progress.Epochs)
		}
		said := ""
		events, err := w.store.Events(w.ctx, created.ID, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events {
			if event.Kind == journal.TrialState && event.State == string(trial.Queued) {
				said += event.Reason + "\n"
			}
		}
		if !strings.Contains(said, "damaged; goes on from the checkpoint of epoch 3 instead") || !strings.Contains(said, "damaged; starts from its first epoch") {
			t.Errorf("the events say\n%s", said)
		}
	})(t)
}

// artifactOf is the artifact that the world commits after an epoch.
func artifactOf(epoch int) string {
	const digits = "0123456789abcdef"
	return strings.Repeat("0", 63) + digits[epoch:epoch+1]
}

// TestAStallIsAnEvent is told once, until the script reports again.
func TestAStallIsAnEvent(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(append(oneRung, "name: example", "name: example\nstall_seconds: 600\nstall_ends: true")...)
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		if lease.StallSeconds != 600 || !lease.StallEnds {
			t.Errorf("the lease says %g, %v", lease.StallSeconds, lease.StallEnds)
		}
		beat := func(quiet float64) {
			reply, err := w.service.Heartbeat(registry.WithIdempotency(w.ctx, "beat", "beat"), "worker-1", protocol.Heartbeat{
				Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, QuietSeconds: quiet}},
			})
			if err != nil || len(reply.Lost) > 0 {
				t.Fatalf("%+v, %v", reply, err)
			}
		}
		told := func() (count int) {
			events, err := w.store.Events(w.ctx, created.ID, 0, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range events {
				if strings.HasPrefix(event.Reason, "stalled: ") {
					count++
				}
			}
			return count
		}
		for step, one := range []struct {
			quiet   float64
			report  int
			told    int
			stalled bool
		}{
			{599, 0, 0, false}, {601, 0, 1, true}, {900, 0, 1, true}, {0, 1, 1, false}, {700, 0, 2, true}, {0, 2, 2, false},
		} {
			if one.report > 0 {
				w.mustReport(lease, one.report)
			}
			beat(one.quiet)
			stored := w.trial(lease.Trial)
			if told() != one.told || stored.Stalled != one.stalled || stored.Stalled != strings.HasPrefix(stored.Reason, "stalled: no report") || !stored.State.Held() {
				t.Errorf("step %d: told %d times, stalled %v, %s: %s", step, told(), stored.Stalled, stored.State, stored.Reason)
			}
		}
	})(t)
}

// TestAStallIsNotToldOfOthers: a worker that lost its trial says nothing of it,
// and a study that does not ask is told nothing.
func TestAStallIsNotToldOfOthers(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(oneRung...)
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		if _, err := w.service.Heartbeat(w.ctx, "worker-1", protocol.Heartbeat{Leases: []protocol.HeldLease{
			{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, QuietSeconds: 1e6},
			{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch - 1, QuietSeconds: 1e6},
		}}); err != nil {
			t.Fatal(err)
		}
		if stored := w.trial(lease.Trial); stored.Stalled {
			t.Errorf("it is stalled: %s", stored.Reason)
		}
	})(t)
}

// TestReportsInAnyOrderAreTheSameTrial reports the same epochs in every order,
// some twice and with other values the second time, under one lease: what counts
// is the set of them, by the first value of each.
func TestReportsInAnyOrderAreTheSameTrial(t *testing.T) {
	var want trial.Trial
	for number, order := range [][]int{{1, 2, 3, 4, 5}, {5, 4, 3, 2, 1}, {3, 1, 5, 2, 4}, {1, 1, 2, 2, 3, 4, 4, 5, 5, 1}, {2, 5, 2, 1, 4, 3, 5, 3}} {
		in(func(t *testing.T, w *world) {
			w.create(oneRung...)
			w.register("worker-1")
			lease := w.mustLease("worker-1")
			seen := map[int]bool{}
			for _, epoch := range order {
				value := accuracy(lease, epoch)
				if seen[epoch] {
					value = 1e6
				}
				seen[epoch] = true
				_, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{
					LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: trial.Float(epoch), Metrics: map[string]trial.Float{"accuracy": value},
				})
				if err != nil {
					t.Fatalf("order %v: %v", order, err)
				}
			}
			got := w.trial(lease.Trial)
			got.Created, got.Started = time.Time{}, nil
			if number == 0 {
				want = got
				return
			}
			if got.Epochs != want.Epochs || got.LastEpoch != want.LastEpoch || got.Seconds != want.Seconds || got.Last["accuracy"] != want.Last["accuracy"] || got.State != want.State {
				t.Errorf("in the order %v it is %+v, want %+v", order, got, want)
			}
			reports, err := w.store.Reports(w.ctx, lease.Trial)
			if err != nil || len(reports) != 5 {
				t.Errorf("%d reports, %v", len(reports), err)
			}
			for _, report := range reports {
				if report.Metrics["accuracy"] != accuracy(lease, report.Epoch) {
					t.Errorf("epoch %d has %v", report.Epoch, report.Metrics)
				}
			}
		})(t)
	}
}
