package study_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// extend gives the study more.
func (w *world) extend(id string, more protocol.ExtendRequest) protocol.StudyView {
	w.t.Helper()
	view, err := w.service.Extend(w.ctx, id, more)
	if err != nil {
		w.t.Fatal(err)
	}
	return view
}

// trainRest trains until there is nothing to lease, and says the numbers of the trials.
func (w *world) trainRest(worker string) (numbers []int) {
	w.t.Helper()
	for lease := w.lease(worker); lease != nil; lease = w.lease(worker) {
		numbers = append(numbers, lease.Number)
		w.train(lease)
	}
	return numbers
}

// states are those of the study's trials, by number.
func (w *world) states(id string) (states []trial.State) {
	w.t.Helper()
	trials, err := w.store.Trials(w.ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, t := range trials {
		states = append(states, t.State)
	}
	return states
}

func TestAnExtendedStudyGoesOnWithItsSearch(t *testing.T) {
	in(func(t *testing.T, w *world) {
		whole := w.create("name: example", "name: whole", "method: bohb", "method: sobol", "trials: 27", "trials: 12")
		small := w.create("method: bohb", "method: sobol", "trials: 27", "trials: 5")
		w.register("worker-1")
		for range 8 {
			w.train(w.mustLease("worker-1"))
		}
		if err := w.service.Close(w.ctx); err != nil { // a snapshot of what was decided under the old limits
			t.Fatal(err)
		}
		w.trainRest("worker-1")
		before := w.view(small.ID)
		if before.Status != protocol.StudyCompleted || before.Progress.Created != 5 || before.Extended {
			t.Fatalf("the small study is %s with %d trials", before.Status, before.Progress.Created)
		}
		w.start() // a restart between the end and the extension
		w.register("worker-1")
		w.sleep(time.Hour)

		view := w.extend(small.ID, protocol.ExtendRequest{Trials: 7})
		if view.Status != protocol.StudyRunning || view.Definition.Stop.Trials != 12 || !view.Extended || view.Finished != nil || view.Reason != "extended by a user" {
			t.Fatalf("the extended study is %+v", view)
		}
		if !slices.Contains(w.states(small.ID), trial.Paused) {
			t.Errorf("nobody may be promoted any more: %v", w.states(small.ID))
		}
		w.train(w.mustLease("worker-1"))
		w.start() // and one behind it
		w.register("worker-1")
		w.trainRest("worker-1")
		after := w.view(small.ID)
		if after.Status != protocol.StudyCompleted || after.Progress.Created != 12 || after.Definition.Stop.Trials != 12 {
			t.Errorf("the extended study ended %s with %d trials (%s)", after.Status, after.Progress.Created, after.Reason)
		}
		if best, was := after.Progress.Best, before.Progress.Best; best.Rung < was.Rung || best.Value < was.Value && best.Rung == was.Rung {
			t.Errorf("the best was %+v and is %+v", was, best)
		}
		if span := after.Progress.ElapsedSeconds; span > 60 {
			t.Errorf("the hour between counts: it was running for %v s", span)
		}
		for number := range 12 {
			a, b := w.trial(trial.ID(small.ID+"-"+strconv.Itoa(number))), w.trial(trial.ID(whole.ID+"-"+strconv.Itoa(number)))
			if a.Configuration.Key() != b.Configuration.Key() {
				t.Errorf("trial %d has %s, and %s in a study that was as large from the start", number, a.Configuration.Key(), b.Configuration.Key())
			}
		}
		w.reportsReplayed(small.ID)
		stored, err := w.store.Study(w.ctx, small.ID)
		if err != nil || stored.Definition.Stop.Trials != 5 || stored.Stop.Trials != 12 {
			t.Errorf("its definition has %d trials, %+v beside it: %v", stored.Definition.Stop.Trials, stored.Stop, err)
		}
	})(t)
}

func TestTrialsThatTheEndCutOffGoOn(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		w.register("worker-1", "worker-2")
		for range 2 { // paused ones
			w.train(w.mustLease("worker-1"))
		}
		out, measured := w.mustLease("worker-1"), w.mustLease("worker-2")
		for epoch := measured.FirstEpoch; epoch <= measured.Budget.Epochs; epoch++ {
			w.mustReport(measured, epoch) // and does not say goodbye
		}
		if _, err := w.service.Stop(w.ctx, created.ID); err != nil {
			t.Fatal(err)
		}
		if left := w.lease("worker-2"); left != nil {
			t.Fatalf("a study that was stopped gave %+v", left)
		}
		w.extend(created.ID, protocol.ExtendRequest{Trials: 3})
		states := w.states(created.ID)
		if want := []trial.State{trial.Paused, trial.Paused, trial.Queued, trial.Paused}; !slices.Equal(states, want) {
			t.Fatalf("the trials are %v, want %v", states, want)
		}
		// Who had it before may not go on with it.
		if _, err := w.report(out, 1); !problem.Is(err, problem.LeaseLost) {
			t.Errorf("a report under the lease of before was answered %v", err)
		}
		if _, err := w.finish(measured, protocol.BudgetReached); !problem.Is(err, problem.LeaseLost) {
			t.Errorf("the end of a lease of before was answered %v", err)
		}
		again := w.mustLease("worker-2")
		if again.Trial != out.Trial || again.LeaseEpoch != out.LeaseEpoch+1 {
			t.Errorf("the next lease is %+v", again)
		}
		w.train(again)
		w.trainRest("worker-2")
		view := w.view(created.ID)
		if view.Progress.Created != 7 || view.Status != protocol.StudyCompleted {
			t.Errorf("the study is %s with %d trials", view.Status, view.Progress.Created)
		}
		w.reportsReplayed(created.ID)
		w.sleep(2 * time.Minute) // nothing of the old leases comes back
		for _, one := range w.service.Workers(w.ctx) {
			if len(one.Trials) > 0 {
				t.Errorf("%s still holds %v", one.ID, one.Trials)
			}
		}
	})(t)
}

