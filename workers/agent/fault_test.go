package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/agent/agenttest"
)

func TestLostLeaseKillsEverything(t *testing.T) {
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), spawning(place), 3)
	work(t, s, agent.Options{})
	s.await(t, "it has reported", func() bool { return len(trial.reports) == 1 })
	s.change(func() { trial.lease.LeaseEpoch++; trial.holder = "another worker" })
	awaitGone(t, file(t, place, "pids"))
	s.change(func() {
		if late := s.afterLoss(trial.lease.Trial, 1); len(late) > 0 {
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

func TestScriptLeavesNothingBehind(t *testing.T) {
	s, place := newServer(), t.TempDir()
	environment := spawning(place)
	environment["ROLE"] = "parent"
	trial := s.add(script(t), environment, 1)
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	if trial.outcomes() != "budget_reached" {
		t.Errorf("ended %q: %s", trial.outcomes(), trial.reason())
	}
	awaitGone(t, file(t, place, "pids"))
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
		if len(trial.reports) != 1 || len(trial.finishes) != 0 || len(s.afterLoss(trial.lease.Trial, 1)) > 0 {
			t.Errorf("reports %v, finishes %+v, late writes %+v", trial.epochs(), trial.finishes, s.afterLoss(trial.lease.Trial, 1))
		}
	})
}

func TestHeartbeatsKeepALease(t *testing.T) {
	t.Parallel() // it waits most of the time
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
	t.Parallel() // it waits most of the time
	s, place := newServer(), t.TempDir()
	s.timing.LeaseSeconds = 2
	trial := s.add(script(t), as("spawn", place), 3)
	s.change(func() { trial.hold = true })
	work(t, s, agent.Options{})
	s.await(t, "it has reported", func() bool { return len(trial.reports) == 1 })
	s.change(func() { s.away = true })
	awaitGone(t, file(t, place, "pids")) // without a word from the server
	s.change(func() { s.away = false })
	other := s.add(script(t), as("lines", t.TempDir()), 1)
	s.await(t, "the next trial is finished", func() bool { return len(other.finishes) == 1 })
	// Nobody else has it: the server was away, and so is told that it can have it.
	s.await(t, "the trial is given back", func() bool { return len(trial.finishes) == 1 })
	if trial.outcomes() != "interrupted" || !strings.Contains(trial.reason(), "let go") {
		t.Errorf("it was given back as %s: %s", trial.outcomes(), trial.reason())
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

// A client makes a call's Idempotency-Key of its content, so a report that is
// tried again has to be the same to the byte.
func TestReportsWaitInOrderAndStayTheSame(t *testing.T) {
	t.Parallel() // it waits most of the time
	s := newServer()
	s.leaves = true
	trial := s.add(script(t), as("lines", t.TempDir()), 5)
	work(t, s, agent.Options{})
	s.await(t, "the first report was tried more than once", func() bool { return len(s.attempts) > 2 })
	s.change(func() { s.away, s.leaves = false, false })
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	if got := fmt.Sprint(trial.epochs()); got != "[1 2 3 4 5]" || trial.outcomes() != "budget_reached" {
		t.Errorf("reported %s, ended %q: %s", got, trial.outcomes(), trial.reason())
	}
	said := map[int]string{}
	for _, attempt := range s.attempts {
		content, err := json.Marshal(attempt)
		if err != nil {
			t.Fatal(err)
		}
		if before, again := said[attempt.Epoch]; again && before != string(content) {
			t.Errorf("epoch %d was reported as %s, then as %s", attempt.Epoch, before, content)
		}
		said[attempt.Epoch] = string(content)
	}
}

func TestWaitingForTheServerIsNoSilence(t *testing.T) {
	t.Parallel() // it waits most of the time
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
	s.change(func() {
		if got := fmt.Sprint(trial.epochs()); got != "[1 2]" {
			t.Errorf("reported %s", got)
		}
	})
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
		"large":   func(s *server, hash string) { s.artifacts[hash] = make([]byte, 2<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			s, place := newServer(), t.TempDir()
			trial := s.add(script(t), as("train", place), 1, 3)
			s.change(func() { trial.hold = true })
			stop := work(t, s, agent.Options{})
			s.await(t, "the first rung is finished", func() bool { return len(trial.finishes) == 1 })
			stop() // with its cache
			hash := ""
			s.change(func() {
				trial.queued, hash = true, trial.checkpoint.Artifact
				spoil(s, trial.checkpoint.Artifact)
			})
			work(t, s, agent.Options{MaxCheckpointBytes: 1, MaxCheckpointFiles: 1})
			s.await(t, "it is given back", func() bool { return len(trial.finishes) == 2 })
			if trial.outcomes() != "budget_reached interrupted" || !strings.Contains(trial.reason(), "could not be restored") {
				t.Errorf("ended %q: %s; a lost checkpoint is not the user's failure", trial.outcomes(), trial.reason())
			}
			// What is too large for this worker may be of use to another one.
			want := hash
			if name == "large" {
				want = ""
			}
			if got := trial.finishes[1].Unusable; got != want {
				t.Errorf("the server was told that checkpoint %q is of no use", got)
			}
		})
	}
}

// killableAgent is a whole agent process with a server in it.
func killableAgent() int {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	s := newServer()
	one := s.add([]string{self}, spawning(os.Getenv("PLACE")), 3)
	s.change(func() {
		one.lease.System = map[string]space.Value{"cpu_governor": space.String("performance"), "cpu_frequency_mhz": space.Int(900)}
	})
	worker, err := agent.New(agent.Options{Server: s, Scratch: os.Getenv("SCRATCH"), Root: os.Getenv("ROOT")})
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
	place, elsewhere := t.TempDir(), t.TempDir()
	scratch := filepath.Join(t.TempDir(), strings.Repeat("long-", 25)) // so the sockets are elsewhere
	doomed := exec.Command(script(t)[0])
	root, policies := agenttest.FrequencyTree(t)
	doomed.Env = append(os.Environ(), "ROLE=agent", "PLACE="+place, "SCRATCH="+scratch, "TMPDIR="+elsewhere, "ROOT="+root)
	if err := doomed.Start(); err != nil {
		t.Fatal(err)
	}
	bystander := exec.Command(script(t)[0])
	bystander.Env = append(os.Environ(), "ROLE=victim", "TANDEM_CHECKPOINT_DIR="+t.TempDir())
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	awaitNote(t, place, "ready") // the command runs and needs nothing from the agent
	pids, groups := file(t, place, "pids"), notedGroups(t, scratch)
	if agenttest.CanGroup() != (len(groups) == 1) {
		t.Errorf("the worker noted the control groups %q", groups)
	}
	if err := doomed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = doomed.Wait() // it was killed
	if got := policySettings(t, policies[0]); got != "performance 900000" {
		t.Errorf("it had set %s", got)
	}
	awaitGone(t, pids[len(pids)-1:]) // the command itself, by the kernel
	s := newServer()
	work(t, s, agent.Options{Scratch: scratch, Root: root})
	awaitGone(t, pids) // what it had started, by the next agent
	s.await(t, "the next agent works", func() bool { return s.registered == 1 })
	if got := policySettings(t, policies[0]); got != "schedutil 3000000" {
		t.Errorf("the next agent left it at %s", got)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("the sockets' folder is still there: %v, %v", left, err)
	}
	for _, group := range groups {
		if _, err := os.Stat(group); err == nil {
			t.Errorf("the control group %s is still there", group)
		}
	}
	if !alive(strconv.Itoa(bystander.Process.Pid)) {
		t.Error("a process of somebody else was killed")
	}
	if err := bystander.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = bystander.Wait() // it was killed
}

// notedGroups are the control groups that the agents of a scratch folder have
// noted for their successors.
func notedGroups(t *testing.T, scratch string) []string {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(scratch, "w*", "cgroup"))
	if err != nil {
		t.Fatal(err)
	}
	var groups []string
	for _, note := range notes {
		content, err := os.ReadFile(note)
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, string(content))
	}
	return groups
}

