package agent_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/workers/agent"
)

// logs logs files over the socket and leaves others in its folder.
func logs() int {
	for name, content := range map[string]string{"plot.png": "a picture", "b%20ad": "x"} {
		status, answer := call("PUT", "/v1/artifacts/"+name, content)
		note("logged", "%s %d %v", name, status, answer["code"])
	}
	folder := os.Getenv("TANDEM_ARTIFACT_DIR")
	for name, content := range map[string]string{"left.csv": "a,b\n", ".hidden": "x"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			panic(err)
		}
	}
	if err := os.Symlink(os.Args[0], filepath.Join(folder, "link.txt")); err != nil {
		panic(err)
	}
	return train()
}

// TestArtifactsGoToTheServer has a server that was started anew ask for the bytes again.
func TestArtifactsGoToTheServer(t *testing.T) {
	s, place := newServer(), t.TempDir()
	one, other := s.add(script(t), as("logs", place), 1), s.add(script(t), as("train", t.TempDir()), 1)
	s.forgets = 2
	work(t, s, agent.Options{})
	s.await(t, "both are finished", func() bool { return len(one.finishes) == 1 && len(other.finishes) == 1 })
	if want := map[string]string{"plot.png": "a picture", "left.csv": "a,b\n"}; !maps.Equal(one.logged, want) || len(other.logged) > 0 {
		t.Errorf("the server has %v and %v", one.logged, other.logged)
	}
	said := slices.Sorted(slices.Values(file(t, place, "logged")))
	if !slices.Equal(said, []string{"b%20ad 422 invalid", "plot.png 200 <nil>"}) {
		t.Errorf("the script was told %q", said)
	}
	for _, line := range []string{"the artifact link.txt was not kept: it is no plain file", "the artifact .hidden was not kept: "} {
		if text := one.log[1]; !strings.Contains(text, line) {
			t.Errorf("the log lacks %q: %s", line, text)
		}
	}
}