func TestARunningStudyIsExtendedFromItsLimits(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("trials: 27", "trials: 2, seconds: 100, joules: 1000")
		w.register("worker-1")
		w.train(w.mustLease("worker-1"))
		view := w.extend(created.ID, protocol.ExtendRequest{Trials: 2, Seconds: 50, Joules: 0.5})
		if stop := view.Definition.Stop; stop.Trials != 4 || stop.Seconds != 150 || stop.Joules != 1000.5 || view.Status != protocol.StudyRunning {
			t.Errorf("it is %s with %+v", view.Status, stop)
		}
		if _, err := w.service.Pause(w.ctx, created.ID); err != nil {
			t.Fatal(err)
		}
		if view := w.extend(created.ID, protocol.ExtendRequest{Trials: 1}); view.Status != protocol.StudyPaused || view.Definition.Stop.Trials != 5 {
			t.Errorf("a paused study is %s with %+v", view.Status, view.Definition.Stop)
		}
		w.start() // all of it is stored
		w.register("worker-1")
		if _, err := w.service.Resume(w.ctx, created.ID); err != nil {
			t.Fatal(err)
		}
		w.trainRest("worker-1")
		if view := w.view(created.ID); view.Progress.Created != 5 || view.Status != protocol.StudyCompleted {
			t.Errorf("it is %s with %d trials", view.Status, view.Progress.Created)
		}
		w.reportsReplayed(created.ID)
	})(t)
}

func TestAStudyWhoseTimeIsUpGetsMoreOfIt(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("trials: 27", "trials: 27, seconds: 30")
		w.register("worker-1")
		w.train(w.mustLease("worker-1"))
		w.mustLease("worker-1")
		w.sleep(40 * time.Second)
		if view := w.view(created.ID); view.Status != protocol.StudyCompleted {
			t.Fatalf("it is %s", view.Status)
		}
		_, err := w.service.Extend(w.ctx, created.ID, protocol.ExtendRequest{Trials: 3})
		if !problem.Is(err, problem.Conflict) || !strings.Contains(err.Error(), "30 seconds") || !strings.Contains(err.Error(), "stop.seconds") {
			t.Errorf("more trials without time were answered %v", err)
		}
		w.sleep(time.Minute)
		view := w.extend(created.ID, protocol.ExtendRequest{Seconds: 20})
		if left := view.Definition.Stop.Seconds - view.Progress.ElapsedSeconds; math.Abs(left-20) > 0.001 {
			t.Errorf("it has %v s left", left)
		}
		w.train(w.mustLease("worker-1"))
		w.mustLease("worker-1")
		w.sleep(30 * time.Second)
		if view := w.view(created.ID); view.Status != protocol.StudyCompleted || !strings.Contains(view.Reason, "is up") {
			t.Errorf("it is %s: %s", view.Status, view.Reason)
		}
	})(t)
}

