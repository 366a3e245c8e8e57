package tandem_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// runs are the ways to turn data into a program that have cost others most:
// pickles and what is built on them, YAML with tags, gob, plugins, eval.
var runs = regexp.MustCompile(`\b(cloudpickle|c?[pP]ickle|dill|joblib|shelve|marshal)\b|\byaml\.(load|unsafe_load|full_load)\(|\ballow_pickle\s*=\s*True|\b(np|numpy)\.load\([^)]*pickle|\btorch\.load\(|(^|[^.\w])(eval|exec)\(|"encoding/gob"|"plugin"`)

// runsSafely are lines in which the same words are harmless.
var runsSafely = regexp.MustCompile(`torch\.load\(.*(weights_only=True|\*\*LOAD_SAFELY)|allow_pickle=False|inspect\.signature\(torch\.load\)|def (eval|exec)\(`)

// trusted are files that read what others have published as pickles, and say so.
var trusted = map[string]string{
	"bench/pipetune/scripts/resnet.py": "CIFAR-10 is published as pickles; a benchmark reads the user's own download",
}

// What comes from elsewhere is never run: no format that can carry code is read
// by anything of ours, also not by examples and benchmarks, which people copy.
func TestNothingIsUnpickled(t *testing.T) {
	looked := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !slices.Contains([]string{".go", ".py", ".pyi"}, filepath.Ext(path)) || strings.HasPrefix(path, "house_") {
			return nil
		}
		looked++
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for number, line := range strings.Split(string(content), "\n") {
			if filepath.Ext(path) == ".go" && !strings.Contains(line, `"encoding/gob"`) && !strings.Contains(line, `"plugin"`) {
				continue // Go's other words of that kind are harmless
			}
			if runs.MatchString(line) && !runsSafely.MatchString(line) && trusted[filepath.ToSlash(path)] == "" {
				t.Errorf("%s:%d can run what it reads: %s", path, number+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked < 500 {
		t.Errorf("only %d files were looked at", looked)
	}
	for _, line := range []string{"import pickle", "cloudpickle.loads(x)", "torch.load(path)", "yaml.load(f)", "x = eval(text)", "np.load(f, allow_pickle=True)", "joblib.load(f)", `	"encoding/gob"`} {
		if !runs.MatchString(line) || runsSafely.MatchString(line) {
			t.Errorf("the test does not find %q", line)
		}
	}
}

// Secrets are drawn from the kernel. Numbers that can be foreseen are for
// searches and for spreading retries; none are drawn where secrets are made.
func TestSecretsAreNotDrawnFromSeeds(t *testing.T) {
	for _, one := range sources(t) {
		if one.folder == "store/lossydisk" || one.folder == "store/storetest" {
			continue // tests of others, which are repeated from their seeds
		}
		if one.test || !strings.HasPrefix(one.folder, "web/") && !strings.HasPrefix(one.folder, "store/") && !strings.HasPrefix(one.folder, "cmd/tandem") {
			continue
		}
		for _, path := range imports(one.file) {
			if path == "math/rand" || path == "math/rand/v2" {
				t.Errorf("%s imports %s: use crypto/rand here", one.path, path)
			}
		}
	}
}