// spawning is the part of a script that starts others, also one that only a
// control group can hold where there are any.
func spawning(place string) map[string]string {
	environment := as("spawn", place)
	if agenttest.CanGroup() {
		environment["HIDDEN"] = "1"
	}
	return environment
}

func TestALeaseWhoseAnswerIsLostIsAskedForAgain(t *testing.T) {
	t.Parallel() // it waits most of the time
	s := newServer()
	s.swallows = 2
	trial := s.add(script(t), as("lines", t.TempDir()), 1)
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	s.change(func() {
		if s.swallowed != 2 || trial.lease.LeaseEpoch != 1 || trial.outcomes() != "budget_reached" {
			t.Errorf("behind %d lost answers lease %d ended as %s", s.swallowed, trial.lease.LeaseEpoch, trial.outcomes())
		}
	})
	// The next question is another one.
	next := s.add(script(t), as("lines", t.TempDir()), 1)
	s.await(t, "the next one is finished", func() bool { return len(next.finishes) == 1 })
}

func TestALeaseThatWasGivenAwayBeforeItsAnswerCameIsNotRun(t *testing.T) {
	t.Parallel() // it waits most of the time
	s := newServer()
	s.swallows = 1
	trial := s.add(script(t), as("lines", t.TempDir()), 1)
	s.since = func() { trial.holder, trial.queued = "", true } // the lease has run out
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	s.change(func() {
		if trial.lease.LeaseEpoch != 2 || len(trial.resumed) != 2 {
			t.Errorf("it was leased %d times, and ended under lease %d", len(trial.resumed), trial.lease.LeaseEpoch)
		}
		for _, one := range s.writes {
			if one.epoch == 1 && one.call != "heartbeat" {
				t.Errorf("it was run under a lease that had been over: %+v", one)
			}
		}
	})
}

