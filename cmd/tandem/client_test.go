package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/studycmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

func TestAWorkerWithoutATokenSaysSoAtOnce(t *testing.T) {
	t.Setenv("TANDEM_TOKEN", "")
	var stdout, stderr bytes.Buffer
	// Nobody listens there: a worker with a token would wait for its server.
	code := term.Execute(t.Context(), rootCommand(), []string{"worker", "--server", "http://127.0.0.1:1", "--scratch", t.TempDir()}, &stdout, &stderr)
	if code != term.ExitUsage || !strings.Contains(stderr.String(), "set TANDEM_TOKEN") {
		t.Errorf("code %d, %s", code, stderr.String())
	}
}

// A sign-in ends after a week.
func TestARefusedTokenSaysHowAnotherIsHad(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"code":"unauthorized","detail":"it has expired"}`)
	}))
	t.Cleanup(server.Close)
	t.Setenv("TANDEM_TOKEN", "old")
	var stderr bytes.Buffer
	code := term.Execute(t.Context(), rootCommand(), []string{"study", "watch", "lenet", "--server", server.URL}, io.Discard, &stderr)
	for _, want := range []string{"it has expired", "TANDEM_TOKEN", "tandem login", "tandem token create"} {
		if code != term.ExitFailed || !strings.Contains(stderr.String(), want) {
			t.Errorf("code %d, without %q: %s", code, want, stderr.String())
		}
	}
}

func TestMistypedValuesAreToldInPlainWords(t *testing.T) {
	for want, args := range map[string][]string{
		`"--gpus" flag: it must be a whole number`:         {"quota", "set", "ada", "--gpus", "two"},
		`"--for" flag: time: missing unit`:                 {"reservation", "make", "--for", "8"},
		"write one such as 90m or 8h":                      {"reservation", "make", "--for", "7d"},
		"tandem: list the audit log, of the server's":      {"audit", "verify", "--data", t.TempDir()},
		`there is no command "tandem study rename"`:        {"study", "rename", "lenet", "--to", "bob"},
		`"tandem plan"; did you mean "tandem study plan"?`: {"plan", "study.yaml"},
		`"tandem list"; did you mean "tandem study list"?`: {"list"},
		`"tandem serv"; did you mean "tandem serve"?`:      {"serv"},
		"say who gets it: --to USER":                       {"study", "transfer", "lenet"},
		`unknown flag: --tri; did you mean --trials?`:      {"quota", "set", "ada", "--tri", "3"},
		"tandem: --token-file: ":                           {"study", "list", "--token-file", filepath.Join(t.TempDir(), "none")},
	} {
		var stderr bytes.Buffer
		if code := term.Execute(t.Context(), rootCommand(), args, io.Discard, &stderr); code == term.ExitOK || !strings.Contains(stderr.String(), want) || strings.Contains(stderr.String(), "strconv") {
			t.Errorf("%q ends with code %d: %s", args, code, stderr.String())
		}
	}
}

func TestAPlanCountsWhatItsBudgetCounts(t *testing.T) {
	for limits, want := range map[string]string{
		"seconds: {min: 1, max: 5}": "Expected: 6 trials, 14s of training; the same trials at full budget: 30s of training\n",
		"joules: {min: 1, max: 5}":  "Expected: 6 trials, 14 J of training; the same trials at full budget: 30 J of training\n",
		"epochs: {min: 1, max: 3}":  "Expected: 6 trials, 10 epochs, 10.0 data passes (four of five studies make 8 to 14); the same trials at full budget: 18 epochs, 18.0 data passes\n",
	} {
		file := filepath.Join(t.TempDir(), "study.yaml")
		text := "name: planned\ncommand: [train]\nobjective: {metric: loss, direction: minimize}\nspace: {x: {type: float, low: 0, high: 1}}\nbudget: {" + limits + "}\nstop: {trials: 6}\nsearch: {method: random}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout bytes.Buffer
		if code := term.Execute(t.Context(), rootCommand(), []string{"study", "plan", file}, &stdout, io.Discard); code != term.ExitOK || !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: code %d, without %q:\n%s", limits, code, want, stdout.String())
		}
	}
}

func TestThePlanOfAGridCountsItsPoints(t *testing.T) {
	const whole = "name: planned\ncommand: [train]\nobjective: {metric: loss, direction: minimize}\nspace: {x: {type: float, low: 0, high: 1}, y: {values: [a, b]}, z: {type: float, low: 0, high: 1, when: {y: a}}}\nforbidden: [{x: 0, y: b}]\nbudget: {epochs: 3}\n"
	for search, want := range map[string]string{
		"search: {method: grid, grid_points: 3}\nstop: {seconds: 60}\n":                      "Expected: 11 trials, 33 epochs,", // 3 times 3 of a, and 2 of b
		"search: {method: grid, grid_points: 3}\nstop: {trials: 40}\n":                       "Expected: 11 trials, 33 epochs,",
		"search: {method: grid, grid_points: 3}\nstop: {trials: 4}\n":                        "Expected: 4 trials, 12 epochs,",
		"search: {method: grid, grid_points: 3, initial: [{x: 0.3}]}\nstop: {seconds: 60}\n": "Expected: 12 trials, 36 epochs,",
		"search: {method: random}\nstop: {seconds: 60}\n":                                    "Nothing bounds the number of trials",
	} {
		file := filepath.Join(t.TempDir(), "study.yaml")
		if err := os.WriteFile(file, []byte(whole+search), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		if code := term.Execute(t.Context(), rootCommand(), []string{"study", "plan", file}, &stdout, &stderr); code != term.ExitOK || !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: code %d, without %q:\n%s%s", search, code, want, stdout.String(), stderr.String())
		}
	}
}

func TestNoRecommendationIsAnExitCode(t *testing.T) {
	for status, want := range map[string]int{"failed": 3, "stopped": 3, "running": term.ExitOK} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"study":"lenet","status":"`+status+`","notes":[]}`)
		}))
		t.Cleanup(server.Close)
		t.Setenv("TANDEM_TOKEN", "some")
		for _, more := range [][]string{nil, {"--json"}} {
			var stdout bytes.Buffer
			code := term.Execute(t.Context(), rootCommand(), append([]string{"study", "recommend", "lenet", "--server", server.URL}, more...), &stdout, io.Discard)
			if code != want || stdout.Len() == 0 {
				t.Errorf("%s, %v: code %d, not %d: %s", status, more, code, want, stdout.String())
			}
		}
	}
}

// The reason of a failure has the end of the script's standard error: lines of its own
// above, and only its first one in the history.
func TestATracebackStaysInLines(t *testing.T) {
	const reason = "exit code 1: ValueError: no\nTraceback:\n  File train.py"
	detail := protocol.TrialDetail{Events: []protocol.Event{{State: "queued", Reason: "new"}, {State: "failed", Reason: reason}}}
	detail.Trial.State, detail.Trial.Reason = trial.Failed, reason
	var out bytes.Buffer
	if err := studycmd.PrintTrial(&out, detail); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "failed: exit code 1: ValueError: no\n    Traceback:\n      File train.py\n") || !strings.Contains(text, "failed          exit code 1: ValueError: no\n") || !strings.Contains(text, "queued          new\n") {
		t.Error(text)
	}
}
