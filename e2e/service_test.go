package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/trial"
)

const serviceStudy = `
name: %s
service:
  start: [python3, server.py, "{port}", "{threads}"]
  ready: {http: "http://127.0.0.1:{port}/"}
  load: [python3, get.py, "{port}", /]
  live: [cache]
  apply: [python3, get.py, "{port}", "/cache/{cache}"]
environment: {LEDGER: %s}
objective: {metric: tps, direction: maximize}
constraints: {metric: p99_ms, max: 45}
space:
  threads: {type: ordinal, values: [1, 2, 4, 8]}
  cache: {type: ordinal, values: [1, 16, 64]}
budget: {epochs: {min: 1, max: 3}}
search: {method: grid, seed: 7, initial: [{threads: 1, cache: 16}]}
`

// newService is a study of a service in a folder of its own. Its ledger has each start of
// the service and each window.
func newService(t *testing.T, name string, replace ...string) study {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed: the service is a Python program")
	}
	s := study{t: t, name: name, file: filepath.Join(t.TempDir(), "study.yaml"), ledger: filepath.Join(ledgers(t), name)}
	err := os.CopyFS(filepath.Dir(s.file), os.DirFS("testdata/service"))
	if err == nil {
		err = os.WriteFile(s.file, []byte(strings.NewReplacer(replace...).Replace(fmt.Sprintf(serviceStudy, name, s.ledger))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// count is how many lines of the ledger begin so.
func (s study) count(begin string) (count int) {
	for _, line := range launch.Lines(s.ledger) {
		if strings.HasPrefix(line, begin) {
			count++
		}
	}
	return count
}

// TestAServiceIsTuned tries twelve settings of a service, of which the fastest misses the
// constraint. One parameter is changed while it runs, the other by a new start.
func TestAServiceIsTuned(t *testing.T) {
	t.Parallel()
	s := newService(t, "service")
	at := newSite(t)
	worker := at.worker()
	at.must("study", "create", s.file)
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	best := found.Recommendation.Best
	if best == nil || best.Violation != 0 || best.Params["threads"].String() != "4" || best.Params["cache"].String() != "64" {
		t.Fatalf("recommended is %+v: %s", best, found.Study.Reason)
	}
	if m := found.Recommendation.Metrics; m["windows"] != 3 || m["tps.half_width"] <= 0 || m["tps.half_width"] > m["tps"] {
		t.Errorf("it was measured as %v", m)
	}
	if again := found.Study.Progress.Repeats; again < 4 || again >= 14 {
		t.Errorf("%d repeats: they end once the settings can be told apart", again)
	}
	if !claims(found, "better than your present settings (trial 0): 95% interval ") {
		t.Errorf("the notes are %q", found.Recommendation.Notes)
	}
	books, runs := at.books(s.name), 0
	reported := books.reports(t)
	for _, tr := range books.Trials {
		reports := reported[tr.ID]
		for i, report := range reports {
			for _, name := range []string{"threads", "cache"} {
				if set, _ := tr.Configuration[name].Number(); float64(report.Metrics[name]) != set {
					t.Errorf("trial %d has %s %v, and the service ran with %v", tr.Number, name, set, report.Metrics[name])
				}
			}
			if report.Metrics["windows"] != trial.Float(report.Epoch) {
				t.Errorf("trial %d has %v windows after epoch %d", tr.Number, report.Metrics["windows"], report.Epoch)
			}
			if i == 0 || report.Rung != reports[i-1].Rung {
				runs++
			}
		}
	}
	if starts := s.count("started "); starts < 4 || starts >= runs {
		t.Errorf("%d runs of trials took %d starts of the service: a live parameter needs none", runs, starts)
	}
	if counted, windows := found.Study.Progress.Epochs, s.count("window "); windows != counted+runs {
		t.Errorf("%d windows were measured, %d count, and one of each of %d runs warms up", windows, counted, runs)
	}
	if err := worker.Stop(); err != nil {
		t.Errorf("the worker ended with %v", err)
	}
	s.allGone()
}

// claims reports whether a note of the recommendation says so.
func claims(found result, what string) bool {
	return slices.ContainsFunc(found.Recommendation.Notes, func(note string) bool { return strings.Contains(note, what) })
}

// TestAServiceWhoseSettingsDoNothingIsNotImproved is the placebo.
func TestAServiceWhoseSettingsDoNothingIsNotImproved(t *testing.T) {
	t.Parallel()
	s := newService(t, "placebo", `"{threads}"]`, `"{threads}", placebo]`, "constraints: {metric: p99_ms, max: 45}", "", "max: 3}", "max: 1}")
	got := cli(t, nil, "run", s.file, "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--slots", "1", "--json")
	found := read[result](t, got.stdout)
	if claims(found, "better than your present settings (") || !claims(found, "no difference found to your present settings (trial 0)") && !claims(found, "no settings were found that are better") {
		t.Errorf("the notes are %q", found.Recommendation.Notes)
	}
}

// allGone waits until no process of the service is there.
func (s study) allGone() {
	s.t.Helper()
	for _, line := range launch.Lines(s.ledger) {
		var pid int
		if _, err := fmt.Sscanf(line, "started %d", &pid); err == nil {
			until(s.t, "the end of the service", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
		}
	}
}

// TestAKilledWorkerLeavesNoService kills a worker between two windows. The service ends
// with it, and the next worker goes on after the windows that were measured. Its settings
// are in a file and in the environment.
func TestAKilledWorkerLeavesNoService(t *testing.T) {
	t.Parallel()
	s := newService(t, "service-killed",
		`[python3, server.py, "{port}", "{threads}"]`, `[sh, -c, 'exec python3 server.py $PORT $(cat "$0/conf/threads")', "{directory}"]`,
		`{http: "http://127.0.0.1:{port}/"}`, `{tcp: "127.0.0.1:{port}"}`,
		"  live:", "  environment: {PORT: \"{port}\"}\n  files: {conf/threads: \"{threads}\"}\n  live:",
		"{min: 1, max: 3}", "12", "method: grid, seed: 7, initial: [{threads: 1, cache: 16}]", "method: random", "search:", "stop: {trials: 1}\nsearch:")
	at := newSite(t, "--lease-seconds", "4", "--heartbeat-seconds", "1")
	worker := at.worker()
	at.must("study", "create", s.file)
	until(t, "four windows", func() bool { return s.count("window ") >= 4 })
	worker.Kill()
	s.allGone()
	at.worker()
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if m := found.Recommendation.Metrics; m["windows"] != 12 {
		t.Errorf("it was measured as %v", m)
	}
	if books := at.books(s.name); books.Trials[0].Losses != 1 || books.Trials[0].Failures != 0 || s.count("window ") > 12+4 {
		t.Errorf("%d windows, and the trial is %+v", s.count("window "), books.Trials[0])
	}
}

// TestWhatAServiceDoesWrongIsTold starts services that do not work.
func TestWhatAServiceDoesWrongIsTold(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct{ from, to, wanted string }{
		"not-started": {"[python3, server.py,", "[no-such-program,", `the service cannot be started: exec: "no-such-program"`},
		"ends":        {`[python3, server.py, "{port}", "{threads}"]`, `[sh, -c, "echo no such setting; exit 3"]`, "the service ended with exit status 3 after 0."},
		"not-ready":   {`"http://127.0.0.1:{port}/"}`, `"http://127.0.0.1:1/", seconds: 0.3}`, "the service was not ready after 300ms (service.ready)"},
		"no-load":     {"load: [python3, get.py", "load: [python3, got.py", "service.load ended with exit status 2"},
		"no-metric":   {"  live:", "  metrics: {tps: 'tps=([0-9.]+)', p99_ms: '(x)'}\n  live:", "service.metrics.p99_ms: nothing that the load printed matches"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, name, one.from, one.to, "search:", "stop: {failures: 1}\nretry: {failures: 0}\nsearch:")
			got := cli(t, nil, "run", s.file, "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--json")
			if got.code != 3 || !strings.Contains(got.stderr, one.wanted) {
				t.Errorf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			s.allGone()
		})
	}
}
