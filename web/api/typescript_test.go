package api_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

// TestAGeneratedTypeScriptClient generates a client from docs/openapi.json, checks
// clients/typescript/walk.ts against it with all strictness, mistakes that have
// to be found included, and runs it against a real server.
func TestAGeneratedTypeScriptClient(t *testing.T) {
	t.Parallel()
	source, err := filepath.Abs("../../clients/typescript")
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(source, "node_modules")
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed: the TypeScript client is not tried")
	}
	if _, err := os.Stat(filepath.Join(modules, ".bin", "tsc")); err != nil {
		t.Skip("the packages of clients/typescript are not installed (npm ci there): the TypeScript client is not tried")
	}
	if exec.CommandContext(t.Context(), "node", "-e", "process.exit(typeof crypto === 'undefined' ? 1 : 0)").Run() != nil {
		t.Skip("this node is older than version 20: the TypeScript client is not tried")
	}
	folder := t.TempDir()
	for _, name := range []string{"walk.ts", "tsconfig.json", "package.json"} {
		if err := os.WriteFile(filepath.Join(folder, name), read(t, filepath.Join(source, name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	document, err := filepath.Abs(golden)
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t)
	program := func(name string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, name, args...)
		command.Dir = folder
		command.Env = append(os.Environ(), "TANDEM_SERVER="+s.server.URL, "TANDEM_TOKEN="+s.secrets[auth.Admin], "NO_COLOR=1")
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, output)
		}
		return string(output)
	}
	program(filepath.Join(modules, ".bin", "openapi-typescript"), document, "--default-non-nullable=false", "-o", "tandem.d.ts")
	types := string(read(t, filepath.Join(folder, "tandem.d.ts")))
	for _, weak := range []string{"Record<string, never>", "unknown[]"} {
		if n := strings.Count(types, weak) - strings.Count(types, "\nexport type webhooks = "+weak) - strings.Count(types, "\nexport type $defs = "+weak); n > 0 {
			t.Errorf("%d types of the generated client are %s, which nobody can use", n, weak)
		}
	}
	program(filepath.Join(modules, ".bin", "tsc"))
	said := strings.TrimSpace(program("node", "walk.js"))
	t.Log(said)
	var result struct {
		Events      map[string]int `json:"events"`
		Leaderboard []int          `json:"leaderboard"`
		Best        float64        `json:"best"`
		Taken       string         `json:"taken"`
		Wrong       []string       `json:"wrong"`
	}
	if err := json.Unmarshal([]byte(said[strings.LastIndexByte(said, '\n')+1:]), &result); err != nil {
		t.Fatalf("its last line is not what it found: %v", err)
	}
	answer, err := s.client(auth.Viewer).Recommendation(t.Context(), "from-typescript")
	if err != nil || answer.Status != protocol.StudyCompleted || answer.Best == nil || float64(answer.Best.Value) != result.Best {
		t.Errorf("the server recommends %+v (%v), and the client read %g", answer.Best, err, result.Best)
	}
	if len(result.Leaderboard) != 3 || result.Leaderboard[0] != answer.Best.Number || result.Events["report"] != 6 || result.Events["study_created"] != 1 {
		t.Errorf("the client saw the leaderboard %v and the events %v", result.Leaderboard, result.Events)
	}
	if result.Taken != "conflict" || !slices.Equal(result.Wrong, []string{"budget.eta"}) {
		t.Errorf("the client saw the problems %q and %q", result.Taken, result.Wrong)
	}
}
