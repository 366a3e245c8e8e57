package e2e_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestAWorkerIsKilledBesideAnEpoch kills a worker while it sends the checkpoint of the second
// epoch, at each step. The script has gone on and has spoilt its file, and the trial goes on
// from what the server had for good: from this checkpoint, or from the one before.
func TestAWorkerIsKilledBesideAnEpoch(t *testing.T) {
	t.Parallel()
	breakable, err := forTests()
	if err != nil {
		t.Fatal(err)
	}
	for point, next := range map[failpoint.Point]int{failpoint.AgentPacked: 2, failpoint.AgentUploaded: 2, failpoint.AgentCommitted: 3} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			s := newStudy(t, "beside", nineEpochs, "0.05", 1)
			at := newSite(t, "--lease-seconds", "3", "--heartbeat-seconds", "1")
			at.must("study", "create", s.file)
			line := append([]string{"worker", "--probe", "never", "--scratch", t.TempDir()}, opened(t)...)
			killed, err := launch.Start(breakable, append(at.environment(), "TANDEM_FAILPOINTS="+string(point)+"=kill@2", "TANDEM_FAILPOINTS_FIRED="+filepath.Join(t.TempDir(), "fired")), line...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(killed.Kill)
			until(t, "the end of the worker", killed.Ended)
			at.worker()
			found := read[result](t, at.must("study", "watch", s.name, "--json"))
			books := at.books(s.name)
			if p, one := found.Study.Progress, books.Trials[0]; found.Study.Status != protocol.StudyCompleted || p.Resumes != 1 || one.Failures != 0 {
				t.Errorf("the study is %s with %d resumes and %d failures", found.Study.Status, p.Resumes, one.Failures)
			}
			trained := s.entries("trained")
			if at := slices.IndexFunc(trained, func(e entry) bool { return e.pid != trained[0].pid }); at < 0 || trained[at].epoch != next {
				t.Errorf("it went on after %v, want epoch %d", trained, next)
			}
			checkBooks(t, s, books)
		})
	}
}
