package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/workers/agent"
)

// work runs an agent for the server until the test ends or stop is called,
// which returns when it has drained.
func work(t *testing.T, s *server, options agent.Options) (stop func()) {
	t.Helper()
	options.Server = s
	if options.Scratch == "" {
		options.Scratch = t.TempDir()
	}
	if options.DrainGrace == 0 {
		options.DrainGrace = 5 * time.Second
	}
	options.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	worker, err := agent.New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		left, err := os.ReadDir(options.Scratch)
		if launched := options.Leave.Launch != ""; os.IsNotExist(err) != launched || !launched && err != nil || len(left) != 0 {
			t.Errorf("something is left in the scratch folder: %v, %v", left, err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// file is what a script noted.
func file(t *testing.T, place, name string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(place, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
}

// awaitGone returns when the processes have ended.
func awaitGone(t *testing.T, pids []string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %s still runs", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func alive(pid string) bool {
	content, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	rest := string(content[strings.LastIndexByte(string(content), ')')+1:])
	return !strings.HasPrefix(strings.TrimSpace(rest), "Z") // a zombie has ended
}

func TestTrialClimbsTheLadder(t *testing.T) {
	for _, role := range []string{"train", "lines"} {
		t.Run(role, func(t *testing.T) {
			s, place := newServer(), t.TempDir()
			trial := s.add(script(t), as(role, place), 1, 3, 9)
			work(t, s, agent.Options{})
			s.await(t, "the top rung is finished", func() bool { return len(trial.finishes) == 3 })
			if got := fmt.Sprint(file(t, place, "trained")); got != "[1 2 3 4 5 6 7 8 9]" {
				t.Errorf("trained %s: each epoch must be trained exactly once", got)
			}
			if got := fmt.Sprint(trial.epochs()); got != "[1 2 3 4 5 6 7 8 9]" {
				t.Errorf("reported %s", got)
			}
			if got := fmt.Sprint(trial.resumed); got != "[1 2 4]" || trial.outcomes() != "budget_reached budget_reached budget_reached" {
				t.Errorf("leases began at %s, ended %s", got, trial.outcomes())
			}
			last := trial.reports[8]
			if role == "train" && last.Metrics["sum"] != 45 {
				t.Errorf("the sum over the epochs is %v: the state was not carried on", last.Metrics["sum"])
			}
			if role == "lines" && (!last.Metrics["loss"].IsNaN() || len(last.Metrics) != 2) {
				t.Errorf("got the metrics %v", last.Metrics)
			}
			if last.Energy == nil || last.Energy.Method == "" || last.Energy.Joules < 0 || last.Seconds < 0 {
				t.Errorf("got %+v", last)
			}
			if role == "lines" && !strings.Contains(trial.log[3], "epoch 9 is running") {
				t.Errorf("got the log %q", trial.log[3])
			}
		})
	}
}

func TestReportsCarryProfiles(t *testing.T) {
	for name, none := range map[string]bool{"by default": false, "switched off": true} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			busy := "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sh -c ':'; "
			one := s.add([]string{"/bin/sh", "-c", busy + `echo '{"epoch": 1, "accuracy": 1}'; ` + busy + `sleep 0.1; echo '{"epoch": 2, "accuracy": 1}'; sleep 0.3`}, nil, 2)
			work(t, s, agent.Options{NoProfile: none})
			s.await(t, "the trial is finished", func() bool { return len(one.finishes) == 1 })
			for _, report := range one.reports {
				p := report.Profile
				if none {
					if p != nil {
						t.Errorf("epoch %d has a profile: %+v", report.Epoch, p)
					}
					continue
				}
				if p == nil || len(p.Faults()) > 0 || p.Level == "" || p.Host["tree.cpu_user"]+p.Host["tree.cpu_system"] < 0 || len(p.Host) < 10 {
					t.Fatalf("epoch %d has the profile %+v", report.Epoch, p)
				}
				if clock, counted := p.Events["task-clock"]; p.Level != string(perf.HostLevel) && (!counted || clock <= 0) {
					t.Errorf("epoch %d used no CPU: %+v", report.Epoch, p.Events)
				}
			}
			if len(one.reports) != 2 {
				t.Errorf("%d reports", len(one.reports))
			}
		})
	}
}

// A script without a client trains on while its report is on the way: that time is
// the next epoch's.
func TestSecondsOfAScriptThatDoesNotWait(t *testing.T) {
	const slow = 200 * time.Millisecond
	s := newServer()
	s.slow = slow
	one := s.add([]string{"/bin/sh", "-c", `for e in 1 2 3 4; do echo "{\"epoch\": $e, \"accuracy\": 1}"; done; sleep 0.5`}, nil, 4)
	work(t, s, agent.Options{})
	s.await(t, "the trial is finished", func() bool { return len(one.finishes) == 1 })
	for _, report := range one.reports[1:] {
		if seconds := float64(report.Seconds); seconds < slow.Seconds() {
			t.Errorf("epoch %d took %g s, though the report before it alone took %v", report.Epoch, seconds, slow)
		}
	}
}

func TestResumeOnAnotherWorker(t *testing.T) {
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), as("train", place), 1, 3)
	s.change(func() { trial.hold = true })
	stop := work(t, s, agent.Options{})
	s.await(t, "the first rung is finished", func() bool { return len(trial.finishes) == 1 })
	stop()
	s.change(func() { trial.queued = true })
	work(t, s, agent.Options{})
	s.await(t, "the second is, elsewhere", func() bool { return len(trial.finishes) == 2 })
	if got := fmt.Sprint(file(t, place, "trained"), trial.epochs()); got != "[1 2 3] [1 2 3]" {
		t.Errorf("trained and reported %s", got)
	}
	if sum := trial.reports[2].Metrics["sum"]; sum != 6 {
		t.Errorf("the sum over the epochs is %v: the state was not carried over", sum)
	}
}

