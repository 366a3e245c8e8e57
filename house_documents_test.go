package tandem_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheTestsThatDocumentsNameExist holds the tables that say which test shows
// what to the tests that there are.
func TestTheTestsThatDocumentsNameExist(t *testing.T) {
	known := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+|Benchmark\w+)\(|^def (test_\w+)\(`)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (strings.HasPrefix(name, ".") && name != "." || name == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") && !(strings.HasPrefix(entry.Name(), "test_") && strings.HasSuffix(path, ".py")) {
			return nil
		}
		content, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			return err
		}
		for _, found := range declared.FindAllStringSubmatch(string(content), -1) {
			known[found[1]+found[2]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\b(Test[A-Z]\w+|Fuzz[A-Z]\w+|test_[a-z]\w+)\b`)
	documents := []string{"docs/comparison.md", "docs/reliability.md"}
	for _, document := range documents {
		content, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		names := named.FindAllString(string(content), -1)
		if len(names) < 20 {
			t.Errorf("%s names %d tests: it should name those that show what it says", document, len(names))
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s names %s, which is no test", document, name)
			}
		}
	}
}
