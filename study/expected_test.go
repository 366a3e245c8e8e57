package study_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// What a study file expects is tried first, tested, and told of, also behind the end and a
// restart. The best x is 0.7.
func TestAStudyTriesWhatItExpectsAndTestsIt(t *testing.T) {
	t.Parallel()
	for value, verdict := range map[string]string{"0.7": "trusted after a test", "0.05": "not trusted after a test"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			view := w.create("high: 1}", "high: 1, expect: {value: "+value+", sure: high}}")
			says := func(verdict string) {
				t.Helper()
				if told := w.view("example").Sources; len(told) != 1 || told[0].Source != "what is expected" || told[0].Verdict != verdict {
					t.Errorf("%s: the study says %+v, want %q", value, told, verdict)
				}
			}
			says("not tested yet")
			w.register("worker-1")
			lease := w.mustLease("worker-1")
			if lease.Params["x"].String() != value || w.trial(lease.Trial).Origin != "expected" {
				t.Errorf("%s: the first trial has %v, origin %s", value, lease.Params, w.trial(lease.Trial).Origin)
			}
			w.train(lease)
			w.start()
			w.register("worker-1")
			for next := w.lease("worker-1"); next != nil; next = w.lease("worker-1") {
				w.train(next)
			}
			says(verdict)
			w.replays(view)
			w.start()
			if now := w.view("example"); now.Status != protocol.StudyCompleted {
				t.Errorf("it is %s", now.Status)
			}
			says(verdict)
		})
	}
}

// What the placebo of the test above is: without an expectation nothing is said of one, and
// the first trial is another.
func TestAStudyThatExpectsNothingSaysNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	view := w.create()
	w.register("worker-1")
	if lease := w.mustLease("worker-1"); view.Sources != nil || w.trial(lease.Trial).Origin == "expected" || lease.Params["x"].String() == "0.7" {
		t.Errorf("it knows %+v, and begins with %v", view.Sources, lease.Params)
	}
}

func TestWrongExpectationsAreRefused(t *testing.T) {
	t.Parallel()
	for expect, says := range map[string]string{
		"{value: 7}":                 "space.x.expect.value (line 5): must be between 0 and 1",
		"{value: often}":             "space.x.expect.value (line 5): must be a number",
		"{value: 0.5, sure: 7}":      "space.x.expect.sure",
		"{value: 0.5, sure: hardly}": "space.x.expect.sure (line 5): must be low, medium or high",
		"{sure: low}":                "space.x.expect.value",
		"0.5":                        "space.x.expect",
		"{value: 0.5, width: 2}":     "space.x.expect.width",
	} {
		if _, err := changed("high: 1}", "high: 1, expect: "+expect+"}"); !problem.Is(err, problem.Invalid) || !strings.Contains(told(err), says) {
			t.Errorf("%s: %v: %s", expect, err, told(err))
		}
	}
	if _, err := changed("high: 1}", "high: 1, expect: {value: 0.5}}", "method: bohb", "method: grid"); !strings.Contains(told(err), "must be left out with a grid") {
		t.Errorf("with a grid: %v", err)
	}
}
