package e2e_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestTheClientOfOtherSystems: what is built for macOS and Windows controls studies of a server
// elsewhere, and says of the commands that it lacks where they run. It is built for this
// system here; "scripts/test long" and "scripts/release" build it for others.
func TestTheClientOfOtherSystems(t *testing.T) {
	t.Parallel()
	client, err := launch.BuildClient(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := newSite(t)
	run := func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), client, args...)
		command.Env = append(os.Environ(), "TANDEM_SERVER="+at.server.URL, "TANDEM_TOKEN="+at.token)
		said, err := command.CombinedOutput()
		return string(said), err
	}
	file := t.TempDir() + "/study.yaml"
	if said, err := run("example", t.TempDir()+"/example"); err != nil || !strings.Contains(said, "/example/study.yaml --directory example --watch") {
		t.Errorf("it does not say how a client tunes the example: %v: %s", err, said)
	}
	if err := os.WriteFile(file, []byte("name: far\ncommand: [\"true\"]\nobjective: {metric: accuracy, direction: maximize}\nspace: {x: {type: float, low: 0, high: 1}}\nbudget: {epochs: {min: 1, max: 1}}\nstop: {trials: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"study", "create", file}, {"study", "show", "far"}, {"workers"}, {"study", "stop", "far"}} {
		if said, err := run(args...); err != nil {
			t.Errorf("%v: %v: %s", args, err, said)
		}
	}
	far := read[protocol.StudyView](t, at.must("study", "show", "far", "--json"))
	if far.Status == protocol.StudyRunning || far.Definition.Directory != "" {
		t.Errorf("the study that the client stopped is %s, and starts in %q: no worker has the client's folder", far.Status, far.Definition.Directory)
	}
	for _, args := range [][]string{{"serve", "--listen", "x"}, {"worker"}, {"token", "create", "--scope", "user"}} {
		said, err := run(args...)
		if want := "\"tandem " + args[0] + "\" runs on Linux only"; err == nil || !strings.Contains(said, want) {
			t.Errorf("%v: %v, want %s: %s", args, err, want, said)
		}
	}
	if said, err := run("--help"); err != nil || strings.Contains(said, "\n  serve ") || strings.Contains(said, "tandem run") || !strings.Contains(said, "\n  study ") {
		t.Errorf("its help offers what it lacks: %v: %s", err, said)
	}
}
