package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/agent/process"
)

// tell prints its secret in pieces, on both streams, and fails.
func tell() int {
	value := os.Getenv("HF_TOKEN")
	fmt.Print("the token is ", value[:4])
	fmt.Println(value[4:])
	fmt.Fprintln(os.Stderr, "refused with "+value)
	return 1
}

// TestTheOwnerDecidesWhatRuns: what is not allowed is given back with the reason,
// and is not the trial's failure.
func TestTheOwnerDecidesWhatRuns(t *testing.T) {
	command, folder := script(t), t.TempDir()
	inside := filepath.Join(folder, "inside")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(folder, filepath.Join(inside, "out")); err != nil {
		t.Fatal(err)
	}
	program := command[0]
	for name, test := range map[string]struct {
		policy    process.Policy
		pass      []string
		arguments []string
		directory string
		command   []string // instead of the script
		refused   string   // part of the reason; empty: it runs
	}{
		"everything":              {},
		"the program":             {policy: process.Policy{Commands: []string{program}}, pass: []string{"*"}},
		"a pattern of programs":   {policy: process.Policy{Commands: []string{filepath.Dir(program) + "/*"}}, pass: []string{"*"}},
		"another program":         {policy: process.Policy{Commands: []string{"python train.py"}}, pass: []string{"*"}, refused: "--allow-command"},
		"more arguments":          {policy: process.Policy{Commands: []string{program}}, pass: []string{"*"}, arguments: []string{"x"}, refused: "--allow-command"},
		"any arguments":           {policy: process.Policy{Commands: []string{program + " **"}}, pass: []string{"*"}, arguments: []string{"x", "y"}},
		"one of several":          {policy: process.Policy{Commands: []string{"python", program + " x"}}, pass: []string{"*"}, arguments: []string{"x"}},
		"variables of the study":  {policy: process.Policy{Commands: []string{program}}, pass: []string{"ROLE", "PLACE"}, refused: "--pass-env GORACE"},
		"the folder":              {policy: process.Policy{Directories: []string{folder}}, directory: inside},
		"another folder":          {policy: process.Policy{Directories: []string{inside}}, directory: folder, refused: "--allow-directory"},
		"a folder through a link": {policy: process.Policy{Directories: []string{inside}}, directory: filepath.Join(inside, "out"), refused: "--allow-directory"},
		"a program that is missing": {
			policy: process.Policy{Commands: []string{"trainer-that-is-missing **"}}, pass: []string{"*"}, command: []string{"trainer-that-is-missing", "x"},
			refused: `"trainer-that-is-missing" is in no folder of the PATH`,
		},
		"what mends that": {
			policy: process.Policy{Commands: []string{"trainer-that-is-missing"}}, pass: []string{"*"}, command: []string{"trainer-that-is-missing"},
			refused: "start the worker with --path and its folder",
		},
		"a path that is missing": {
			policy: process.Policy{Commands: []string{folder + "/trainer"}}, pass: []string{"*"}, command: []string{folder + "/trainer"},
			refused: folder + "/trainer does not exist",
		},
		"missing, and not allowed": {policy: process.Policy{Commands: []string{program}}, pass: []string{"*"}, command: []string{"trainer-that-is-missing"}, refused: "--allow-command"},
		"a folder that is missing": {policy: process.Policy{Directories: []string{folder}}, directory: filepath.Join(inside, "later"), refused: "later does not exist"},
		"missing, in another folder": {
			policy: process.Policy{Directories: []string{inside}}, directory: filepath.Join(folder, "later"), refused: "--allow-directory",
		},
		"a name that begins alike": {policy: process.Policy{Directories: []string{inside}}, directory: inside + "-not", refused: "--allow-directory"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.directory == inside+"-not" {
				if err := os.MkdirAll(test.directory, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			s, place := newServer(), t.TempDir()
			command := append(script(t), test.arguments...)
			if test.command != nil {
				command = test.command
			}
			one := s.add(command, as("lines", place), 1)
			one.hold, one.lease.Directory = true, test.directory
			work(t, s, agent.Options{Policy: test.policy, PassEnvironment: test.pass})
			s.await(t, "it has ended", func() bool { return len(one.finishes) == 1 })
			got := one.finishes[0]
			if test.refused == "" && got.Outcome != protocol.BudgetReached {
				t.Errorf("got %+v", got)
			}
			if test.refused != "" && (got.Outcome != protocol.Refused || !strings.Contains(got.Reason, test.refused) || len(one.reports) > 0) {
				t.Errorf("got %+v after %d reports, want a refusal that names %s", got, len(one.reports), test.refused)
			}
		})
	}
	for flag, policy := range map[string]process.Policy{
		"--allow-command":   {Commands: []string{"python [a"}},
		"begin with":        {Commands: []string{"**"}},
		"--allow-directory": {Directories: []string{filepath.Join(folder, "missing")}},
	} {
		if _, err := agent.New(agent.Options{Server: newServer(), Policy: policy}); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%+v: got %v", policy, err)
		}
	}
}

func TestSecretsReachTheScriptAndNotTheServer(t *testing.T) {
	const value = "hf_0123456789"
	s, place := newServer(), t.TempDir()
	told := s.add(script(t), as("tell", place), 1)
	told.lease.Secrets = []string{"HF_TOKEN"}
	work(t, s, agent.Options{Secrets: map[string]string{"HF_TOKEN": value, "OTHER": "another-one"}})
	s.await(t, "it has failed", func() bool { return len(told.finishes) == 1 })
	if got := told.finishes[0].Reason; strings.Contains(got, value) || !strings.Contains(got, "refused with ***") {
		t.Errorf("the reason is %q", got)
	}
	// The streams are read beside each other.
	if got := told.log[1]; strings.Contains(got, value) || !strings.Contains(got, "the token is ") || strings.Count(got, "***") != 2 {
		t.Errorf("the log is %q", got)
	}
	lacking := s.add(script(t), as("tell", place), 1)
	lacking.hold, lacking.lease.Secrets = true, []string{"MISSING"}
	s.await(t, "it is refused", func() bool { return len(lacking.finishes) == 1 })
	if got := lacking.finishes[0]; got.Outcome != protocol.Refused || !strings.Contains(got.Reason, "--secret MISSING=FILE") {
		t.Errorf("got %+v", got)
	}
}

func TestReadSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FROM_HERE", "from-the-environment")
	t.Setenv("SHORT", "abc")
	got, err := process.ReadSecrets([]string{"TOKEN=" + file, "FROM_HERE"})
	if err != nil || got["TOKEN"] != "from-a-file" || got["FROM_HERE"] != "from-the-environment" || len(got) != 2 {
		t.Errorf("got %d secrets, %v", len(got), err)
	}
	for _, wrong := range []string{"MISSING_HERE", "TOKEN=" + file + "-not", "SHORT", "", "=" + file, "TANDEM_TOKEN=" + file} {
		if _, err := process.ReadSecrets([]string{wrong}); err == nil || !strings.Contains(err.Error(), "--secret") {
			t.Errorf("%q: got %v", wrong, err)
		}
	}
}
