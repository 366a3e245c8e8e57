package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/agent/agenttest"
)

// TestReportsOutliveTheirLease keeps the server away for longer than a lease,
// while a script reports and ends: what it said is told when the server is back,
// in order, and the lease is given back.
func TestReportsOutliveTheirLease(t *testing.T) {
	t.Parallel() // it waits most of the time
	s := newServer()
	s.timing.LeaseSeconds, s.leaves = 2, true
	trial := s.add(script(t), as("lines", t.TempDir()), 5)
	s.change(func() { trial.hold = true })
	work(t, s, agent.Options{})
	s.await(t, "the first report was tried", func() bool { return len(s.attempts) > 0 })
	s.await(t, "the lease is over, and another trial asked for", func() bool { return s.asked == 2 })
	s.change(func() { s.away, s.leaves = false, false })
	s.await(t, "the trial is given back", func() bool { return len(trial.finishes) == 1 })
	if got := fmt.Sprint(trial.epochs()); got != "[1 2 3 4 5]" || trial.outcomes() != "interrupted" {
		t.Errorf("reported %s, given back as %s: %s", got, trial.outcomes(), trial.reason())
	}
}

// TestWhatIsLeftOfALostLeaseIsDropped gives the trial away while the server
// cannot be reached: nothing that is told late may count.
func TestWhatIsLeftOfALostLeaseIsDropped(t *testing.T) {
	t.Parallel() // it waits most of the time
	s, place := newServer(), t.TempDir()
	s.timing.LeaseSeconds = 2
	trial := s.add(script(t), as("gated", place), 3)
	work(t, s, agent.Options{})
	s.await(t, "it has reported", func() bool { return len(trial.reports) == 1 })
	s.change(func() { s.away = true })
	if err := os.WriteFile(filepath.Join(place, "go"), nil, 0o600); err != nil { // it reports epoch 2 now
		t.Fatal(err)
	}
	awaitGone(t, file(t, place, "pids")) // it was let go of
	s.change(func() {
		s.away = false
		trial.lease.LeaseEpoch++
		trial.holder = "another worker"
	})
	s.await(t, "what it told late was refused", func() bool {
		for _, w := range s.writes {
			if w.call != "heartbeat" && w.epoch == 1 && problem.Is(w.err, problem.LeaseLost) {
				return true
			}
		}
		return false
	})
	other := s.add(script(t), as("lines", t.TempDir()), 1)
	s.await(t, "the next trial is finished", func() bool { return len(other.finishes) == 1 })
	s.change(func() {
		if got := fmt.Sprint(trial.epochs()); got != "[1]" || len(trial.finishes) != 0 {
			t.Errorf("counted %s, and finished %+v", got, trial.finishes)
		}
	})
}

// TestTheNextAgentTellsWhatAKilledOneHadToTell: the reports that had not been
// answered, that their trial is lost, and that it is gone.
func TestTheNextAgentTellsWhatAKilledOneHadToTell(t *testing.T) {
	s, scratch := newServer(), t.TempDir()
	trial := s.add(script(t), nil, 5)
	s.change(func() {
		trial.queued, trial.holder, trial.lease.LeaseEpoch, s.workers["killed-worker"] = false, "killed-worker", 1, 1
	})
	trial.lease.Budget.Epochs = 5
	agenttest.AbandonedOutbox(t, scratch, protocol.HeldLease{Trial: trial.lease.Trial, LeaseEpoch: 1}, []int{1, 2, 3, 4}, []int{1, 2})
	work(t, s, agent.Options{Scratch: scratch})
	s.await(t, "the lease is ended, and the killed worker unknown", func() bool { return len(trial.finishes) == 1 && s.workers["killed-worker"] == 0 })
	if got := fmt.Sprint(trial.epochs()); got != "[3 4]" || trial.outcomes() != "vanished" || !strings.Contains(trial.reason(), "killed") {
		t.Errorf("told %s, and %s: %s", got, trial.outcomes(), trial.reason())
	}
}

// TestALaunchedAgentTakesLeaveOfNoOther, whose job's launcher tells of it: taking leave
// ends a launched worker's token.
func TestALaunchedAgentTakesLeaveOfNoOther(t *testing.T) {
	s, scratch := newServer(), t.TempDir()
	s.change(func() { s.workers["killed-worker"] = 1 })
	agenttest.AbandonedOutbox(t, scratch, protocol.HeldLease{Trial: "s1-99", LeaseEpoch: 1}, []int{1}, []int{1})
	trial := s.add(script(t), as("lines", t.TempDir()), 1)
	options := agent.Options{Scratch: scratch}
	options.Leave.Launch = "L-7"
	stop := work(t, s, options)
	s.await(t, "a trial is finished", func() bool { return len(trial.finishes) == 1 })
	stop()
	s.change(func() {
		if s.workers["killed-worker"] != 1 {
			t.Error("it took leave of another worker")
		}
	})
}

// TestAStalledScript is told of, and ended where the study wants that.
func TestAStalledScript(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, ends := range []bool{false, true} {
		t.Run(fmt.Sprintf("ends %v", ends), func(t *testing.T) {
			t.Parallel()
			s := newServer()
			trial := s.add(script(t), as("quiet", t.TempDir()), 3)
			s.change(func() { trial.lease.StallSeconds, trial.lease.StallEnds = 1, ends })
			work(t, s, agent.Options{})
			s.await(t, "the silence is told", func() bool { return s.quiet >= 1 })
			if !ends {
				s.change(func() {
					if len(trial.finishes) != 0 {
						t.Errorf("it was ended: %s", trial.reason())
					}
				})
				return
			}
			s.await(t, "it is ended", func() bool { return len(trial.finishes) == 1 })
			if trial.outcomes() != "failed" || !strings.Contains(trial.reason(), "stall_seconds") {
				t.Errorf("ended %s: %s", trial.outcomes(), trial.reason())
			}
		})
	}
}

// TestAStoppedScriptIsEnded stops the script's process, as a debugger or a
// frozen file system does: signals that it could catch would never reach it.
func TestAStoppedScriptIsEnded(t *testing.T) {
	t.Parallel() // it waits most of the time
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), as("gated", place), 3)
	s.change(func() { trial.lease.StallSeconds, trial.lease.StallEnds = 1, true })
	work(t, s, agent.Options{StopGrace: 100 * time.Millisecond})
	s.await(t, "it has reported", func() bool { return len(trial.reports) == 1 })
	var pid int
	if _, err := fmt.Sscan(file(t, place, "pids")[0], &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.await(t, "it is ended", func() bool { return len(trial.finishes) == 1 })
	awaitGone(t, file(t, place, "pids"))
	if !strings.Contains(trial.reason(), "stalled") {
		t.Errorf("ended %s: %s", trial.outcomes(), trial.reason())
	}
}
