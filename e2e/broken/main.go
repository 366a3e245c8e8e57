// Command broken tests the tests: it breaks one rule of ours at a time, in a
// copy of the source, and runs what must notice. The exit code is 1 if a broken
// rule was not noticed, or could not be broken because its code has changed.
//
//	scripts/broken-rules              # all of them; some minutes
//	scripts/broken-rules fencing      # those whose name has the word in it
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// edit replaces a text that stands in a file once.
type edit struct{ file, old, new string }

// rule is a promise, what breaks it, and the tests that must fail then.
type rule struct {
	name  string
	edits []edit
	tests []string // "package -run pattern", one of which must fail
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	word := ""
	if len(os.Args) > 1 {
		word = os.Args[1]
	}
	if err := run(ctx, word); err != nil {
		fmt.Fprintln(os.Stderr, "broken-rules:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, word string) error {
	folder, err := os.MkdirTemp("", "tandem-broken-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := copySource(ctx, folder); err != nil {
		return err
	}
	var failures []error
	count := 0
	for _, one := range rules {
		if !strings.Contains(one.name, word) {
			continue
		}
		count++
		began := time.Now()
		noticed, err := one.breakIn(ctx, folder)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failures = append(failures, fmt.Errorf("%s: %w", one.name, err))
			fmt.Printf("%-40s %v\n", one.name, err)
		default:
			fmt.Printf("%-40s noticed by %s (%.0f s)\n", one.name, noticed, time.Since(began).Seconds())
		}
	}
	if count == 0 {
		return fmt.Errorf("no rule has %q in its name", word)
	}
	return errors.Join(failures...)
}

// copySource copies the files that belong to the source.
func copySource(ctx context.Context, into string) error {
	list, err := exec.CommandContext(ctx, "git", "ls-files", "-co", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("list the source: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSpace(string(list)), "\n") {
		info, err := os.Lstat(name)
		if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(into, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// breakIn breaks the rule in the copy, returns the test that noticed, and mends
// the copy.
func (r rule) breakIn(ctx context.Context, folder string) (noticed string, err error) {
	for _, e := range r.edits {
		mend, err := e.apply(folder)
		if err != nil {
			return "", err
		}
		defer mend()
	}
	for _, test := range r.tests {
		failed, err := fails(ctx, folder, test)
		if err != nil || failed {
			return test, err
		}
	}
	return "", fmt.Errorf("is broken, and none of these noticed: %s", strings.Join(r.tests, "; "))
}

// apply makes the edit and returns what takes it back.
func (e edit) apply(folder string) (mend func(), err error) {
	path := filepath.Join(folder, e.file)
	before, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if count := strings.Count(string(before), e.old); count != 1 {
		return nil, fmt.Errorf("cannot be broken like this any more: %s has this text %d times, say in e2e/broken what breaks it now: %s", e.file, count, e.old)
	}
	after := strings.Replace(string(before), e.old, e.new, 1)
	return func() { _ = os.WriteFile(path, before, 0o600) }, os.WriteFile(path, []byte(after), 0o600) // the copy is thrown away
}

// fails runs tests and reports whether one of them failed. What does not build,
// or has no test, is an error.
func fails(ctx context.Context, folder, test string) (bool, error) {
	args := append([]string{"test", "-trimpath", "-count=1", "-timeout", "5m"}, strings.Fields(test)...)
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = folder
	output, err := command.CombinedOutput()
	text := string(output)
	switch {
	case err == nil && strings.Contains(text, "no tests to run"):
		return false, fmt.Errorf("there is no test %s", test)
	case err == nil:
		return false, nil
	case strings.Contains(text, "--- FAIL"), strings.Contains(text, "panic: test timed out"):
		return true, nil
	}
	return false, fmt.Errorf("go test %s: %w\n%s", test, err, text[max(0, len(text)-2000):])
}
