package api_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// TestTheWalkThroughOfTheDocumentation runs the commands that docs/protocol.md
// leads to, and looks at what they have done.
func TestTheWalkThroughOfTheDocumentation(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "jq", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the walk-through needs %s", tool)
		}
	}
	if !strings.Contains(string(read(t, "../../docs/protocol.md")), "](../examples/curl/walk.sh)") {
		t.Error("docs/protocol.md does not lead to the walk-through")
	}
	script, err := filepath.Abs("../../examples/curl/walk.sh")
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t)
	command := exec.CommandContext(t.Context(), "bash", script)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "TANDEM_SERVER="+s.server.URL, "TANDEM_TOKEN="+s.secrets[auth.Admin])
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
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
