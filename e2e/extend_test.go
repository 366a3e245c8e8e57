package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestAStudyThatIsOverGoesOnWhenItIsExtended runs a study to its end, kills the server,
// and extends the study: the same search goes on, also over a second kill.
func TestAStudyThatIsOverGoesOnWhenItIsExtended(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "extended", threeRungs, "0.01", 4)
	at := newSite(t)
	at.must("study", "create", s.file)
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
