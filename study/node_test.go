package study_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

const noSuchCommand = "the command cannot be started: train: executable file not found in $PATH"

// fail ends a lease as a worker does whose command failed.
func (w *world) fail(lease *protocol.Lease, reason string) protocol.FinishReply {
	w.t.Helper()
	reply, err := w.service.Finish(w.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.CommandFailed, Reason: reason})
	if err != nil {
		w.t.Fatal(err)
	}
	return reply
}

// excluded are the studies that the worker is excluded from.
func (w *world) excluded(worker string) map[string]protocol.Exclusion {
	w.t.Helper()
	for _, one := range w.service.Workers(w.ctx) {
		if one.ID == worker {
			return one.Excluded
		}
	}
	w.t.Fatalf("worker %s is not registered", worker)
	return nil
}

func (w *world) trials(id string) []trial.Trial {
	w.t.Helper()
	list, err := w.store.Trials(w.ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// six is a study of six trials of nine epochs.
var six = append(oneRung, "trials: 27", "trials: 6")

// TestABrokenWorkerEatsNoStudy has one fail whatever it is given at once, as one with
// an empty PATH does: two trials fail alike, no retry is used, and it gets nothing more
// of the study, also behind a restart of the server, until some time is over.
func TestABrokenWorkerEatsNoStudy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(six...)
		w.register("sound-0001", "broken-001")
		busy := w.mustLease("sound-0001")
		reply := w.fail(w.mustLease("broken-001"), noSuchCommand)
		if reply.State != trial.Queued || reply.Excluded != nil {
			t.Fatalf("after one failure: %+v", reply)
		}
		second := w.mustLease("broken-001")
		if second.Number != 2 {
			t.Errorf("it is given trial %d again", second.Number)
		}
		reply = w.fail(second, noSuchCommand)
		if reply.State != trial.Queued || reply.Excluded == nil || !strings.Contains(reply.Excluded.Reason, "trials 1, 2") || !strings.Contains(reply.Excluded.Reason, "not found in $PATH") {
			t.Fatalf("after two failures: %+v", reply)
		}
		if third := w.lease("broken-001"); third != nil {
			t.Fatalf("it is given trial %d all the same", third.Number)
		}
		if one := w.excluded("broken-001")[created.ID]; !one.Until.Equal(one.Since.Add(10*time.Minute)) || len(w.excluded("sound-0001")) > 0 {
			t.Errorf("it is excluded from %v to %v, the other one from %v", one.Since, one.Until, w.excluded("sound-0001"))
		}
		waits := w.view(created.ID).Waits
		if len(waits) != 1 || waits[0].Cause != protocol.WaitExcluded || !strings.Contains(waits[0].Reason, "broken-001") {
			t.Errorf("the study says that it waits for %+v", waits)
		}
		w.train(busy)

		w.start()
		w.register("sound-0001", "broken-001")
		if again := w.lease("broken-001"); again != nil || len(w.excluded("broken-001")) != 1 {
			t.Errorf("behind a restart it is given %+v", again)
		}
		w.sleep(10*time.Minute + time.Second)
		w.register("sound-0001") // was silent for so long
		again := w.mustLease("broken-001")
		reply = w.fail(again, noSuchCommand)
		if reply.Excluded == nil || !reply.Excluded.Until.Equal(reply.Excluded.Since.Add(20*time.Minute)) {
			t.Errorf("the second time: %+v", reply.Excluded)
		}
		for lease := w.lease("sound-0001"); lease != nil; lease = w.lease("sound-0001") {
			w.train(lease)
		}
		for _, one := range w.trials(created.ID) {
			if one.State != trial.Completed || one.Failures != 0 || len(one.FailedStarts) != 0 {
				t.Errorf("trial %d is %s with %d failures: %s", one.Number, one.State, one.Failures, one.Reason)
			}
		}
		if view := w.view(created.ID); view.Status != protocol.StudyCompleted {
			t.Errorf("the study is %s", view.Status)
		}
		if left, err := w.store.PoolEntries(w.ctx, "exclusion"); err != nil || len(left) != 1 {
			t.Errorf("stored are %d exclusions, %v", len(left), err)
		}
		w.sleep(25 * time.Hour)
		if left, err := w.store.PoolEntries(w.ctx, "exclusion"); err != nil || len(left) != 0 {
			t.Errorf("a day later %d exclusions are stored, %v", len(left), err)
		}
	})(t)
}

