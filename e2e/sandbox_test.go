package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// rewrite changes the study's file.
func (s study) rewrite(replace ...string) {
	s.t.Helper()
	content, err := os.ReadFile(s.file)
	if err == nil {
		err = os.WriteFile(s.file, []byte(strings.NewReplacer(replace...).Replace(string(content))), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestAStrictStudyTrainsWithAllLayers trains, pauses and resumes with everything
// given up that can be, and with a secret.
func TestAStrictStudyTrainsWithAllLayers(t *testing.T) {
	t.Parallel()
	var found []struct {
		Name   string `json:"name"`
		Detail string `json:"detail"`
	}
	if err := json.Unmarshal([]byte(cli(t, nil, "doctor", "--json").stdout), &found); err != nil {
		t.Fatal(err)
	}
	for _, one := range found {
		if one.Name == "sandbox" && !strings.HasPrefix(one.Detail, "all layers") {
			t.Skipf("this machine lacks layers: %s", one.Detail)
		}
	}
	s := newStudy(t, "strict", threeRungs, "0.01", 6)
	s.rewrite("objective:", "sandbox: strict\nsecrets: [HF_TOKEN]\nobjective:")
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("hf_0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := cli(t, nil, "run", s.file, "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--secret", "HF_TOKEN="+token, "--json")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if p := read[result](t, got.stdout).Study.Progress; p.Created != 6 || p.Promotions == 0 || p.Resumes == 0 || p.Trials[trial.Failed] > 0 {
		t.Errorf("the study ended with %+v", p)
	}
	checkTrainedOnce(t, s)
}

// TestARefusedStudyWaitsForAnotherWorker: one worker's owner does not allow it,
// another's does.
func TestARefusedStudyWaitsForAnotherWorker(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "refused", threeRungs, "0.01", 3)
	at := newSite(t)
	at.worker("--name", "careful", "--allow-command", "python3 other.py")
	at.must("study", "create", s.file)
	var workers []protocol.Worker
	until(t, "the refusal", func() bool {
		workers = read[[]protocol.Worker](t, at.must("workers", "--json"))
		return len(workers) == 1 && len(workers[0].Refuses) == 1
	})
	for _, reason := range workers[0].Refuses {
		if !strings.Contains(reason, "--allow-command") || !strings.Contains(reason, "careful") {
			t.Errorf("the reason is %q", reason)
		}
	}
	if listed := at.must("workers"); !strings.Contains(listed, "careful refuses study") || !strings.Contains(listed, "SANDBOX") {
		t.Errorf("listed is\n%s", listed)
	}
	if waiting := at.books(s.name).Trials[0]; waiting.State != trial.Queued || waiting.Failures != 0 || waiting.Losses != 0 || !strings.Contains(waiting.Reason, "--allow-command") {
		t.Errorf("the trial is %s after %d failures and %d losses: %s", waiting.State, waiting.Failures, waiting.Losses, waiting.Reason)
	}
	at.worker("--name", "willing", "--allow-command", "python3 train.py", "--pass-env", "PYTHONPATH,LEDGER,EPOCH_SECONDS")
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if p := found.Study.Progress; p.Created != 3 || p.Trials[trial.Failed] > 0 || p.Best == nil {
		t.Errorf("the study ended with %+v", p)
	}
	checkTrainedOnce(t, s)
}
