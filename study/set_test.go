package study_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
)

// set changes what the study gets of the pool.
func (w *world) set(id string, wanted protocol.SetRequest) protocol.StudyView {
	w.t.Helper()
	view, err := w.service.Set(w.ctx, id, wanted)
	if err != nil {
		w.t.Fatal(err)
	}
	return view
}

// events are those of the kind in the study's log.
func (w *world) events(id string, kind journal.EventKind) []journal.Event {
	w.t.Helper()
	events, err := w.store.Events(w.ctx, id, 0, 1<<30)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(events, func(one journal.Event) bool { return one.Kind != kind })
}

// The study whose priority is raised goes first, over a restart and an extension, and the
// one whose parallel is raised gives a waiting worker a trial at once.
func TestAStudyIsSetWhileItRuns(t *testing.T) {
	in(func(t *testing.T, w *world) {
		first := w.create(append(named("first", "parallel: 1"), "trials: 27", "trials: 12")...)
		w.sleep(time.Second) // of two that are equally old any may go first
		other := w.create(named("other", "parallel: 1")...)
		w.register("worker-1", "worker-2", "worker-3")
		running := w.mustLease("worker-1")
		if running.Study != "first" {
			t.Fatalf("the older study does not go first, but %s", running.Study)
		}
		w.train(running)
		view := w.set(other.ID, protocol.SetRequest{Priority: new(5)})
		if view.Definition.Priority != 5 || *view.Set.Priority != 5 || view.Set.Parallel != nil || view.Extended {
			t.Errorf("after that it is %+v", view)
		}
		if next := w.mustLease("worker-1"); next.Study != "other" {
			t.Errorf("the study with the higher priority does not go first, but %s", next.Study)
		}
		w.mustLease("worker-2") // first's one trial

		came := make(chan *protocol.Lease)
		go func() {
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-3", WaitSeconds: 600})
			if err != nil {
				t.Error(err)
			}
			came <- reply.Lease
		}()
		w.sleep(time.Minute)
		select {
		case got := <-came:
			t.Fatalf("a study that may run one trial at once has another one: %+v", got)
		default:
		}
		w.set("first", protocol.SetRequest{Parallel: new(2)})
		if got := <-came; got == nil || got.Study != "first" {
			t.Errorf("a waiting worker gets %+v of a study that may run one more", got)
		}
		w.set("first", protocol.SetRequest{Priority: new(0), Parallel: new(2)}) // as it is: nothing
		events := w.events(first.ID, journal.Adjusted)
		if len(events) != 1 || events[0].Reason != "parallel from 1 to 2" || string(events[0].Data) != `{"parallel":2}` {
			t.Errorf("its log says %+v", events)
		}
		w.start()
		if view := w.view(other.ID); view.Definition.Priority != 5 || view.Definition.Parallel != 1 || *view.Set.Priority != 5 {
			t.Errorf("behind a restart it is %+v", view)
		}
		w.extend(other.ID, protocol.ExtendRequest{Trials: 3})
		w.start()
		if view := w.view(other.ID); view.Definition.Priority != 5 || view.Definition.Stop.Trials != 30 || !view.Extended {
			t.Errorf("extended it is %+v", view)
		}
		w.reportsReplayed(first.ID)
		w.reportsReplayed(other.ID)
	})(t)
}

// With a smaller parallel the trials that run go on, and none starts until fewer run.
func TestASmallerParallelEndsNoTrial(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		w.register("worker-1", "worker-2", "worker-3")
		one, two := w.mustLease("worker-1"), w.mustLease("worker-2")
		w.set(created.ID, protocol.SetRequest{Parallel: new(1)})
		w.train(one)
		if next := w.lease("worker-1"); next != nil {
			t.Errorf("beside the one that runs, %+v is given", next)
		}
		w.train(two)
		w.mustLease("worker-1")
		w.set(created.ID, protocol.SetRequest{Parallel: new(0)})
		w.mustLease("worker-3")
		if got := w.events(created.ID, journal.Adjusted); len(got) != 2 || got[0].Reason != "parallel from no bound to 1" || got[1].Reason != "parallel from 1 to no bound" {
			t.Errorf("its log says %+v", got)
		}
		w.reportsReplayed(created.ID)
	})(t)
}

// Trials that run have the new priority, too: those of a raised study make way for none
// that they would have made way for.
func TestRunningTrialsHaveThePriorityThatWasSet(t *testing.T) {
	for raised, want := range map[bool]int{true: 0, false: 1} {
		in(func(t *testing.T, w *world) {
			low := w.create(append(named("low"), "policy: multi", "policy: epochs", "min: 1, max: 9", "min: 9, max: 9")...)
			w.rack("worker-a", 1, 0)
			lease := w.mustLease("worker-a")
			w.mustReport(lease, 1)
			if err := w.checkpoint(lease, 1); err != nil {
				t.Fatal(err)
			}
			if raised {
				w.set(low.ID, protocol.SetRequest{Priority: new(3)})
			}
			w.create(named("urgent", "priority: 3", "preempt: true")...)
			w.sleep(2 * time.Second)
			told := w.beat("worker-a", lease)
			made := 0
			if told[lease.Trial].Action == protocol.Pause {
				made++
			}
			if made != want {
				t.Errorf("raised: %v, %d trials make way: %+v", raised, made, told)
			}
		})(t)
	}
}

func TestWhatASettingMayBe(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		for name, c := range map[string]struct {
			wanted protocol.SetRequest
			fields []string
		}{
			"nothing":    {protocol.SetRequest{}, []string{"priority"}},
			"too high":   {protocol.SetRequest{Priority: new(1001)}, []string{"priority"}},
			"both wrong": {protocol.SetRequest{Priority: new(-1001), Parallel: new(-1)}, []string{"priority", "parallel"}},
		} {
			_, err := w.service.Set(w.ctx, created.ID, c.wanted)
			var told *problem.Error
			if !errors.As(err, &told) || told.Code != problem.Invalid {
				t.Fatalf("%s: %v", name, err)
			}
			var fields []string
			for _, fault := range told.Fields {
				fields = append(fields, fault.Path)
				if !strings.Contains(fault.Message, "must be") {
					t.Errorf("%s: %+v says no fix", name, fault)
				}
			}
			if !slices.Equal(fields, c.fields) {
				t.Errorf("%s: faults at %v", name, fields)
			}
		}
		if got := w.view(created.ID); got.Set != (protocol.SetRequest{}) || len(w.events(created.ID, journal.Adjusted)) != 0 {
			t.Errorf("what was refused is set: %+v", got.Set)
		}
		if _, err := w.as(user("mallory")).service.Set(w.as(user("mallory")).ctx, created.ID, protocol.SetRequest{Priority: new(9)}); !problem.Is(err, problem.NotFound) {
			t.Errorf("somebody else's: %v", err)
		}
	})(t)
}
