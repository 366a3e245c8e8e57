package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/protocol"
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
		if err != nil || len(left) != 0 {
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
	deadline := time.Now().Add(30 * time.Second)
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

func TestResumeOnAnotherWorker(t *testing.T) {
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), as("train", place), 2, 5)
	s.change(func() { trial.hold = true })
	stop := work(t, s, agent.Options{})
	s.await(t, "the first rung is finished", func() bool { return len(trial.finishes) == 1 })
	stop()
	s.change(func() { trial.queued = true })
	work(t, s, agent.Options{})
	s.await(t, "the second is, elsewhere", func() bool { return len(trial.finishes) == 2 })
	if got := fmt.Sprint(file(t, place, "trained"), trial.epochs()); got != "[1 2 3 4 5] [1 2 3 4 5]" {
		t.Errorf("trained and reported %s", got)
	}
	if sum := trial.reports[4].Metrics["sum"]; sum != 15 {
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

func TestSlotsRunAtOnce(t *testing.T) {
	s := newServer()
	first, second := t.TempDir(), t.TempDir()
	s.add(script(t), as("wait", first), 3)
	s.add(script(t), as("wait", second), 3)
	work(t, s, agent.Options{Slots: 2})
	s.await(t, "both have reported", func() bool { return s.calls("report") == 2 })
}

func TestLostLeaseKillsEverything(t *testing.T) {
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), as("spawn", place), 3)
	work(t, s, agent.Options{})
	s.await(t, "it has reported", func() bool { return len(trial.reports) == 1 })
	s.change(func() { trial.lease.LeaseEpoch++; trial.holder = "another worker" })
	awaitGone(t, file(t, place, "pids"))
	s.change(func() {
		if late := s.afterLoss(1); len(late) > 0 {
			t.Errorf("wrote after the lease was lost: %+v", late)
		}
	})
	// The slot is free again.
	other := s.add(script(t), as("lines", t.TempDir()), 1)
	s.await(t, "the next trial is finished", func() bool { return len(other.finishes) == 1 })
	if len(trial.finishes) != 0 {
		t.Errorf("a lost lease was finished: %+v", trial.finishes)
	}
}

