package study_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
)

func (w *world) enqueue(ref string, values ...float64) (protocol.EnqueueReply, error) {
	w.t.Helper()
	var wanted protocol.EnqueueRequest
	for _, x := range values {
		wanted.Configurations = append(wanted.Configurations, space.Configuration{"x": space.Float(x)})
	}
	return w.service.Enqueue(w.ctx, ref, wanted)
}

// replays proves that the study's log gives the same decisions to a new search.
func (w *world) replays(view protocol.StudyView) {
	w.t.Helper()
	events, err := w.store.Events(w.ctx, view.ID, 0, 10000)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := session.Replay(view.Definition, events); err != nil {
		w.t.Fatal(err)
	}
}

func TestEnqueuedConfigurationsGoFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		view := w.create("seed: 7", "seed: 7, initial: [{x: 0.25}, {}]")
		if view.Progress.Enqueued != 2 {
			t.Fatalf("%d configurations wait after the creation, want 2", view.Progress.Enqueued)
		}
		w.register("worker-1")
		reply, err := w.enqueue("example", 0.5, 0.75)
		if err != nil || reply.Enqueued != 2 || reply.Waiting != 4 {
			t.Fatalf("%+v, %v", reply, err)
		}
		w.start() // what waits survives a restart
		w.register("worker-1")
		for i, want := range []float64{0.25, -1, 0.5, 0.75} {
			lease := w.mustLease("worker-1")
			x, _ := lease.Params["x"].Number()
			if want >= 0 && x != want || w.trial(lease.Trial).Origin != "enqueued" {
				t.Errorf("trial %d has x = %v, origin %s", i, x, w.trial(lease.Trial).Origin)
			}
		}
		if lease := w.mustLease("worker-1"); w.trial(lease.Trial).Origin == "enqueued" {
			t.Error("nothing is enqueued any more, but one was created as if")
		}
		if left := w.view("example").Progress.Enqueued; left != 0 {
			t.Errorf("%d configurations wait", left)
		}
		w.replays(view)
	})
}

// A worker that waits because the search has nothing gets what is enqueued.
func TestEnqueueEndsAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.create("method: bohb", "method: grid, grid_points: 1", "{trials: 27}", "{trials: 0}")
		w.register("worker-1", "worker-2")
		w.mustLease("worker-1")
		if lease := w.lease("worker-2"); lease != nil {
			t.Fatalf("a grid of one point gave %v too", lease.Params)
		}
		if _, err := w.enqueue("example", 0.1); err != nil {
			t.Fatal(err)
		}
		if x, _ := w.mustLease("worker-2").Params["x"].Number(); x != 0.1 {
			t.Errorf("x = %v was leased", x)
		}
	})
}

func TestEnqueueIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.create("trials: 27", "trials: 3")
		for name, c := range map[string]struct {
			values []float64
			code   problem.Code
			says   string
		}{
			"outside the space": {[]float64{0.5, 2}, problem.Invalid, "configurations[1].x"},
			"more than trials":  {[]float64{0.1, 0.2, 0.3, 0.4}, problem.Conflict, "stop.trials is 3, 0 are created and 3 wait in the queue; give the study more trials first ('tandem study extend')"},
		} {
			_, err := w.enqueue("example", c.values...)
			if !problem.Is(err, c.code) || !strings.Contains(told(err), c.says) {
				t.Errorf("%s: %v", name, told(err))
			}
			if waiting := w.view("example").Progress.Enqueued; waiting != 0 {
				t.Errorf("%s: %d of them wait", name, waiting)
			}
		}
		if _, err := w.service.Stop(w.ctx, "example"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.enqueue("example", 0.5); !problem.Is(err, problem.Conflict) || !strings.Contains(told(err), "'tandem study extend'") {
			t.Errorf("a study that is over: %v", err)
		}
		if _, err := w.service.Resume(w.ctx, "example"); !problem.Is(err, problem.Conflict) || !strings.Contains(told(err), "'tandem study extend'") {
			t.Errorf("a study that is over is resumed: %v", err)
		}
		if _, err := w.service.Extend(w.ctx, "example", protocol.ExtendRequest{Trials: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.enqueue("example", 0.5); err != nil {
			t.Errorf("the advice does not help: %v", err)
		}
	})
}

// told is an error with the paths of its fields.
func told(err error) string {
	var e *problem.Error
	if !errors.As(err, &e) {
		return ""
	}
	text := e.Error()
	for _, field := range e.Fields {
		text += " " + field.Path
	}
	return text
}

// A definition from elsewhere than a file may have what does not fit.
func TestInitialThatDoesNotFitCreatesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	def, err := studyfile.Parse([]byte(defaultFile), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	def.Search.Initial = []space.Configuration{{"x": space.Float(7)}}
	if _, err := w.service.CreateWarm(w.ctx, def, nil); err == nil || !strings.Contains(err.Error(), "search.initial[0]") {
		t.Errorf("created, or: %v", err)
	}
	if _, err := w.service.Study(w.ctx, "example"); !problem.Is(err, problem.NotFound) {
		t.Errorf("the study is there: %v", err)
	}
}