func TestPythonScript(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	const program = `
import json, os, pathlib
folder = pathlib.Path(os.environ["TANDEM_CHECKPOINT_DIR"])
params = json.loads(os.environ["TANDEM_PARAMS"])
for epoch in range(int(os.environ["TANDEM_FIRST_EPOCH"]), int(os.environ["TANDEM_EPOCHS"]) + 1):
    (folder / "state").write_text(str(epoch))
    print(json.dumps({"epoch": epoch, "accuracy": params["rate"], "loss": float("inf") if epoch == 1 else 0, "checkpoint": True}))
`
	s := newServer()
	trial := s.add([]string{filepath.Base(python), "-c", program}, nil, 2, 4)
	trial.lease.Params = space.Configuration{"rate": space.Float(0.25)}
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 2 })
	if got := fmt.Sprint(trial.epochs(), trial.resumed); got != "[1 2 3 4] [1 3]" {
		t.Errorf("got %s, log %v", got, trial.log)
	}
	if metrics := trial.reports[0].Metrics; metrics["accuracy"] != 0.25 || metrics["loss"].IsFinite() {
		t.Errorf("got %v", metrics)
	}
}

// What a run was given and did not touch is the state of an earlier epoch.
func TestUntouchedCheckpointKeepsItsEpoch(t *testing.T) {
	s := newServer()
	trial := s.add(script(t), as("stale", t.TempDir()), 1, 3)
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 2 })
	if trial.outcomes() != "budget_reached budget_reached" || trial.checkpoint == nil || trial.checkpoint.Epoch != 1 {
		t.Errorf("ended %s, the checkpoint is %+v", trial.outcomes(), trial.checkpoint)
	}
}

// A server that was started anew, or took over from another one, wants the bytes
// of a checkpoint again before it takes that.
func TestACheckpointIsSentAgain(t *testing.T) {
	s := newServer()
	s.forgets = 2
	trial := s.add(script(t), as("stale", t.TempDir()), 1, 3)
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 2 })
	if trial.outcomes() != "budget_reached budget_reached" || trial.checkpoint == nil || s.forgets != 0 || len(trial.resumed) != 2 || trial.resumed[1] != 2 {
		t.Errorf("ended %s, the checkpoint is %+v, it went on at %v", trial.outcomes(), trial.checkpoint, trial.resumed)
	}
}

