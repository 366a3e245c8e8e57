package replayed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheReplaysDocumentIsWhatComesOut runs the example of docs/replay.md, where
// the data is, and holds what is printed to what stands there.
func TestTheReplaysDocumentIsWhatComesOut(t *testing.T) {
	t.Parallel()
	data := os.Getenv("TANDEM_DATA")
	if data == "" {
		data = "../../../../shared/data"
	}
	text, err := os.ReadFile("../../../docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(after, fence string) string {
		_, rest, found := strings.Cut(string(text), after)
		_, rest, opened := strings.Cut(rest, fence+"\n")
		body, _, closed := strings.Cut(rest, "```")
		if !found || !opened || !closed {
			t.Fatalf("docs/replay.md has no block %s after %q", fence, after)
		}
		return body
	}
	folder := t.TempDir()
	machines := filepath.Join(folder, "machines.yaml")
	if err := os.WriteFile(machines, []byte(block("Describe machines", "```yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	places := map[string]string{
		"machines.yaml": machines, "simulation_throughputs.json": filepath.Join(data, "gavel/simulation_throughputs.json"),
		"msr_seed0_103959.trace": filepath.Join(data, "gavel/traces/msr_seed0_103959.trace"),
	}
	args := strings.Fields(block("Then:", "```sh"))[4:] // behind go run ./bench/pool replay
	for i, word := range args {
		if path, is := places[word]; is {
			if _, err := os.Stat(path); err != nil {
				t.Skipf("the recorded traces are not here (TANDEM_DATA): %v", err)
			}
			args[i] = path
		}
	}
	var out strings.Builder
	if err := Run(args, &out); err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "-stretch ")
	_, after, _ = strings.Cut(after, "```\n\n```\n")
	want, _, _ := strings.Cut(after, "```")
	if strings.TrimSpace(out.String()) != strings.TrimSpace(want) {
		t.Errorf("docs/replay.md has\n%s\nand this is printed:\n%s", want, out.String())
	}
}