func TestLateWriteLosesTheLease(t *testing.T) {
	s, place := newServer(), t.TempDir()
	s.timing.HeartbeatSeconds = 3600 // only a write can tell
	trial := s.add(script(t), as("gated", place), 3)
	work(t, s, agent.Options{})
	s.await(t, "it has reported", func() bool { return len(trial.reports) == 1 && s.calls("heartbeat") == 0 })
	s.change(func() { trial.lease.LeaseEpoch++; trial.holder = "another worker" })
	if err := os.WriteFile(filepath.Join(place, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, file(t, place, "pids"))
	s.change(func() {
		if len(trial.reports) != 1 || len(trial.finishes) != 0 || len(s.afterLoss(1)) > 0 {
			t.Errorf("reports %v, finishes %+v, late writes %+v", trial.epochs(), trial.finishes, s.afterLoss(1))
		}
	})
}

func TestHeartbeatsKeepALease(t *testing.T) {
	s, place := newServer(), t.TempDir()
	s.timing.LeaseSeconds = 2
	trial := s.add(script(t), as("gated", place), 3)
	work(t, s, agent.Options{})
	// An interval is at least 80 ms, so that this takes longer than the lease.
	s.await(t, "it has reported, and the lease was renewed often", func() bool { return len(trial.reports) == 1 && s.beats > 40 })
	if err := os.WriteFile(filepath.Join(place, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.await(t, "it goes on", func() bool { return len(trial.reports) == 2 })
}

func TestSelfFencing(t *testing.T) {
	s, place := newServer(), t.TempDir()
	s.timing.LeaseSeconds = 2
	trial := s.add(script(t), as("spawn", place), 3)
	work(t, s, agent.Options{})
	s.await(t, "it has reported", func() bool { return len(trial.reports) == 1 })
	s.change(func() { s.away = true })
	awaitGone(t, file(t, place, "pids")) // without a word from the server
	s.change(func() { s.away = false })
	other := s.add(script(t), as("lines", t.TempDir()), 1)
	s.await(t, "the next trial is finished", func() bool { return len(other.finishes) == 1 })
	if len(trial.finishes) != 0 {
		t.Errorf("a trial that may run elsewhere was finished: %+v", trial.finishes)
	}
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

func TestFailures(t *testing.T) {
	place := t.TempDir()
	notExecutable := filepath.Join(place, "notes.txt")
	if err := os.WriteFile(notExecutable, []byte("hello"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		command []string
		role    string
		change  func(*protocol.Lease)
		say     []string
	}{
		{name: "exit code", role: "fail", say: []string{"exit code 3: ValueError: the learning rate is a fruit", "Traceback"}},
		{name: "killed by the kernel", role: "crash", say: []string{"SIGKILL", "memory ran out"}},
		{name: "missing command", command: []string{"no-such-program"}, say: []string{`command not found: "no-such-program"`, "PATH"}},
		{name: "missing file", command: []string{"./train.sh"}, say: []string{"command not found", "train.sh"}},
		{name: "not a program", command: []string{notExecutable}, say: []string{"cannot be started", "exec format error"}},
		{name: "missing directory", role: "fail", change: func(l *protocol.Lease) { l.Directory = "nowhere" }, say: []string{"directory", "nowhere", "does not exist"}},
		{name: "ends early", role: "short", say: []string{"ended after epoch 1 of 3"}},
		{name: "reports nothing", command: []string{"true"}, say: []string{"ended after epoch 0 of 3", "standard output"}},
		{name: "bad variable", role: "fail", change: func(l *protocol.Lease) { l.Environment["A"] = "x\x00y" }, say: []string{`"A"`}},
		{name: "silence", role: "quiet", change: func(l *protocol.Lease) { l.EpochTimeoutSeconds = 0.5 }, say: []string{"no report for 0.5 s"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newServer()
			command := test.command
			if command == nil {
				command = script(t)
			}
			s.mutex.Lock()
			s.away = true // until it is complete
			s.mutex.Unlock()
			trial := s.add(command, as(test.role, place), 3)
			if test.change != nil {
				test.change(&trial.lease)
			}
			s.change(func() { s.away = false })
			work(t, s, agent.Options{Directory: place})
			s.await(t, "it has failed", func() bool { return len(trial.finishes) == 1 })
			if trial.outcomes() != "failed" {
				t.Errorf("ended %q", trial.outcomes())
			}
			for _, say := range test.say {
				if !strings.Contains(trial.reason(), say) {
					t.Errorf("the reason %q must say %q", trial.reason(), say)
				}
			}
		})
	}
}

func TestDirectives(t *testing.T) {
	tests := []struct {
		name, role string
		directive  protocol.DirectiveAction
		early      bool // there before the first report
		outcome    string
	}{
		{"pause", "train", protocol.Pause, true, "interrupted"},
		{"stop", "train", protocol.Stop, true, "interrupted"},
		{"stop that is ignored", "deaf", protocol.Stop, false, "interrupted"},
		{"stop without a client", "quiet", protocol.Stop, false, "interrupted"},
		{"pause without a client, kept", "careless", protocol.Pause, true, "interrupted"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, place := newServer(), t.TempDir()
			trial := s.add(script(t), as(test.role, place), 5)
			want := protocol.Directive{Action: test.directive, Reason: "the user said so"}
			if test.early {
				s.change(func() { trial.directive = want })
			}
			work(t, s, agent.Options{StopGrace: 100 * time.Millisecond})
			s.await(t, "it has reported", func() bool { return len(trial.reports) >= 1 })
			s.change(func() { trial.directive = want })
			s.await(t, "it has ended", func() bool { return len(trial.finishes) == 1 })
			if trial.outcomes() != test.outcome || trial.reason() != want.Reason {
				t.Errorf("ended %q: %q", trial.outcomes(), trial.reason())
			}
			if test.directive == protocol.Pause && (trial.checkpoint == nil || trial.checkpoint.Epoch != 1) {
				t.Errorf("the checkpoint is %+v", trial.checkpoint)
			}
		})
	}
}

func TestLogFlood(t *testing.T) {
	s := newServer()
	trial := s.add(script(t), as("flood", t.TempDir()), 1)
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	log := trial.log[1]
	if trial.outcomes() != "budget_reached" || trial.reports[0].Metrics["accuracy"].IsFinite() {
		t.Errorf("the report behind the flood: %s, %+v", trial.outcomes(), trial.reports)
	}
	if len(log) > 1<<20+100 || strings.ToValidUTF8(log, "") != log || strings.ContainsRune(log, 0) {
		t.Errorf("the log has %d bytes, or is no text", len(log))
	}
	for _, part := range []string{"xxxx", "bytes of the log are left out here", "line 39999 \uFFFD\uFFFD of a long log é", "the last line"} {
		if !strings.Contains(log, part) {
			t.Errorf("the log lacks %q", part)
		}
	}
}

func TestSocketSaysWhatIsWrong(t *testing.T) {
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), as("faulty", place), 2)
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	want := []string{
		`422 .*epochs 1 to 2`, `422 .*epochs 1 to 2`, `422 .*1 to 1000 metrics`, `400 .*unknown field`, `400 .*"code":"invalid"`, `400 .*behind`,
		`413 .*bytes`, `422 .*report an epoch before`, `404 .*no GET /v1/nothing`, `200 {"action":"continue"}`, `200 {"action":"continue"}`,
		`422 .*is empty`, `422 .*metrics.accuracy.*objective is missing`, `200 {"action":"finish"}`, `422 .*in order`, `200 {"action":"finish"}`,
	}
	said := file(t, place, "said")
	if len(said) != len(want) {
		t.Fatalf("got %d answers: %q", len(said), said)
	}
	for i, pattern := range want {
		if !matches(pattern, said[i]) {
			t.Errorf("call %d: got %s, want %s", i, said[i], pattern)
		}
	}
	if len(trial.reports) != 2 || !trial.reports[0].Metrics["accuracy"].IsNaN() || trial.outcomes() != "budget_reached" {
		t.Errorf("got %+v, %s", trial.reports, trial.outcomes())
	}
}

func TestServerAwayAndBack(t *testing.T) {
	s, place := newServer(), t.TempDir()
	s.away = true // from the start
	trial := s.add(script(t), as("train", place), 3)
	work(t, s, agent.Options{})
	s.await(t, "the worker has tried to register", func() bool { return s.refused > 0 })
	s.change(func() { s.away = false })
	s.await(t, "it has reported", func() bool { return len(trial.reports) >= 1 })
	s.change(func() { s.away, s.refused = true, 0 })
	s.await(t, "calls were refused", func() bool { return s.refused > 3 })
	s.change(func() { s.away = false })
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	if got := fmt.Sprint(trial.epochs(), file(t, place, "trained")); got != "[1 2 3] [1 2 3]" || trial.outcomes() != "budget_reached" {
		t.Errorf("reported and trained %s, ended %q: %s", got, trial.outcomes(), trial.reason())
	}
}

func TestWaitingForTheServerIsNoSilence(t *testing.T) {
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), as("gated", place), 3)
	trial.lease.EpochTimeoutSeconds = 2
	work(t, s, agent.Options{})
	s.await(t, "it has reported", func() bool { return len(trial.reports) == 1 })
	s.change(func() { s.away = true })
	if err := os.WriteFile(filepath.Join(place, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// An interval between refused heartbeats is at least 20 ms.
	s.await(t, "calls were refused for longer than the timeout", func() bool { return s.refused > 150 })
	s.change(func() { s.away = false })
	awaitNote(t, place, "ready") // the script got its answer
	if got := fmt.Sprint(trial.epochs()); got != "[1 2]" {
		t.Errorf("reported %s", got)
	}
}

func TestServerRestart(t *testing.T) {
	for _, slots := range []int{1, 2} { // found out by the heartbeat alone, or by the free slot as well
		t.Run(fmt.Sprint(slots, " slots"), func(t *testing.T) {
			s := newServer()
			running := s.add(script(t), as("polite", t.TempDir()), 5)
			stop := work(t, s, agent.Options{Slots: slots})
			s.await(t, "it has reported", func() bool { return len(running.reports) == 1 })
			s.change(func() { clear(s.workers) }) // registrations live in memory
			s.await(t, "the worker has registered again", func() bool { return s.registered == 2 })
			if slots > 1 {
				other := s.add(script(t), as("lines", t.TempDir()), 1)
				s.await(t, "its free slot works", func() bool { return len(other.finishes) == 1 })
			}
			s.change(func() {
				if len(running.finishes) != 0 || running.lease.LeaseEpoch != 1 {
					t.Errorf("the running trial did not survive: %+v", running.finishes)
				}
			})
			stop()
			if running.outcomes() != "interrupted" {
				t.Errorf("ended %q", running.outcomes())
			}
		})
	}
}

func TestCheckpointThatCannotBeRestored(t *testing.T) {
	for name, spoil := range map[string]func(*server, string){
		"missing": func(s *server, hash string) { delete(s.artifacts, hash) },
		"damaged": func(s *server, hash string) { s.artifacts[hash] = []byte("something else") },
		"another": func(s *server, hash string) { s.artifacts[hash] = make([]byte, 1024) }, // an empty archive
	} {
		t.Run(name, func(t *testing.T) {
			s, place := newServer(), t.TempDir()
			trial := s.add(script(t), as("train", place), 1, 3)
			s.change(func() { trial.hold = true })
			stop := work(t, s, agent.Options{})
			s.await(t, "the first rung is finished", func() bool { return len(trial.finishes) == 1 })
			stop() // with its cache
			s.change(func() {
				trial.queued = true
				spoil(s, trial.checkpoint.Artifact)
			})
			work(t, s, agent.Options{})
			s.await(t, "it is given back", func() bool { return len(trial.finishes) == 2 })
			if trial.outcomes() != "budget_reached interrupted" || !strings.Contains(trial.reason(), "could not be restored") {
				t.Errorf("ended %q: %s; a lost checkpoint is not the user's failure", trial.outcomes(), trial.reason())
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("TANDEM_TOKEN", "secret")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("HF_HOME", "/models")
	t.Setenv("CUDA_VISIBLE_DEVICES", "0")
	s, place := newServer(), t.TempDir()
	if err := os.Mkdir(filepath.Join(place, "study"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.away = true
	trial := s.add(script(t), map[string]string{"ROLE": "show", "PLACE": place, "MINE": "1"}, 1)
	trial.lease.Directory = "study"
	trial.lease.System = map[string]space.Value{"cpu_threads": space.Int(3)}
	trial.lease.Params = space.Configuration{"rate": space.Float(1), "layers": space.Int(2)}
	s.change(func() { s.away = false })
	work(t, s, agent.Options{Directory: place, PassEnvironment: []string{"HF_*", "TANDEM_*"}})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	got := file(t, place, "environment")
	for _, want := range []string{
		"TANDEM_STUDY=story", "TANDEM_TRIAL=s1-0", "TANDEM_EPOCHS=1", "TANDEM_FIRST_EPOCH=1", "TANDEM_DATA_FRACTION=0.5", "TANDEM_RUNG=0", "TANDEM_SEED=7",
		`TANDEM_PARAMS={"layers":2,"rate":1.0}`, `TANDEM_SYSTEM={"cpu_threads":3}`, `TANDEM_OBJECTIVES=["accuracy"]`,
		"OMP_NUM_THREADS=3", "MKL_NUM_THREADS=3", "OPENBLAS_NUM_THREADS=3", "NUMEXPR_NUM_THREADS=3", "PYTHONUNBUFFERED=1",
		"MINE=1", "HF_HOME=/models", "CUDA_VISIBLE_DEVICES=0", "cwd=" + filepath.Join(place, "study"), "stdin=0 bytes",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("the script's environment lacks %s: %q", want, got)
		}
	}
	if want := "umask=77"; maskable() && !slices.Contains(got, want) {
		t.Errorf("the script's files are not private: %q", got)
	}
	for _, line := range got {
		if strings.Contains(line, "secret") {
			t.Errorf("a secret reached the script: %s", line)
		}
		if socket, ok := strings.CutPrefix(line, "TANDEM_SOCKET="); ok && len(socket) > 107 {
			t.Errorf("the socket's path is too long: %s", line)
		}
	}
}

func TestLongScratchPathStillHasASocket(t *testing.T) {
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), as("train", place), 1)
	scratch := filepath.Join(t.TempDir(), strings.Repeat("long-", 25))
	work(t, s, agent.Options{Scratch: scratch})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	if trial.outcomes() != "budget_reached" {
		t.Errorf("ended %q: %s", trial.outcomes(), trial.reason())
	}
}

// killableAgent is a whole agent process with a server in it.
func killableAgent() int {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	s := newServer()
	s.add([]string{self}, as("spawn", os.Getenv("PLACE")), 3)
	worker, err := agent.New(agent.Options{Server: s, Scratch: os.Getenv("SCRATCH")})
	if err != nil {
		panic(err)
	}
	if err := worker.Run(context.Background()); err != nil {
		panic(err)
	}
	return 0
}

// victim is a process that only looks like one of a run.
func victim() int { return forever() }

func TestKilledAgentLeavesNothingBehind(t *testing.T) {
	place, scratch := t.TempDir(), t.TempDir()
	doomed := exec.Command(script(t)[0])
	doomed.Env = append(os.Environ(), "ROLE=agent", "PLACE="+place, "SCRATCH="+scratch)
	if err := doomed.Start(); err != nil {
		t.Fatal(err)
	}
	bystander := exec.Command(script(t)[0])
	bystander.Env = append(os.Environ(), "ROLE=victim", "TANDEM_CHECKPOINT_DIR="+t.TempDir())
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	awaitNote(t, place, "ready") // the command runs and needs nothing from the agent
	pids := file(t, place, "pids")
	if err := doomed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = doomed.Wait()      // it was killed
	awaitGone(t, pids[2:]) // the command itself, by the kernel
	work(t, newServer(), agent.Options{Scratch: scratch})
	awaitGone(t, pids) // what it had started, by the next agent
	if !alive(strconv.Itoa(bystander.Process.Pid)) {
		t.Error("a process of somebody else was killed")
	}
	if err := bystander.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = bystander.Wait() // it was killed
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

// maskable reports whether a thread may have a umask of its own here.
func maskable() bool {
	answer := make(chan bool)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is changed
		answer <- syscall.Unshare(syscall.CLONE_FS) == nil
	}()
	return <-answer
}

func matches(pattern, text string) bool {
	return regexp.MustCompile("^(?:" + pattern + ")").MatchString(text)
}