// TestAWorkerThatIsStartedAgainIsTriedAgain: if it fails as before, it is excluded for
// twice as long. What another one of its name and machine does says nothing of it.
func TestAWorkerThatIsStartedAgainIsTriedAgain(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(six...)
		w.registerOn("rack", "sound-0001")
		register := func(id string) {
			_, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: "gpu", Slots: 1, Machine: protocol.Machine{Host: "gpu"}})
			if err != nil {
				t.Fatal(err)
			}
		}
		register("gpu-life-1")
		w.fail(w.mustLease("gpu-life-1"), noSuchCommand)
		w.fail(w.mustLease("gpu-life-1"), noSuchCommand)
		register("gpu-life-2")
		lease := w.mustLease("gpu-life-2")
		if lease.Number < 2 {
			t.Errorf("it is given trial %d, which it failed to start", lease.Number)
		}
		w.fail(lease, noSuchCommand)
		reply := w.fail(w.mustLease("gpu-life-2"), noSuchCommand)
		if reply.Excluded == nil || !reply.Excluded.Until.Equal(reply.Excluded.Since.Add(20*time.Minute)) {
			t.Errorf("still broken it is excluded: %+v", reply.Excluded)
		}
		register("gpu-life-3")
		lease = w.mustLease("gpu-life-3")
		w.mustReport(lease, 1)
		if excluded := w.excluded("gpu-life-2"); len(excluded) != 1 {
			t.Errorf("another worker reports, and the broken one is excluded from %v", excluded)
		}
		for _, one := range w.trials(created.ID) {
			if one.Failures != 0 {
				t.Errorf("trial %d has %d failures", one.Number, one.Failures)
			}
		}
	})(t)
}

// TestWorkersOfOneNameAreToldApart: two workers of a machine have its name where nobody
// gives them another one. The broken one is excluded, the other one runs the study.
func TestWorkersOfOneNameAreToldApart(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(six...)
		for _, id := range []string{"sound-0001", "broken-001"} {
			_, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: "desk", Slots: 1, Machine: protocol.Machine{Host: "desk"}})
			if err != nil {
				t.Fatal(err)
			}
		}
		for lease := w.mustLease("sound-0001"); lease != nil; lease = w.lease("sound-0001") {
			if broken := w.lease("broken-001"); broken != nil {
				w.fail(broken, noSuchCommand)
			}
			w.train(lease)
		}
		if len(w.excluded("broken-001")) != 1 || len(w.excluded("sound-0001")) != 0 {
			t.Errorf("excluded are %v and %v", w.excluded("broken-001"), w.excluded("sound-0001"))
		}
		for _, one := range w.trials(created.ID) {
			if one.State != trial.Completed || one.Failures != 0 {
				t.Errorf("trial %d is %s with %d failures: %s", one.Number, one.State, one.Failures, one.Reason)
			}
		}
	})(t)
}

