package api_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// TestTheWalkThroughOfTheDocumentation runs the commands of docs/protocol.md
// as they stand there, and looks at what they have done.
func TestTheWalkThroughOfTheDocumentation(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "jq", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the walk-through needs %s", tool)
		}
	}
	_, part, found := strings.Cut(string(read(t, "../../docs/protocol.md")), "\n## A walk-through with curl\n")
	if !found {
		t.Fatal("there is no walk-through")
	}
	script := "set -euo pipefail\n"
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(part, -1)
	for _, block := range blocks {
		script += block[1]
	}
	s := newStage(t)
	command := exec.CommandContext(t.Context(), "bash", "-c", script)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "TANDEM_SERVER="+s.server.URL, "TANDEM_TOKEN="+s.secrets[auth.Admin])
	output, err := command.CombinedOutput()
	if err != nil || len(blocks) < 6 {
		t.Fatalf("%d blocks: %v\n%s", len(blocks), err, output)
	}
	t.Logf("%s", output)
	for _, said := range []string{`{"status":"ok"}`, "finish\n", "paused\n", `"lease_lost"`, "weights after epoch 1", "completed\n", `{"study_finished":true}`, "event: trial_state", "one epoch, by hand", "running\n"} {
		if !strings.Contains(string(output), said) {
			t.Errorf("nothing says %q", said)
		}
	}
	answer, err := s.client(auth.Viewer).Recommendation(t.Context(), "by-hand")
	if err != nil || answer.Status != protocol.StudyCompleted || answer.Best == nil || answer.Best.Value != 0.83 || !answer.FullBudget {
		t.Errorf("%+v: %v", answer, err)
	}
	view, err := s.client(auth.Viewer).Study(t.Context(), "by-hand")
	if err != nil || view.Progress.Resumes != 1 || view.Progress.Epochs != 5 || view.Progress.Trials[trial.Completed] != 1 {
		t.Errorf("%+v: %v", view.Progress, err)
	}
}

// TestTheDocumentationNamesEveryCode compares the table of docs/protocol.md
// with what the server answers.
func TestTheDocumentationNamesEveryCode(t *testing.T) {
	t.Parallel()
	text := string(read(t, "../../docs/protocol.md"))
	for code, status := range map[problem.Code]string{
		problem.Invalid: "422", problem.Unauthorized: "401", problem.Forbidden: "403", problem.NotFound: "404", problem.Conflict: "409",
		problem.LeaseLost: "409", problem.KeyReused: "422", problem.Exhausted: "429", problem.Unavailable: "503", problem.Internal: "500",
	} {
		if !regexp.MustCompile("\\| `" + string(code) + "` \\| [0-9, ]*" + status).MatchString(text) {
			t.Errorf("the table has no line for %s with %s", code, status)
		}
	}
}