// The client writes a checkpoint beside its folder and renames it into place.
func TestPythonClient(t *testing.T) {
	client, err := filepath.Abs("../../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	try := exec.Command("python3", "-c", "import tandem")
	try.Env = append(os.Environ(), "PYTHONPATH="+client)
	if said, err := try.CombinedOutput(); err != nil {
		t.Skipf("no Python that the client runs with: %v: %s", err, said)
	}
	const program = `
import pathlib, tandem
trial = tandem.current_trial()
state = {"sum": 0}
trial.restore(lambda path: state.update(sum=int(pathlib.Path(path).read_text())))
for epoch in trial.epochs():
    state["sum"] += epoch
    trial.report(accuracy=trial.params["rate"], sum=state["sum"])
    trial.checkpoint(lambda path: pathlib.Path(path).write_text(str(state["sum"])))
`
	s := newServer()
	trial := s.add([]string{"python3", "-c", program}, map[string]string{"PYTHONPATH": client, "PYTHONDONTWRITEBYTECODE": "1"}, 1, 3)
	trial.lease.Params = space.Configuration{"rate": space.Float(0.25)}
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 2 })
	if got := fmt.Sprint(trial.epochs(), trial.resumed, " ", trial.outcomes()); got != "[1 2 3] [1 2] budget_reached budget_reached" {
		t.Fatalf("got %s, %s, log %v", got, trial.reason(), trial.log)
	}
	if sum := trial.reports[2].Metrics["sum"]; sum != 6 || trial.checkpoint.Epoch != 3 {
		t.Errorf("the sum over the epochs is %v, the checkpoint %+v", sum, trial.checkpoint)
	}
}

func TestOneStudyOnly(t *testing.T) {
	t.Parallel() // it waits most of the time
	tests := []struct {
		study, fails string
	}{{"story", ""}, {"missing", `no study "missing"`}}
	for _, test := range tests {
		t.Run(test.study, func(t *testing.T) {
			s := newServer()
			s.over = true
			worker, err := agent.New(agent.Options{Server: s, Study: test.study, Slots: 2, Scratch: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			err = worker.Run(t.Context()) // ends by itself
			if test.fails == "" && err != nil || test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)) {
				t.Errorf("got %v, want %q", err, test.fails)
			}
			if s.left != 1 {
				t.Errorf("it took leave %d times", s.left)
			}
		})
	}
}

func TestSlotsRunAtOnce(t *testing.T) {
	s := newServer()
	first, second := t.TempDir(), t.TempDir()
	s.add(script(t), as("wait", first), 3)
	s.add(script(t), as("wait", second), 3)
	work(t, s, agent.Options{Slots: 2})
	s.await(t, "both have reported", func() bool { return s.calls("report") == 2 })
}

func TestDrain(t *testing.T) {
	tests := []struct {
		role       string
		checkpoint int
	}{
		{"polite", 1},   // it kept its state after epoch 1
		{"deaf", 0},     // it had to be killed
		{"careless", 1}, // what is in the folder is older than the last report
	}
	for _, test := range tests {
		t.Run(test.role, func(t *testing.T) {
			s, place := newServer(), t.TempDir()
			trial := s.add(script(t), as(test.role, place), 5)
			grace := 20 * time.Second
			if test.role == "deaf" {
				grace = 100 * time.Millisecond
			}
			stop := work(t, s, agent.Options{DrainGrace: grace})
			reports := 1
			if test.role == "careless" {
				reports = 2
			}
			s.await(t, "it has reported", func() bool { return len(trial.reports) == reports })
			stop()
			if trial.outcomes() != "interrupted" || s.left != 1 {
				t.Errorf("ended %q, unregistered %d times", trial.outcomes(), s.left)
			}
			kept := 0
			if trial.checkpoint != nil {
				kept = trial.checkpoint.Epoch
			}
			if kept != test.checkpoint {
				t.Errorf("the checkpoint is of epoch %d, want %d", kept, test.checkpoint)
			}
		})
	}
}

func awaitNote(t *testing.T, place, name string) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(place, name)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the script did not write %s", name)
		}
	}
}