// TestATrialThatFailsAlikeOnTwoMachinesIsItsOwnFailure has every second configuration
// fail at the script's first line, wherever: those trials fail with the retries they
// have, the others complete, and no worker is blamed at the end.
func TestATrialThatFailsAlikeOnTwoMachinesIsItsOwnFailure(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(append(six[:len(six)-1:len(six)-1], "trials: 12")...)
		w.register("worker-one", "worker-two")
		tries := map[int]int{}
		for idle := 0; idle < 4; {
			for _, worker := range []string{"worker-one", "worker-one", "worker-two"} { // one is faster
				lease := w.lease(worker)
				if lease == nil {
					idle++
					continue
				}
				idle = 0
				tries[lease.Number]++
				if lease.Number%4 < 2 {
					w.fail(lease, fmt.Sprintf("exit code 1: ValueError: %v is too large\nstandard error ended with:\nTraceback", lease.Params["x"]))
				} else {
					w.train(lease)
				}
			}
		}
		for _, one := range w.trials(created.ID) {
			want, most := trial.Completed, 1
			if one.Number%4 < 2 {
				want, most = trial.Failed, 2
			}
			if one.State != want || tries[one.Number] != most || one.State == trial.Failed && one.Failures != 2 {
				t.Errorf("trial %d is %s after %d tries with %d failures: %s", one.Number, one.State, tries[one.Number], one.Failures, one.Reason)
			}
		}
		for _, worker := range []string{"worker-one", "worker-two"} {
			if excluded := w.excluded(worker); len(excluded) > 0 {
				t.Errorf("%s is excluded: %v", worker, excluded)
			}
		}
		if left, err := w.store.PoolEntries(w.ctx, "exclusion"); err != nil || len(left) != 0 {
			t.Errorf("%d exclusions are stored, %v", len(left), err)
		}
	})(t)
}

// TestAWrongCommandFailsAtOnce: with one worker as ever, with several after each trial
// was tried on two, and no retry makes it wait for anything.
func TestAWrongCommandFailsAtOnce(t *testing.T) {
	for workers := 1; workers <= 3; workers++ {
		for _, retries := range []string{"0", "1"} {
			t.Run(fmt.Sprintf("%d workers, %s retries", workers, retries), in(func(t *testing.T, w *world) {
				created := w.create(append(six[:len(six)-1:len(six)-1], "trials: 6, failures: 3", "name: example", "name: example\nretry: {failures: "+retries+"}")...)
				began, tries := time.Now(), 0
				for i := range workers {
					w.register(fmt.Sprintf("worker-%d0", i))
				}
				for idle := 0; idle <= workers; {
					for i := range workers {
						if lease := w.lease(fmt.Sprintf("worker-%d0", i)); lease == nil {
							idle++
						} else {
							idle = 0
							tries++
							w.fail(lease, fmt.Sprintf("%s is in no folder of the PATH on worker worker-%d0 (/opt/of/%d/bin:/bin)", noSuchCommand, i, i))
						}
					}
				}
				view := w.view(created.ID)
				if view.Status != protocol.StudyFailed || !strings.Contains(view.Reason, noSuchCommand) || !time.Now().Equal(began) {
					t.Errorf("the study is %s: %s", view.Status, view.Reason)
				}
				most := 3 * (len(retries) + map[string]int{"0": 0, "1": 1}[retries])
				if workers > 1 {
					most = 6 * 3
				}
				if tries > most {
					t.Errorf("it took %d tries", tries)
				}
			}))
		}
	}
}

// TestTheLastWorkerIsTriedAgain has the sound worker go when the other one is excluded:
// the study says what it waits for, and fails by itself when that is over.
func TestTheLastWorkerIsTriedAgain(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(append(six[:len(six)-1:len(six)-1], "trials: 2")...)
		w.register("sound-0001", "broken-001")
		w.fail(w.mustLease("broken-001"), noSuchCommand)
		w.fail(w.mustLease("broken-001"), noSuchCommand)
		if err := w.service.RemoveWorker(w.ctx, "sound-0001"); err != nil {
			t.Fatal(err)
		}
		if waits := w.view(created.ID).Waits; len(waits) != 1 || waits[0].Cause != protocol.WaitExcluded {
			t.Errorf("it waits for %+v", waits)
		}
		if lease := w.lease("broken-001"); lease != nil {
			t.Errorf("it is given trial %d", lease.Number)
		}
		w.sleep(10*time.Minute + time.Second)
		w.register("broken-001")
		for range 2 {
			w.fail(w.mustLease("broken-001"), noSuchCommand)
		}
		if over := w.lease("broken-001"); over != nil {
			t.Errorf("it is given trial %d", over.Number)
		}
		if view := w.view(created.ID); !view.Status.Over() || view.Progress.Trials[trial.Failed] != 2 {
			t.Errorf("it is %s with %v", view.Status, view.Progress.Trials)
		}
	})(t)
}

