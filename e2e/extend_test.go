package e2e_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// TestAStudyThatIsOverGoesOnWhenItIsExtended runs a study to its end, kills the server,
// and extends the study: the same search goes on, also over a second kill.
func TestAStudyThatIsOverGoesOnWhenItIsExtended(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "extended", threeRungs, "0.01", 4)
	at := newSite(t)
	at.must("study", "create", s.file)
	larger := filepath.Join(filepath.Dir(s.file), "larger.yaml")
	file, err := os.ReadFile(s.file)
	if err == nil {
		err = os.WriteFile(larger, []byte(strings.Replace(string(file), "trials: 4", "trials: 9", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]bool{larger: true, s.file: false} {
		if got := at.cli("study", "create", name); got.code == 0 || strings.Contains(got.stderr, "'tandem study extend extended --trials 5'") != says {
			t.Errorf("a study of the name from %s: exit code %d, %s", filepath.Base(name), got.code, got.stderr)
		}
	}
	at.worker()
	first := read[result](t, at.must("study", "watch", s.name, "--json"))
	if first.Study.Status != protocol.StudyCompleted || first.Study.Progress.Created != 4 {
		t.Fatalf("the study is %s with %d trials", first.Study.Status, first.Study.Progress.Created)
	}
	if none := at.cli("study", "extend", s.name); none.code != 2 || !strings.Contains(none.stderr, "--trials 20") {
		t.Errorf("extend by nothing: exit code %d, %s", none.code, none.stderr)
	}
	if never := at.cli("study", "extend", s.name, "--seconds", "60"); never.code != 1 || !strings.Contains(never.stderr, "give it more trials too") {
		t.Errorf("extend by time alone: exit code %d, %s", never.code, never.stderr)
	}
	at.server.Kill()
	at.start()
	if text := at.must("study", "extend", s.name, "--trials", "6"); text != "Study extended is running, with 4 of 10 trials created\n" {
		t.Errorf("extend says:\n%s", text)
	}
	until(t, "the seventh trial", func() bool {
		return read[protocol.StudyView](t, at.must("study", "show", s.name, "--json")).Progress.Created >= 7
	})
	at.server.Kill()
	time.Sleep(100 * time.Millisecond)
	at.start()
	second := read[result](t, at.must("study", "watch", s.name, "--json"))
	progress := second.Study.Progress
	if second.Study.Status != protocol.StudyCompleted || progress.Created != 10 || !second.Study.Extended || second.Study.Definition.Stop.Trials != 10 {
		t.Errorf("the extended study is %s with %d trials of %d", second.Study.Status, progress.Created, second.Study.Definition.Stop.Trials)
	}
	if progress.Promotions <= first.Study.Progress.Promotions {
		t.Errorf("%d promotions at first, %d at the end", first.Study.Progress.Promotions, progress.Promotions)
	}
	checkBooks(t, s, at.books(s.name))
	if text := at.must("study", "replay", s.name); !strings.Contains(text, "came out the same") {
		t.Errorf("the replay says:\n%s", text)
	}
	if got := cli(t, nil, "verify", at.data); got.code != 0 {
		t.Errorf("verify: %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// TestFailedTrialsAreTriedAgain lets all trials of a study fail, mends their script and
// retries them: the study that had failed goes on, and is completed.
func TestFailedTrialsAreTriedAgain(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "retried", "epochs, epochs: {min: 1, max: 1}, eta: 3", "0.01", 2)
	s.rewrite("train.py", "mended.py")
	s.rewrite("trials: 2", "trials: 2, failures_in_a_row: 2")
	at := newSite(t)
	at.must("study", "create", s.file)
	at.worker()
	shown := func() protocol.StudyView {
		return read[protocol.StudyView](t, at.must("study", "show", s.name, "--json"))
	}
	until(t, "the study's end", func() bool { return shown().Status.Over() })
	if view := shown(); view.Status != protocol.StudyFailed || view.Progress.Trials[trial.Failed] != 2 {
		t.Fatalf("the study is %s, with %v", view.Status, view.Progress.Trials)
	}
	if view := shown(); !strings.Contains(view.Reason, "2 trials in a row failed (stop.failures_in_a_row), the last one: ") || !strings.Contains(view.Reason, "'tandem study retry retried --failed' goes on") {
		t.Errorf("it ended as %s", view.Reason)
	}
	folder := filepath.Dir(s.file)
	if err := os.Rename(filepath.Join(folder, "train.py"), filepath.Join(folder, "mended.py")); err != nil {
		t.Fatal(err)
	}
	if text := at.must("study", "retry", s.name, "--failed"); text != "Study retried is running, with 2 of 4 trials created\n" {
		t.Fatalf("retry says:\n%s", text)
	}
	until(t, "the study's second end", func() bool { return shown().Status.Over() })
	view := shown()
	if view.Status != protocol.StudyCompleted || view.Progress.Trials[trial.Failed] != 2 || view.Progress.Trials[trial.Completed] != 2 {
		t.Fatalf("the study is %s, with %v", view.Status, view.Progress.Trials)
	}
	for number, of := range map[string]int{"2": 0, "3": 1} {
		again := read[protocol.TrialDetail](t, at.must("study", "trial", s.name, number, "--json")).Trial
		if again.RetryOf == nil || *again.RetryOf != of {
			t.Errorf("trial %s retries %v, not trial %d", number, again.RetryOf, of)
		}
	}
	if none := at.cli("study", "retry", s.name, "--failed"); none.code != 1 || !strings.Contains(none.stderr, "no trial of study retried is left to retry") {
		t.Errorf("a second retry: exit code %d, %s", none.code, none.stderr)
	}
	for query, want := range map[string]string{
		"": "4", "state = failed order by number desc": "1 0", "retry_of is not null and accuracy > 0 order by retry_of": "2 3", "retry_of in (0, 1) order by number limit 1": "2",
	} {
		numbers, page := "", read[protocol.TrialPage](t, at.must("study", "trials", s.name, "--where", query, "--json"))
		for _, one := range page.Trials {
			numbers += " " + strconv.Itoa(one.Number)
		}
		if query == "" {
			numbers = " " + strconv.Itoa(page.Total)
		}
		if numbers != " "+want {
			t.Errorf("%q finds%s, not %s", query, numbers, want)
		}
	}
	if text := at.must("study", "trials", s.name, "--where", "state = failed limit 1"); !strings.Contains(text, "trial 0 failed: ") && !strings.Contains(text, "trial 1 failed: ") {
		t.Errorf("the trials that failed:\n%s", text)
	}
	if wrong := at.cli("study", "trials", s.name, "--where", "state = faild"); wrong.code != 2 || !strings.Contains(wrong.stderr, "at character 9, faild is no value of the field: did you mean failed?") {
		t.Errorf("a wrong query: exit code %d, %s", wrong.code, wrong.stderr)
	}
}
