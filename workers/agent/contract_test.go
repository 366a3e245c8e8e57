package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/workers/agent"
)

func TestFailures(t *testing.T) {
	place := t.TempDir()
	notExecutable := filepath.Join(place, "notes.txt")
	if err := os.WriteFile(notExecutable, []byte("hello"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(place, "train.txt")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o644); err != nil {
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
		{name: "not executable", command: []string{plain}, say: []string{"cannot be started", "permission denied; make it executable: chmod +x"}},
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
			// A stop can be there before the script has said anything.
			s.await(t, "it has reported", func() bool { return len(trial.reports) >= 1 || len(trial.finishes) == 1 })
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

// A script without a client that does not end with its budget is ended at its first
// report behind that, and not before.
func TestAScriptThatTrainsOnIsEnded(t *testing.T) {
	for last, after := range map[int]string{3: "sleep 0.2; echo saved", 4: "exec sleep 600"} {
		s := newServer()
		command := fmt.Sprintf(`for epoch in $(seq %d); do echo "{\"epoch\": $epoch, \"accuracy\": 0.5}"; done; %s`, last, after)
		trial := s.add([]string{"sh", "-c", command}, nil, 3)
		work(t, s, agent.Options{})
		s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
		if trial.outcomes() != "budget_reached" || len(trial.reports) != 3 {
			t.Errorf("%d epochs: %d reports, %q: %s", last, len(trial.reports), trial.outcomes(), trial.reason())
		}
		if want := map[int]string{3: "saved", 4: "epochs 1 to 3"}[last]; !strings.Contains(trial.log[1], want) {
			t.Errorf("%d epochs: the log lacks %q: %s", last, want, trial.log[1])
		}
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
		`422 .*epochs 1 to 2`, `422 .*epochs 1 to 2`, `422 .*1 to 1000 metrics`, `400 .*unknown field`, `422 .*1 to 128 bytes.*a truth value.*at most 1024 bytes`, `400 .*"code":"invalid"`, `400 .*behind`,
		`413 .*bytes`, `422 .*report an epoch before`, `404 .*no GET /v1/nothing`, `200 {"action":"continue"}`, `200 {"action":"continue"}`,
		`422 .*is empty`, `422 .*"detail":"the report is not valid","errors":\[{"message":"the objective is missing","path":"metrics.accuracy"}`, `200 {"action":"finish"}`, `422 .*in order`, `200 {"action":"finish"}`,
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

func TestPath(t *testing.T) {
	base := t.TempDir()
	program := func(folder, name, says string) string {
		path := filepath.Join(base, folder)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		text := "#!/bin/sh\necho '{\"epoch\": 1, \"accuracy\": " + says + "}'\n"
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	owners, studys, workers := program("owner", "train", "1"), program("study", "train", "2"), program("worker", "train", "3")
	program("study", "only-study", "4")
	if err := os.Mkdir(filepath.Join(owners, "only-study"), 0o755); err != nil { // no program
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(owners, "fourth"), []byte("#!/bin/sh\n"), 0o644); err != nil { // not executable
		t.Fatal(err)
	}
	program("worker", "fourth", "5")
	t.Setenv("PATH", workers+":relative:/usr/bin:/bin")
	tests := []struct {
		name, command string
		path          []string
		study         map[string]string
		accuracy      string
	}{
		{"the worker's", "train", nil, nil, "3"},
		{"the owner's first", "train", []string{owners}, nil, "1"},
		{"the study's instead of the worker's", "train", nil, map[string]string{"PATH": studys}, "2"},
		{"the owner's before the study's", "train", []string{owners}, map[string]string{"PATH": studys}, "1"},
		{"what cannot be run is passed over", "only-study", []string{owners}, map[string]string{"PATH": studys}, "4"},
		{"likewise a file", "fourth", []string{owners}, nil, "5"},
		{"found by the command's children too", "sh -c train", []string{owners}, nil, "1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newServer()
			trial := s.add(strings.SplitN(test.command, " ", 3), test.study, 1)
			work(t, s, agent.Options{Path: test.path, Directory: base})
			s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
			if trial.outcomes() != "budget_reached" || fmt.Sprint(trial.reports[0].Metrics["accuracy"]) != test.accuracy {
				t.Errorf("ended %q %s, reported %+v", trial.outcomes(), trial.reason(), trial.reports)
			}
		})
	}
	for _, folder := range []string{"", "a:b"} {
		if _, err := agent.New(agent.Options{Server: newServer(), Scratch: base, Path: []string{folder}}); err == nil {
			t.Errorf("the folder %q was taken for the PATH", folder)
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

// A script whose metric is not the study's is told so at its first report: it may
// train for days before the one that must have it.
func TestAMetricThatLacksIsToldAtTheFirstReport(t *testing.T) {
	s := newServer()
	trial := s.add(script(t), as("lines", t.TempDir()), 4)
	trial.lease.Objectives = []string{"accuracy", "val_accuracy"}
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	told := "tandem: epoch 1 was reported without val_accuracy (but with accuracy"
	if log := trial.log[1]; strings.Count(log, "was reported without") != 1 || !strings.Contains(log, told) || !strings.Contains(log, "the report of epoch 4, the last of the budget, must have it") {
		t.Errorf("the log is %q, want once %q", log, told)
	}
	whole := s.add(script(t), as("lines", t.TempDir()), 4)
	s.await(t, "the other is finished", func() bool { return len(whole.finishes) == 1 })
	if log := whole.log[1]; strings.Contains(log, "was reported without") {
		t.Errorf("nothing lacks, and the log is %q", log)
	}
}
