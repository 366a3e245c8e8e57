package show

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// TestWhatKeepsAStudyFromRunningIsSaidOnce: at the second look, again when it is
// another reason, and not while something of the study runs.
func TestWhatKeepsAStudyFromRunningIsSaidOnce(t *testing.T) {
	var out strings.Builder
	d := newDisplay(&out)
	look := func(reason string, trials map[trial.State]int) {
		view := protocol.StudyView{Status: protocol.StudyRunning, Progress: protocol.Progress{Trials: trials}}
		if reason != "" {
			view.Waits = []protocol.Wait{{Reason: reason}}
		}
		d.show(view)
	}
	said := func(reason string) int { return strings.Count(out.String(), "Waits: "+reason+"\n") }
	look("no worker has a GPU", nil)
	if said("no worker has a GPU") != 0 {
		t.Errorf("said at the first look:\n%s", out.String())
	}
	for range 3 {
		look("no worker has a GPU", nil)
	}
	for range 3 {
		look("all are busy", map[trial.State]int{trial.Running: 1})
	}
	for range 3 {
		look("the quota is used up", map[trial.State]int{trial.Paused: 2})
	}
	if said("no worker has a GPU") != 1 || said("all are busy") != 0 || said("the quota is used up") != 1 {
		t.Errorf("said:\n%s", out.String())
	}
}

// With several objectives the leading trial is the best compromise, and not said to
// be the best in the first objective, in which another one may well be better.
func TestTheLeadingTrialOfSeveralObjectives(t *testing.T) {
	view := protocol.StudyView{Progress: protocol.Progress{Best: &protocol.Best{
		Number: 5, Metric: "accuracy", Value: 0.83, Values: []trial.Float{0.83, 12.5}, Budget: budget.Budget{Epochs: 9, DataFraction: 1},
	}}}
	view.Definition.Objectives = []definition.Objective{{Metric: "accuracy"}, {Expression: "latency * 1000", Name: "latency_ms"}}
	if got := Best(view); !strings.HasPrefix(got, "best compromise accuracy 0.83, latency_ms 12.5 (trial 5, ") {
		t.Error(got)
	}
	view.Progress.Best.Values = nil
	if got := Best(view); !strings.HasPrefix(got, "best accuracy 0.83 (trial 5, ") {
		t.Error(got)
	}
}

// TestWhyTrialsFailIsSaidWhileTheyDo: each reason once, with what the script said, and
// no more than a few.
func TestWhyTrialsFailIsSaidWhileTheyDo(t *testing.T) {
	var out strings.Builder
	d := newDisplay(&out)
	fail := func(number int, reason string) {
		failed := protocol.RankedTrial{}
		failed.Number, failed.Reason = number, reason
		d.failed(&failed)
	}
	d.failed(nil) // nobody could tell
	fail(0, "exit code 1: ValueError: shapes differ\nstandard error ended with:\nTraceback\n\x1b[31mValueError: shapes differ")
	fail(1, "exit code 1: ValueError: shapes differ\nstandard error ended with:\nTraceback\n\x1b[31mValueError: shapes differ")
	for number := 2; number < 9; number++ {
		fail(number, fmt.Sprintf("exit code 1: no memory for a batch of %d", number))
	}
	want := `trial 0 failed: exit code 1: ValueError: shapes differ
    standard error ended with:
    Traceback
    [31mValueError: shapes differ
trial 2 failed: exit code 1: no memory for a batch of 2
trial 3 failed: exit code 1: no memory for a batch of 3
What further trials fail of stands on the study's page.
`
	if out.String() != want {
		t.Errorf("said:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestThePartOfAStudyThatIsDone(t *testing.T) {
	t.Parallel()
	rest := 30.0
	if part, known := partDone(protocol.Progress{ElapsedSeconds: 10, RemainingSeconds: &rest}); !known || part != 0.25 {
		t.Errorf("10 s of 40 s are %g, %v", part, known)
	}
	if _, known := partDone(protocol.Progress{ElapsedSeconds: 10}); known {
		t.Error("without an end, a part is known")
	}
}
