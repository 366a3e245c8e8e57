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

// Each page is in a menu of the site that scripts/docs builds, once.
func TestEveryPageIsInAMenuOfTheSite(t *testing.T) {
	content, err := os.ReadFile("scripts/docs-site/mkdocs.yml")
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	err = filepath.WalkDir("docs", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		pages++
		if n := strings.Count(string(content), "\n      - "+strings.TrimPrefix(path, "docs/")+"\n"); n != 1 {
			t.Errorf("scripts/docs-site/mkdocs.yml names %s %d times", path, n)
		}
		return nil
	})
	if menus := strings.Count(string(content), "\n      - "); err != nil || menus != pages {
		t.Errorf("the site has %d pages in its menus, and docs has %d: %v", menus, pages, err)
	}
}

// TestTheFilesThatDocumentsNameExist holds the pages that lead a newcomer through
// the code to the folders and files that there are. A name without a folder is a
// file in one of the folders that the same line names.
func TestTheFilesThatDocumentsNameExist(t *testing.T) {
	quoted := regexp.MustCompile("`([a-z][a-z0-9_./-]*)`")
	file := regexp.MustCompile(`^[a-z0-9_/.-]+\.(go|py|sh|yaml|service|json|md)$`)
	top := map[string]bool{}
	for _, name := range topLevel {
		top[name] = true
	}
	for _, document := range []string{"docs/architecture.md", "CONTRIBUTING.md"} {
		content, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		checked := 0
		for number, line := range strings.Split(string(content), "\n") {
			folders := []string{"."}
			for _, match := range quoted.FindAllStringSubmatch(line, -1) {
				name := strings.TrimSuffix(match[1], "/")
				first, _, _ := strings.Cut(name, "/")
				switch {
				case top[first]:
					if info, err := os.Stat(name); err != nil {
						t.Errorf("%s, line %d, names %s: %v", document, number+1, name, err)
					} else if info.IsDir() {
						folders = append(folders, name)
					} else {
						folders = append(folders, filepath.Dir(name))
					}
					checked++
				case file.MatchString(name):
					found := false
					for _, folder := range folders {
						if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
							found = true
						}
					}
					if !found {
						t.Errorf("%s, line %d, names %s, which is in none of %v", document, number+1, name, folders)
					}
					checked++
				}
			}
		}
		if checked == 0 {
			t.Errorf("%s names no file: what did the check read?", document)
		}
	}
}