// A broken GPU is not the trial's failure. The worker goes on, as the command's
// word does not prove it, unless the driver says that the GPU is gone.
func TestABrokenGPUIsNotTheTrialsFailure(t *testing.T) {
	broken := []string{"/bin/sh", "-c", "echo 'RuntimeError: CUDA error: uncorrectable ECC error encountered' >&2; exit 1"}
	t.Run("says the command", func(t *testing.T) {
		s := newServer()
		one, two := s.add(broken, nil, 1), s.add(script(t), as("lines", t.TempDir()), 1)
		work(t, s, agent.Options{})
		s.await(t, "both are finished", func() bool { return len(one.finishes) == 1 && len(two.finishes) == 1 })
		if one.outcomes() != "vanished" || !strings.Contains(one.reason(), "uncorrectable ECC error") || two.outcomes() != "budget_reached" {
			t.Errorf("ended %q (%s) and %q", one.outcomes(), one.reason(), two.outcomes())
		}
	})
	t.Run("says the driver", func(t *testing.T) {
		s := newServer()
		one, two := s.add(broken, nil, 1), s.add(script(t), as("lines", t.TempDir()), 1)
		worker, err := agent.New(agent.Options{Server: s, Scratch: t.TempDir(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}.WithLostGPU())
		if err != nil {
			t.Fatal(err)
		}
		if err := worker.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "GPU 0 (GPU-0): the GPU has fallen off the bus: this worker takes no more trials") {
			t.Errorf("the worker ended with %v", err)
		}
		if one.outcomes() != "vanished" || len(two.finishes) != 0 || s.left != 1 {
			t.Errorf("ended %q; %d of the other trial; the worker left %d times", one.outcomes(), len(two.finishes), s.left)
		}
	})
}
