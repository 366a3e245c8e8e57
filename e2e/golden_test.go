package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/e2e/launch"
)

// TestADataFolderOfAnEarlierBuildGoesOn opens what an earlier build has stored
// (testdata/golden.sh). It must be sound, every search must decide again what it
// decided, and an export must still have everything that it had.
func TestADataFolderOfAnEarlierBuildGoesOn(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/golden-*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no golden data folder: %v", err)
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if said, err := exec.CommandContext(t.Context(), "tar", "-C", folder, "-xzf", archive).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			goesOn(t, filepath.Join(folder, "data"))
		})
	}
}

func goesOn(t *testing.T, data string) {
	t.Helper()
	exports := filepath.Join(filepath.Dir(data), "exports")
	if err := os.Rename(filepath.Join(data, "exports"), exports); err != nil {
		t.Fatal(err)
	}
	if got := cli(t, nil, "verify", data); got.code != 0 {
		t.Fatalf("verify: %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	server, err := launch.Serve(binary, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	made := cli(t, nil, "token", "create", "--scope", "admin", "--name", "golden", "--data", data, "--json")
	var token struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(made.stdout), &token); err != nil || token.Token == "" {
		t.Fatalf("token: %v\n%s%s", err, made.stdout, made.stderr)
	}
	environment := []string{"TANDEM_SERVER=" + server.URL, "TANDEM_TOKEN=" + token.Token}
	kept, err := filepath.Glob(filepath.Join(exports, "*.json"))
	if err != nil || len(kept) < 9 {
		t.Fatalf("%d exports: %v", len(kept), err)
	}
	for _, path := range kept {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		before, err := os.ReadFile(strings.TrimSuffix(path, ".json") + ".replay")
		if err != nil {
			t.Fatal(err)
		}
		if now := cli(t, environment, "study", "replay", name, "--json"); now.code != 0 || now.stdout != string(before) {
			t.Errorf("replay of %s: %s%s, and it was %s", name, now.stdout, now.stderr, before)
		}
		again := filepath.Join(exports, name+".again")
		if got := cli(t, environment, "study", "export", name, "--format", "json", "--output", again); got.code != 0 {
			t.Fatalf("export of %s: %s%s", name, got.stdout, got.stderr)
		}
		had, has := document(t, path), document(t, again)
		if missing := lost("", had, has); len(missing) > 0 {
			t.Errorf("the export of %s has no longer what it had: %s", name, strings.Join(missing[:min(10, len(missing))], "; "))
		}
	}
}

func document(t *testing.T, path string) any {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var whole any
	if err := json.Unmarshal(content, &whole); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return whole
}

// computed are fields that are worked out from what is stored. They may change with
// the version, which the changelog then says.
var computed = []string{"rank", "recommendation", "progress"}

// lost names what the first document has and the second one has not, or has with
// another value. What is new in the second one is no loss.
func lost(at string, had, has any) []string {
	switch had := had.(type) {
	case map[string]any:
		now, ok := has.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %v", at, has)}
		}
		var missing []string
		for name, value := range had {
			if slices.Contains(computed, name) {
				continue
			}
			missing = append(missing, lost(at+"."+name, value, now[name])...)
		}
		return missing
	case []any:
		now, ok := has.([]any)
		if !ok || len(now) != len(had) {
			return []string{fmt.Sprintf("%s has %d entries and not %d", at, len(now), len(had))}
		}
		var missing []string
		for i := range had {
			missing = append(missing, lost(fmt.Sprintf("%s[%d]", at, i), had[i], now[i])...)
		}
		return missing
	default:
		if !reflect.DeepEqual(had, has) {
			return []string{fmt.Sprintf("%s is %v and was %v", at, has, had)}
		}
		return nil
	}
}
