package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryRuleCanStillBeBroken: each text that a rule replaces is in its file once,
// and each test that has to notice is there. Whoever changes such a line learns of it
// here, and not when the rules are broken the next time.
func TestEveryRuleCanStillBeBroken(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, rule := range rules {
		if len(rule.edits) == 0 || len(rule.tests) == 0 {
			t.Errorf("%s: has %d edits and %d tests", rule.name, len(rule.edits), len(rule.tests))
		}
		for _, edit := range rule.edits {
			content, err := os.ReadFile(filepath.Join(root, edit.file))
			if err != nil {
				t.Errorf("%s: %v", rule.name, err)
				continue
			}
			if count := strings.Count(string(content), edit.old); count != 1 || edit.old == edit.new {
				t.Errorf("%s: %s has this text %d times, and has to have it once: say in e2e/broken/rules.go what breaks the rule now: %s", rule.name, edit.file, count, edit.old)
			}
		}
		for _, test := range rule.tests {
			folder, pattern, _ := strings.Cut(test, " -run ")
			if !hasTest(t, filepath.Join(root, folder), regexp.MustCompile(pattern)) {
				t.Errorf("%s: %s has no test %s", rule.name, folder, pattern)
			}
		}
	}
}

var declared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// hasTest reports whether a test of the folder's package matches.
func hasTest(t *testing.T, folder string, pattern *regexp.Regexp) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range declared.FindAllSubmatch(content, -1) {
			if pattern.Match(found[1]) {
				return true
			}
		}
	}
	return false
}
