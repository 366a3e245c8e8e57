package study_test

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// told makes a study without a command: only who asks for it by its name gets a trial.
func (w *world) told() protocol.StudyView {
	w.t.Helper()
	return w.create("command: [train]", "description: ask and tell", "epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 9, data_fraction: 1")
}

// ask asks for a trial of the study and does not wait.
func (w *world) ask(worker, study string) *protocol.Lease {
	w.t.Helper()
	reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: worker, Study: study})
	if err != nil {
		w.t.Fatal(err)
	}
	return reply.Lease
}

func (w *world) leaves(worker string) {
	w.t.Helper()
	if err := w.service.RemoveWorker(w.ctx, worker); err != nil {
		w.t.Fatal(err)
	}
}

// is checks a study's status, and that its clock stands where it does not run.
func (w *world) is(id string, want protocol.StudyStatus) protocol.StudyView {
	w.t.Helper()
	view := w.view(id)
	if view.Status != want {
		w.t.Fatalf("the study is %s: %s\nwant %s", view.Status, view.Reason, want)
	}
	if want == protocol.StudyPaused {
		w.sleep(time.Minute)
		if later := w.view(id).Progress.ElapsedSeconds; later != view.Progress.ElapsedSeconds {
			w.t.Errorf("its time goes on: %g s, then %g s", view.Progress.ElapsedSeconds, later)
		}
	}
	return view
}

// TestAStudyWithoutABoundSaysNone: the most that a study file can say is no number of
// trials to wait for.
func TestAStudyWithoutABoundSaysNone(t *testing.T) {
	in(func(t *testing.T, w *world) {
		view := w.create("trials: 27", "trials: 1000000")
		if most := view.Progress.MaxTrials; most != 0 {
			t.Errorf("it is said to have %d trials", most)
		}
	})(t)
}

const nobodyAsks = "no process asks for its trials; it goes on when one does"

// TestAStudyRestsWhileNobodyAsksForItsTrials: with the last process that works on it
// its time stops, and with the next one it goes on.
func TestAStudyRestsWhileNobodyAsksForItsTrials(t *testing.T) {
	in(func(t *testing.T, w *world) {
		id := w.told().ID
		w.register("process-1", "process-2")
		w.train(w.ask("process-1", id))
		w.train(w.ask("process-2", "example")) // by its name
		w.leaves("process-1")
		w.is(id, protocol.StudyRunning) // the other one works on it
		w.leaves("process-2")
		if view := w.is(id, protocol.StudyPaused); view.Reason != nobodyAsks {
			t.Errorf("the reason is %q", view.Reason)
		}
		w.start() // and is so after a restart
		w.is(id, protocol.StudyPaused)
		w.register("process-3")
		if w.ask("process-3", id) == nil {
			t.Fatal("who asks gets nothing")
		}
		w.is(id, protocol.StudyRunning)
	})(t)
}

// TestAStudyRestsWhenWhoAskedIsSilent as a process that was killed is: its trial waits
// for the next one.
func TestAStudyRestsWhenWhoAskedIsSilent(t *testing.T) {
	in(func(t *testing.T, w *world) {
		id := w.told().ID
		w.register("process-1")
		lost := w.ask("process-1", id)
		w.sleep(50 * time.Second)
		w.is(id, protocol.StudyRunning)
		w.sleep(75 * time.Second)
		w.is(id, protocol.StudyPaused)
		w.register("process-2")
		if again := w.ask("process-2", id); again == nil || again.Trial != lost.Trial {
			t.Errorf("the next process got %+v, want trial %s", again, lost.Trial)
		}
		w.is(id, protocol.StudyRunning)
	})(t)
}

// TestWhoThinksBetweenTwoTrialsIsNotGone: a process that is alive may take its time.
func TestWhoThinksBetweenTwoTrialsIsNotGone(t *testing.T) {
	in(func(t *testing.T, w *world) {
		id := w.told().ID
		w.register("process-1")
		w.train(w.ask("process-1", id))
		for range 30 {
			w.sleep(10 * time.Second)
			if _, err := w.service.Heartbeat(w.ctx, "process-1", protocol.Heartbeat{}); err != nil {
				t.Fatal(err)
			}
		}
		w.is(id, protocol.StudyRunning)
	})(t)
}

// TestWhatAUserPausedNobodyWakes by asking, and a user may pause what is at rest.
func TestWhatAUserPausedNobodyWakes(t *testing.T) {
	in(func(t *testing.T, w *world) {
		id := w.told().ID
		w.register("process-1")
		w.train(w.ask("process-1", id))
		w.leaves("process-1")
		w.is(id, protocol.StudyPaused)
		view, err := w.service.Pause(w.ctx, id)
		if err != nil || view.Reason != "paused by a user" {
			t.Fatalf("%q, %v", view.Reason, err)
		}
		w.register("process-2")
		if lease := w.ask("process-2", id); lease != nil {
			t.Errorf("a study that a user paused gave %+v", lease)
		}
		w.is(id, protocol.StudyPaused)
		if _, err := w.service.Resume(w.ctx, id); err != nil {
			t.Fatal(err)
		}
		if w.ask("process-2", id) == nil {
			t.Error("a study that a user resumed gives nothing")
		}
	})(t)
}

// TestAStudyWithACommandWaitsForWorkers, which come without being asked for.
func TestAStudyWithACommandWaitsForWorkers(t *testing.T) {
	in(func(t *testing.T, w *world) {
		id := w.create().ID
		w.register("worker-1")
		w.train(w.ask("worker-1", id))
		w.leaves("worker-1")
		w.sleep(5 * time.Minute)
		w.is(id, protocol.StudyRunning)
	})(t)
}

// TestAStudyThatNobodyHasAskedForRests once whoever made it had the time to ask.
func TestAStudyThatNobodyHasAskedForRests(t *testing.T) {
	in(func(t *testing.T, w *world) {
		id := w.told().ID
		w.sleep(50 * time.Second)
		w.is(id, protocol.StudyRunning)
		w.sleep(20 * time.Second)
		w.is(id, protocol.StudyPaused)
	})(t)
}
