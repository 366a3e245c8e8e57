package starts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/study/starts"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

// on is a judge of a start on the worker, where another one could try the trial.
func on(worker string, known starts.Known) *starts.Judge {
	return &starts.Judge{
		Study: "s", Node: pool.Node{ID: worker, Host: worker, Name: worker}, Now: time.Unix(1000, 0), Retries: 1,
		Elsewhere: func(trial.Trial) bool { return true }, Known: known,
	}
}

const reason = "exit code 127: no such file: train.py"

func TestTwoTrialsThatFailAlikeOnAWorkerExcludeIt(t *testing.T) {
	first := on("broken", starts.Known{})
	one, again, _ := first.Failed(trial.Trial{Number: 1}, reason)
	if !again || len(first.Exclude) != 0 || one.Failures != 0 {
		t.Fatalf("after one failure: again %t, %+v, %+v", again, first.Exclude, one)
	}
	second := on("broken", *first.Learned)
	_, again, why := second.Failed(trial.Trial{Number: 2}, reason)
	if !again || len(second.Exclude) != 1 || len(second.Entries) != 1 || !strings.Contains(why, "broken failed trials 1, 2") {
		t.Fatalf("after two: again %t, %+v, %q", again, second.Exclude, why)
	}
	if held := starts.Held(why); held != second.Exclude[0].Reason || starts.Held(reason) != "" {
		t.Errorf("of the worker it says %q", held)
	}
	// The one that reports elsewhere shows that it was the worker.
	third := on("sound", *second.Learned)
	if reported := third.Reported(one); len(reported.FailedStarts) != 0 || third.Learned == nil {
		t.Errorf("a report leaves %+v", reported)
	}
}

func TestATrialThatFailsAlikeOnTwoMachinesFailsItself(t *testing.T) {
	first := on("one", starts.Known{})
	tried, _, _ := first.Failed(trial.Trial{Number: 1}, reason)
	second := on("two", *first.Learned)
	failed, again, why := second.Failed(tried, reason)
	if again || failed.Failures != 1 || !strings.Contains(why, "alike on one and two") || len(second.Exclude) != 0 {
		t.Errorf("again %t, %q, %+v", again, why, failed)
	}
}

func TestAScriptsOwnTrialIsNotJudged(t *testing.T) {
	var none starts.Judge
	failed, again, why := none.Failed(trial.Trial{Number: 1}, reason)
	if again || why != reason || len(failed.FailedStarts) != 0 || none.Learned != nil {
		t.Errorf("again %t, %q, %+v", again, why, failed)
	}
}
