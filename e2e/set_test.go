package e2e_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
)

// TestAStudyWhosePriorityWasRaisedGoesFirst creates two studies, raises the priority of the
// newer one and kills the server: a worker that comes then trains that one first. What
// was set to what it was leaves no line.
func TestAStudyWhosePriorityWasRaisedGoesFirst(t *testing.T) {
	t.Parallel()
	older, newer := newStudy(t, "older", threeRungs, "0.01", 4), newStudy(t, "newer", threeRungs, "0.01", 4)
	at := newSite(t)
	at.must("study", "create", older.file)
	at.must("study", "create", newer.file)
	if text := at.must("study", "set", newer.name, "--priority", "5", "--parallel", "1"); text != "Study newer has priority 5, at most 1 trial at once\n" {
		t.Errorf("set says:\n%s", text)
	}
	at.must("study", "set", older.name, "--priority", "0")
	for _, wrong := range [][]string{{"--priority", "1001"}, {"--parallel", "-1"}, {}} {
		if got := at.cli(append([]string{"study", "set", newer.name}, wrong...)...); got.code == 0 || !strings.Contains(got.stderr, "1000") && !strings.Contains(got.stderr, "must be a number >= 0") && !strings.Contains(got.stderr, "--priority 5") {
			t.Errorf("%v: exit code %d, %s", wrong, got.code, got.stderr)
		}
	}
	at.server.Kill()
	at.start()
	if text := at.must("study", "show", newer.name); !strings.Contains(text, "Pool:  priority 5, at most 1 trial at once\n") {
		t.Errorf("show says:\n%s", text)
	}
	at.worker()
	at.must("study", "watch", newer.name)
	at.must("study", "watch", older.name)
	first := read[protocol.TrialDetail](t, at.must("study", "trial", older.name, "0", "--json")).Trial
	last := read[protocol.TrialDetail](t, at.must("study", "trial", newer.name, "3", "--json")).Trial
	if !last.Started.Before(*first.Started) {
		t.Errorf("the raised study's last trial began at %v, the other's first at %v", last.Started, first.Started)
	}
	for _, s := range []study{older, newer} {
		kept := 0
		books := at.books(s.name)
		for _, event := range books.Events {
			if event.Kind == string(journal.Adjusted) {
				kept++
			}
		}
		if want := map[string]int{"newer": 1}[s.name]; kept != want {
			t.Errorf("study %s has %d lines of what was set, want %d", s.name, kept, want)
		}
		checkBooks(t, s, books)
		if text := at.must("study", "replay", s.name); !strings.Contains(text, "came out the same") {
			t.Errorf("the replay says:\n%s", text)
		}
	}
	if got := cli(t, nil, "verify", at.data); got.code != 0 {
		t.Errorf("verify: %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}