func TestWhatCannotBeExtended(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.register("worker-1")
		running := w.create("name: example", "name: running", "command: [train]\n", "")
		grid := w.create("name: example", "name: grid", "method: bohb", "method: grid, grid_points: 3", "stop: {trials: 27}", "stop: {trials: 9}")
		w.trainRest("worker-1")
		repeated := w.create("name: example", "name: repeated", "seed: 7", "seed: 7, repeats: {trials: 1, times: 2}", "trials: 27", "trials: 3")
		w.trainRest("worker-1")
		full := w.create("name: example", "name: full", "trials: 27", "trials: 3")
		w.trainRest("worker-1")
		for _, c := range []struct {
			id   string
			more protocol.ExtendRequest
			code problem.Code
			says string
		}{
			{running.ID, protocol.ExtendRequest{}, problem.Invalid, "must be above 0"},
			{running.ID, protocol.ExtendRequest{Trials: -1}, problem.Invalid, "above 0"},
			{running.ID, protocol.ExtendRequest{Trials: 1, Seconds: 5}, problem.Invalid, "has no stop.seconds"},
			{running.ID, protocol.ExtendRequest{Trials: 1_000_000}, problem.Invalid, "below 1000000"},
			{grid.ID, protocol.ExtendRequest{Trials: 5}, problem.Conflict, "nothing left to try"},
			{repeated.ID, protocol.ExtendRequest{Trials: 5}, problem.Conflict, "search.repeats"},
			{full.ID, protocol.ExtendRequest{Seconds: 5}, problem.Conflict, "give it more trials too"},
			{"nobody", protocol.ExtendRequest{Trials: 5}, problem.NotFound, "nobody"},
		} {
			before := w.log(c.id)
			_, err := w.service.Extend(w.ctx, c.id, c.more)
			if !problem.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v of %s was answered %v", c.more, c.id, err)
			}
			if w.log(c.id) != before {
				t.Errorf("%+v of %s was refused and changed something", c.more, c.id)
			}
		}
		for _, view := range []protocol.StudyView{w.view(grid.ID), w.view(repeated.ID), w.view(full.ID)} {
			if view.Status != protocol.StudyCompleted || view.Extended {
				t.Errorf("%s is %s", view.Name, view.Status)
			}
		}
		w.extend(full.ID, protocol.ExtendRequest{Trials: 1}) // what was refused does not stand in its way
	})(t)
}

// log is how many events the study has.
func (w *world) log(id string) int {
	w.t.Helper()
	events, err := w.store.Events(w.ctx, id, 0, 1<<30)
	if err != nil && !problem.Is(err, problem.NotFound) {
		w.t.Fatal(err)
	}
	return len(events)
}

func TestFailedTrialsAreTriedAgainOnce(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("min: 1, max: 9", "min: 3, max: 27", "trials: 27", "trials: 4", "stop: {", "retry: {failures: 0}\nstop: {")
		w.register("worker-1")
		again := protocol.ExtendRequest{RetryFailed: true}
		if _, err := w.service.Extend(w.ctx, created.ID, again); !problem.Is(err, problem.Conflict) || !strings.Contains(err.Error(), "none failed") {
			t.Errorf("a retry of nothing was answered %v", err)
		}
		fail := func(lease *protocol.Lease) {
			w.mustReport(lease, 1) // else its worker would be suspected
			if reply, err := w.finish(lease, protocol.CommandFailed); err != nil || reply.State != trial.Failed {
				t.Fatalf("a failure was answered %+v, %v", reply, err)
			}
		}
		first := w.mustLease("worker-1")
		fail(first)
		if view := w.extend(created.ID, again); view.Definition.Stop.Trials != 5 || view.Progress.Enqueued != 1 {
			t.Errorf("while it runs, %d of %d trials wait", view.Progress.Enqueued, view.Definition.Stop.Trials)
		}
		w.start() // what waits is stored
		w.register("worker-1")
		retry := w.mustLease("worker-1")
		if stored := w.trial(retry.Trial); stored.RetryOf == nil || *stored.RetryOf != first.Number || stored.Configuration.Key() != first.Params.Key() || stored.Checkpoint != nil {
			t.Errorf("the retry is %+v", stored)
		}
		fail(retry)
		third := w.mustLease("worker-1")
		fail(third)
		w.trainRest("worker-1")
		if view := w.view(created.ID); view.Status != protocol.StudyCompleted || view.Progress.Trials[trial.Failed] != 3 {
			t.Fatalf("the study is %s with %v", view.Status, view.Progress.Trials)
		}
		view := w.extend(created.ID, again)
		if view.Status != protocol.StudyRunning || view.Progress.Enqueued != 2 || view.Definition.Stop.Trials != 7 {
			t.Errorf("it is %s, %d of %d trials wait", view.Status, view.Progress.Enqueued, view.Definition.Stop.Trials)
		}
		w.trainRest("worker-1")
		var of []int
		trials, err := w.store.Trials(w.ctx, created.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range trials[5:] {
			of = append(of, *one.RetryOf)
		}
		if want := []int{retry.Number, third.Number}; !slices.Equal(of, want) {
			t.Errorf("the retries are of %v, want %v", of, want)
		}
		if _, err := w.service.Extend(w.ctx, created.ID, again); !problem.Is(err, problem.Conflict) {
			t.Errorf("a second retry of the same was answered %v", err)
		}
		w.reportsReplayed(created.ID)
	})(t)
}
