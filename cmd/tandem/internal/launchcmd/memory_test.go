package launchcmd_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/launchcmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
)

// failing is an engine whose jobs fail at once.
const failing = `
submit: [sh, -c, 'echo "$1" >> "$0/asked"', FOLDER, "{name}"]
list: [sh, -c, 'touch "$0/asked"; while read -r name; do echo "{\"id\": \"of $name\", \"name\": \"$name\", \"state\": \"ended\", \"cause\": \"failed\", \"why\": \"no GPU is there\"}"; done < "$0/asked"', FOLDER]
cancel: ["true"]
`

// TestHoldsOutliveTheProcess: a launcher that is run again and again knows what its earlier
// processes saw, tells the server all of it, and hears who asks to try again.
func TestHoldsOutliveTheProcess(t *testing.T) {
	url, folder := site(t)
	t.Setenv("TANDEM_TOKEN", "tandem_launcher_secret")
	commands, shapes, logs := filepath.Join(folder, "commands.yaml"), filepath.Join(folder, "shapes.yaml"), filepath.Join(folder, "logs")
	for path, content := range map[string]string{commands: strings.ReplaceAll(failing, "FOLDER", folder), shapes: "shapes: [{name: cpu, cores: 4}]"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	once := func() (said string, code int, asked int, report crew.LauncherReport) {
		t.Helper()
		var out bytes.Buffer
		code = term.Execute(t.Context(), launchcmd.Command(), []string{"command", "--server", url, "--logs", logs, "--shapes", shapes, "--commands", commands, "--once"}, &out, &out)
		content, err := os.ReadFile(filepath.Join(folder, "report.json"))
		if err == nil {
			err = json.Unmarshal(content, &report)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		jobs, _ := os.ReadFile(filepath.Join(folder, "asked")) //nolint:errcheck // perhaps none
		return out.String(), code, strings.Count(string(jobs), "\n"), report
	}
	_, code, asked, report := once()
	if cpu := report.Shapes[0]; code != 0 || asked != 2 || cpu.Wanted != 2 || cpu.Pending != 2 || len(cpu.Waits) != 1 || report.Engine != "command" || len(report.Ends) != 0 {
		t.Fatalf("first: %d, %d asked, %+v", code, asked, report)
	}
	_, _, _, report = once()
	if len(report.Ends) != 2 || len(report.Over) != 2 || !strings.HasPrefix(report.Ends[0].Why, "no GPU is there") || report.Shapes[0].Hold != nil {
		t.Errorf("two that failed: %+v", report)
	}
	said, _, asked, report := once()
	if hold := report.Shapes[0].Hold; hold == nil || asked != 4 || !strings.HasPrefix(hold.Why, "no GPU is there") || len(report.Over) != 2 || len(report.Ends) != 4 {
		t.Errorf("four that failed: %d asked, %+v: %s", asked, report, said)
	}
	said, _, asked, report = once()
	if asked != 4 || report.Shapes[0].Hold == nil || len(report.Over) != 0 || len(report.Notes) != 3 || report.Notes[1].StudyID != "b" || report.Shapes[0].Wanted != 2 {
		t.Errorf("on hold: %d asked, %+v: %s", asked, report, said)
	}
	if err := os.WriteFile(filepath.Join(folder, "try-again"), []byte("cpu none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, _, asked, _ = once(); asked != 4 || !strings.Contains(said, "somebody asked to try the shape cpu again") {
		t.Errorf("asked to try again: %d asked: %s", asked, said)
	}
	if _, _, asked, report = once(); asked != 5 || report.Shapes[0].Hold != nil || report.Shapes[0].Pending != 1 {
		t.Errorf("one alone is tried: %d asked, %+v", asked, report)
	}

	kept, err := engine.OpenMemory(logs, "tandem")
	if err != nil {
		t.Fatal(err)
	}
	if said, code, _, _ := once(); code != 1 || !strings.Contains(said, "another launcher named tandem uses") {
		t.Errorf("two of a name: %d: %s", code, said)
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(logs, "launcher-tandem.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, code, asked, _ := once(); code != 1 || asked != 5 || !strings.Contains(said, "launcher-tandem.json is damaged") {
		t.Errorf("a damaged memory: %d: %s", code, said)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, _, asked, report := once(); asked != 7 || len(report.Ends) != 0 || slices.ContainsFunc(report.Shapes, func(shape crew.LaunchShape) bool { return shape.Hold != nil }) {
		t.Errorf("without a memory what has ended says nothing: %d asked, %+v", asked, report)
	}
}
