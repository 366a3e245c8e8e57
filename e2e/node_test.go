package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// registered are the workers of the site, by name.
func (s *site) registered() map[string]protocol.Worker {
	s.t.Helper()
	workers := map[string]protocol.Worker{}
	for _, one := range read[[]protocol.Worker](s.t, s.must("workers", "--json")) {
		workers[one.Name] = one
	}
	return workers
}

// TestABrokenNodeEatsNoStudy has a worker with an empty PATH beside a sound one: it can
// start no command, the study completes without a retry used, and everybody is told
// which worker is broken, and how.
func TestABrokenNodeEatsNoStudy(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "one-broken-node", nineEpochs, "0.05", 6)
	at := newSite(t)
	at.worker("--name", "sound")
	broken := at.workerBy([]string{"/usr/bin/env", "PATH="}, "--name", "broken")
	until(t, "two workers", func() bool { return len(at.registered()) == 2 })
	created := read[protocol.StudyView](t, at.must("study", "create", s.file, "--json"))
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if found.Study.Status != protocol.StudyCompleted || found.Study.Progress.Trials[trial.Completed] != 6 {
		t.Errorf("the study is %s with %v", found.Study.Status, found.Study.Progress.Trials)
	}
	books := at.books(s.name)
	for _, one := range books.Trials {
		if one.Failures != 0 {
			t.Errorf("trial %d has %d failures: %s", one.Number, one.Failures, one.Reason)
		}
	}
	checkBooks(t, s, books)
	checkTrainedOnce(t, s)
	workers := at.registered()
	if one := workers["broken"].Excluded[created.ID]; !strings.Contains(one.Reason, "is in no folder of the PATH") || !strings.Contains(one.Reason, "mend it") {
		t.Errorf("it is excluded: %q", one.Reason)
	}
	if sound := workers["sound"]; len(sound.Excluded) > 0 {
		t.Errorf("the sound one is excluded from %v", sound.Excluded)
	}
	if said := at.must("workers"); !strings.Contains(said, "broken is excluded from study "+created.ID) {
		t.Errorf("tandem workers says\n%s", said)
	}
	if log := broken.Output(); !strings.Contains(log, "gives this worker no more trials of the study") || strings.Count(log, "leased") != 2 {
		t.Errorf("the broken worker's log says\n%s", log)
	}
}

// TestAScriptThatFailsForSomeConfigurationsBlamesNoNode is the other side: about half of
// the configurations fail at the first line wherever they run. They fail as their own
// fault, and nobody is excluded.
func TestAScriptThatFailsForSomeConfigurationsBlamesNoNode(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "some-fail", nineEpochs, "0.02", 8)
	script := filepath.Join(filepath.Dir(s.file), "train.py")
	content, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	content = []byte(strings.Replace(string(content), `    x = trial.params["x"]`, `    x = trial.params["x"]
    if int(x * 1000) % 2 == 0:
        raise SystemExit(f"x is {x}, which this script cannot train")`, 1))
	if err := os.WriteFile(script, content, 0o600); err != nil {
		t.Fatal(err)
	}
	at := newSite(t)
	at.worker("--name", "one")
	at.worker("--name", "two")
	until(t, "two workers", func() bool { return len(at.registered()) == 2 })
	at.must("study", "create", s.file)
	at.must("study", "watch", s.name, "--json")
	failed := 0
	for _, one := range at.books(s.name).Trials {
		x, _ := one.Configuration["x"].Number()
		want, failures := trial.Completed, 0
		if int(x*1000)%2 == 0 {
			want, failures = trial.Failed, 2
			failed++
		}
		if one.State != want || one.Failures != failures {
			t.Errorf("trial %d with x=%g is %s with %d failures: %s", one.Number, x, one.State, one.Failures, one.Reason)
		}
	}
	if failed == 0 || failed == 8 {
		t.Fatalf("%d of 8 configurations fail: the test shows nothing", failed)
	}
	for name, one := range at.registered() {
		if len(one.Excluded) > 0 {
			t.Errorf("%s is excluded: %v", name, one.Excluded)
		}
	}
}