// TestAWorkerThatSaysThatItCannotRunIsExcluded: without any failure of the trials'.
func TestAWorkerThatSaysThatItCannotRunIsExcluded(t *testing.T) {
	for _, c := range []struct {
		outcome protocol.Outcome
		reason  string
	}{
		{protocol.Interrupted, protocol.CannotRun + "make the sandbox: operation not permitted"},
		{protocol.Vanished, protocol.GPUFailed + " (exit code 1): CUDA error: uncorrectable ECC error encountered"},
	} {
		t.Run(string(c.outcome), in(func(t *testing.T, w *world) {
			created := w.create(six...)
			w.register("sound-0001", "broken-001")
			for range 2 {
				lease := w.mustLease("broken-001")
				_, err := w.service.Finish(w.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: c.outcome, Reason: c.reason})
				if err != nil {
					t.Fatal(err)
				}
			}
			if one := w.excluded("broken-001")[created.ID]; !strings.Contains(one.Reason, c.reason) || w.lease("broken-001") != nil {
				t.Errorf("it is excluded: %q", one.Reason)
			}
			for range 2 {
				w.train(w.mustLease("sound-0001"))
			}
			for _, one := range w.trials(created.ID) {
				if one.State != trial.Completed || one.Failures != 0 {
					t.Errorf("trial %d is %s with %d failures", one.Number, one.State, one.Failures)
				}
			}
		}))
	}
}

// TestTheOnlyWorkerThatCannotRunIsNamed: nobody else could try, so it is not excluded,
// and the study says what it waits for.
func TestTheOnlyWorkerThatCannotRunIsNamed(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(six...)
		w.register("broken-001")
		for range 3 {
			lease := w.mustLease("broken-001")
			_, err := w.service.Finish(w.ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.Interrupted, Reason: protocol.CannotRun + "make the sandbox: operation not permitted"})
			if err != nil {
				t.Fatal(err)
			}
			waits := w.view(created.ID).Waits
			if len(waits) != 1 || !strings.Contains(waits[0].Reason, "worker broken-001 gave trial 0 back: this worker cannot run it: make the sandbox") || len(w.excluded("broken-001")) > 0 {
				t.Fatalf("it waits for %+v", waits)
			}
		}
	})(t)
}

// TestAnExclusionThatWasNotStoredIsNone lets the store refuse the change that excludes.
func TestAnExclusionThatWasNotStoredIsNone(t *testing.T) {
	in(func(t *testing.T, w *world) {
		refusing := &refusing{Store: w.store}
		w.store = refusing
		w.start()
		created := w.create(six...)
		w.register("sound-0001", "broken-001")
		w.fail(w.mustLease("broken-001"), noSuchCommand)
		second := w.mustLease("broken-001")
		refusing.refuse = true
		_, err := w.service.Finish(w.ctx, second.Trial, protocol.FinishRequest{LeaseEpoch: second.LeaseEpoch, Outcome: protocol.CommandFailed, Reason: noSuchCommand})
		refusing.refuse = false
		if err == nil || len(w.excluded("broken-001")) > 0 {
			t.Fatalf("answered %v, and excluded from %v", err, w.excluded("broken-001"))
		}
		if one := w.trials(created.ID)[second.Number]; one.State != trial.Leased {
			t.Errorf("the trial is %s", one.State)
		}
	})(t)
}
