package agent_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// held are the options of an agent whose commands are in a sandbox and may note
// things in the place.
func held(place string) agent.Options {
	return agent.Options{Sandbox: sandbox.Options{Mode: sandbox.Auto, Write: []string{place}}}
}

// hasLayer skips the test where the machine lacks the layer.
func hasLayer(t *testing.T, name string) {
	t.Helper()
	found, err := sandbox.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(found, func(one sandbox.Layer) bool { return one.Name == name })
	if at < 0 || !found[at].Active {
		t.Skipf("this machine lacks the layer %s: %v", name, found)
	}
}

// pry reads a file that is not the script's.
func pry() int {
	if _, err := os.ReadFile(os.Getenv("OUTSIDE")); err != nil {
		fmt.Fprintf(os.Stderr, "PermissionError: [Errno 13] Permission denied: '%s'\n", os.Getenv("OUTSIDE"))
		return 1
	}
	fmt.Println(`{"epoch": 1, "accuracy": 1}`)
	return 0
}

// exposed notes where its socket is.
func exposed() int {
	note("socket", "%s", os.Getenv("TANDEM_SOCKET"))
	return reportAndWait()
}

// brood asks the socket from a child in a session of its own.
func brood() int {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), "ROLE=train")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if child.Run() != nil {
		return 1
	}
	return 0
}

// TestATrialTrainsInASandbox does what a trial does: it reports, keeps a
// checkpoint, is promoted, resumes, and is profiled meanwhile.
func TestATrialTrainsInASandbox(t *testing.T) {
	for _, role := range []string{"train", "brood"} {
		t.Run(role, func(t *testing.T) {
			s, place := newServer(), t.TempDir()
			trial := s.add(script(t), as(role, place), 1, 3)
			work(t, s, held(place))
			s.await(t, "the top rung is finished", func() bool { return len(trial.finishes) == 2 })
			if got := fmt.Sprint(file(t, place, "trained")); got != "[1 2 3]" || trial.outcomes() != "budget_reached budget_reached" {
				t.Fatalf("trained %s, ended %s: %v", got, trial.outcomes(), trial.finishes)
			}
			if last := trial.reports[2]; last.Metrics["sum"] != 6 {
				t.Errorf("the sum over the epochs is %v: the state was not carried on", last.Metrics["sum"])
			}
			if profile := trial.reports[1].Profile; profile == nil {
				t.Error("the epochs have no profile")
			}
		})
	}
}

func TestACommandInASandboxHasItsOwnFolders(t *testing.T) {
	s, place := newServer(), t.TempDir()
	s.add(script(t), as("show", place), 1)
	own := s.add(script(t), as("show", place), 1)
	own.lease.Environment["HOME"] = "/chosen/by/the/study"
	work(t, s, held(place))
	s.await(t, "both are finished", func() bool { return len(own.finishes) == 1 })
	values := map[string][]string{}
	for _, line := range file(t, place, "environment") {
		name, value, _ := strings.Cut(line, "=")
		values[name] = append(values[name], value)
	}
	checkpoint := values["TANDEM_CHECKPOINT_DIR"][0]
	folder := filepath.Dir(filepath.Dir(checkpoint))
	if got := values["TMPDIR"][0]; got != filepath.Join(folder, "tmp") {
		t.Errorf("TMPDIR is %s, beside the checkpoint %s", got, checkpoint)
	}
	if got := fmt.Sprint(values["HOME"]); got != "["+filepath.Join(folder, "home")+" /chosen/by/the/study]" {
		t.Errorf("HOME is %s", got)
	}
	for name := range values {
		if strings.Contains(name, "LAUNCHER") {
			t.Errorf("the launcher's variable %s is the command's", name)
		}
	}
}

func TestARefusedFileIsExplained(t *testing.T) {
	hasLayer(t, sandbox.Files)
	s, place := newServer(), t.TempDir()
	outside := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := as("pry", place)
	environment["OUTSIDE"] = outside
	refused := s.add(script(t), environment, 1)
	stop := work(t, s, held(place))
	s.await(t, "it has failed", func() bool { return len(refused.finishes) == 1 })
	stop()
	if got := refused.finishes[0]; got.Outcome != "failed" || !strings.Contains(got.Reason, "--allow-read "+outside) {
		t.Errorf("got %+v", got)
	}
	allowed := s.add(script(t), environment, 1)
	options := held(place)
	options.Sandbox.Read = []string{outside}
	work(t, s, options)
	s.await(t, "it is finished", func() bool { return len(allowed.finishes) == 1 })
	if got := allowed.finishes[0]; got.Outcome != "budget_reached" {
		t.Errorf("with --allow-read: %+v", got)
	}
}

// TestOnlyATrialsOwnProcessesUseItsSocket: this test's process runs as the same
// user, and knows where the socket is.
func TestOnlyATrialsOwnProcessesUseItsSocket(t *testing.T) {
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), as("exposed", place), 5)
	work(t, s, held(place))
	s.await(t, "it has reported", func() bool { return len(trial.reports) == 1 })
	path := file(t, place, "socket")[0]
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	for _, call := range []string{"/v1/trial", "/v1/directive"} {
		answer, err := client.Get("http://worker" + call)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got %s", call, answer.Status)
		}
	}
}

// TestKnobsReachIntoTheSandbox: what the agent sets from outside holds inside.
func TestKnobsReachIntoTheSandbox(t *testing.T) {
	s, place := newServer(), t.TempDir()
	pinned := s.add(script(t), as("pinned", place), 3)
	pinned.lease.System = map[string]space.Value{"cores": space.Int(1), "memory_gib": space.Float(8)}
	work(t, s, held(place))
	s.await(t, "it is finished", func() bool { return len(pinned.finishes) == 1 })
	if got := pinned.finishes[0]; got.Outcome != "budget_reached" {
		t.Fatalf("got %+v", got)
	}
	applied := pinned.reports[0].System
	for _, name := range []string{"cores", "memory_gib"} {
		if _, has := applied[name]; !has && slices.Contains(s.machine.Knobs, name) {
			t.Errorf("%s is not in force: %v", name, applied)
		}
	}
}
