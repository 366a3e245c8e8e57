package study_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

func (w *world) timeline(ref string, events int) protocol.Timeline {
	w.t.Helper()
	answer, err := w.service.Timeline(w.ctx, ref, events)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

// spans writes a timeline as sentences: seconds are whole in these tests.
func spans(answer protocol.Timeline) []string {
	lines := []string{}
	for i, number := range answer.Numbers {
		worker := answer.Workers[answer.Workplaces[i]]
		lines = append(lines, fmt.Sprintf("trial %d at rung %d on %s(%s) from %g to %g: %s", number, answer.Rungs[i], worker.ID, worker.Host, answer.Begins[i], answer.Ends[i], answer.Outcomes[i]))
	}
	return lines
}

func TestATimelineSaysWhichTrialRanWhereAndWhen(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("method: bohb", "method: random", "stop:", "retry: {failures: 1}\nstop:")
		if empty := w.timeline(created.Name, 0); len(empty.Numbers) != 0 || empty.Numbers == nil || empty.Seconds != 0 {
			t.Errorf("before any trial: %+v", empty)
		}
		w.registerOn("desk", "worker-1")
		w.registerOn("rack", "worker-2")
		time.Sleep(5 * time.Second)
		first := w.mustLease("worker-1")
		time.Sleep(2 * time.Second)
		second := w.mustLease("worker-2")
		time.Sleep(3 * time.Second)
		w.train(first) // paused at rung 0
		if _, err := w.finish(second, protocol.CommandFailed); err != nil {
			t.Fatal(err)
		}
		again := w.mustLease("worker-1")
		time.Sleep(time.Second)
		if _, err := w.finish(again, protocol.CommandFailed); err != nil {
			t.Fatal(err)
		}
		third := w.mustLease("worker-2")
		time.Sleep(time.Second)
		if _, err := w.finish(third, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		w.mustLease("worker-2") // the same trial goes on
		time.Sleep(4 * time.Second)
		want := []string{
			"trial 0 at rung 0 on worker-1(desk) from 5 to 10: paused",
			"trial 1 at rung 0 on worker-2(rack) from 7 to 10: failed", // it is tried again
			"trial 1 at rung 0 on worker-1(desk) from 10 to 11: failed",
			"trial 2 at rung 0 on worker-2(rack) from 11 to 12: returned",
			"trial 2 at rung 0 on worker-2(rack) from 12 to 16: running",
		}
		answer := w.timeline(created.Name, 0)
		if got := spans(answer); !slices.Equal(got, want) || answer.Cut != 0 || answer.Seconds != 16 {
			t.Errorf("%d s, cut %g: %q", int(answer.Seconds), answer.Cut, got)
		}
		if answer.Reasons[0] != "" || answer.Reasons[1] == "" {
			t.Errorf("reasons %q", answer.Reasons)
		}
		w.sleep(2 * time.Minute) // worker-2 is silent: the lease expires
		if got := spans(w.timeline(created.Name, 0)); len(got) != 5 || got[4][len(got[4])-4:] != "lost" {
			t.Errorf("%q", got)
		}
	})(t)
}

func TestATimelineOfTheNewestEventsSaysWhereItBegins(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("method: bohb", "method: random")
		w.register("worker-1")
		for range 4 {
			time.Sleep(10 * time.Second)
			w.train(w.mustLease("worker-1"))
		}
		time.Sleep(10 * time.Second)
		last := w.mustLease("worker-1")
		time.Sleep(10 * time.Second)
		w.mustReport(last, 1)
		time.Sleep(10 * time.Second)
		all := w.timeline(created.Name, 0)
		if len(all.Numbers) != 5 || all.Seconds != 70 {
			t.Fatalf("%q", spans(all))
		}
		// The newest events are the last lease's reports: it began before them.
		part := w.timeline(created.Name, 1)
		if len(part.Numbers) != 1 || part.Cut != 60 || part.Begins[0] != 60 || part.Ends[0] != 70 || part.Numbers[0] != last.Number || part.Sequence != all.Sequence {
			t.Errorf("cut at %g: %q", part.Cut, spans(part))
		}
		if _, err := w.service.Stop(w.ctx, created.Name); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		over := w.timeline(created.Name, 0)
		if over.Seconds != 70 || over.Outcomes[4] != protocol.SpanCancelled || over.Ends[4] != 70 {
			t.Errorf("of a study that is over: %g s, %q", over.Seconds, spans(over))
		}
	})(t)
}

func TestAPlanIsComparedWithWhatWasDone(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("method: bohb", "method: random", "seed: 7", "seed: 7, promotion: synchronous", "stop:", "retry: {failures: 0}\nstop:")
		progress := func() protocol.PlanProgress {
			t.Helper()
			answer, err := w.service.PlanProgress(w.ctx, created.Name)
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		before := progress()
		planned, begin := 0, 0
		for i, stage := range before.Stages {
			if stage.Rung != i || stage.Measured != 0 || stage.Began != 0 {
				t.Errorf("before any trial: %+v", stage)
			}
			planned += stage.Planned
			begin += before.Plan.Stages[i].Started
		}
		if len(before.Stages) != 3 || begin != 27 || planned != before.Plan.Trainings || before.Plan.Trials != 27 {
			t.Fatalf("%+v", before)
		}
		w.register("worker-1")
		held := w.mustLease("worker-1")
		if now := progress(); now.Stages[held.Rung].Active != 1 || now.Stages[held.Rung].Began != 1 || now.Trials != 1 {
			t.Errorf("one at work: %+v", now.Stages)
		}
		if _, err := w.finish(held, protocol.CommandFailed); err != nil {
			t.Fatal(err)
		}
		if now := progress(); now.Stages[held.Rung].Ended != 1 || now.Stages[held.Rung].Active != 0 {
			t.Errorf("one failed: %+v", now.Stages)
		}
		w.register("worker-2")
		for lease := w.lease("worker-2"); lease != nil; lease = w.lease("worker-2") {
			w.train(lease)
		}
		after := progress()
		measured := 0
		for _, stage := range after.Stages {
			measured += stage.Measured
			if stage.Active != 0 {
				t.Errorf("at the end: %+v", stage)
			}
		}
		// Synchronous promotion keeps to its plan but for what failed.
		if after.Trials != 27 || measured < planned-2 || measured >= planned || after.Epochs == 0 || after.Epochs > after.Plan.Epochs || after.Seconds != 2*float64(after.Epochs) || after.Joules == 0 {
			t.Errorf("%d of %d measured: %+v", measured, planned, after)
		}
	})(t)
}
