package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/agent/leave"
)

// ends runs an agent that leaves by itself.
func ends(t *testing.T, s *server, options agent.Options) error {
	t.Helper()
	options.Server, options.Scratch = s, t.TempDir()
	worker, err := agent.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return worker.Run(t.Context())
}

func TestAnIdleWorkerLeaves(t *testing.T) {
	s := newServer()
	trial := s.add(script(t), as("train", t.TempDir()), 1)
	if err := ends(t, s, agent.Options{Leave: leave.Rules{Idle: 200 * time.Millisecond}}); err != nil {
		t.Error(err)
	}
	if trial.outcomes() != "budget_reached" || s.left != 1 {
		t.Errorf("ended %q, unregistered %d times", trial.outcomes(), s.left)
	}
}

func TestTrialsAreHandedBackBeforeTheMachineIsTaken(t *testing.T) {
	grace := time.Second                                         // and 15 s to hand in what there is
	for span := 4 * time.Second; span < time.Minute; span *= 2 { // on a busy machine the trial may not begin before
		s := newServer()
		trial := s.add(script(t), as("polite", t.TempDir()), 5)
		err := ends(t, s, agent.Options{DrainGrace: grace, Leave: leave.Rules{EndAt: time.Now().Add(grace + 15*time.Second + span)}})
		if err == nil && trial.outcomes() == "" {
			continue
		}
		if err != nil || trial.outcomes() != "interrupted" || !strings.Contains(trial.reason(), "time was over") {
			t.Errorf("%v; ended %q: %q", err, trial.outcomes(), trial.reason())
		}
		return
	}
	t.Error("no trial began")
}

func TestTheHistorySaysWhyTheWorkerLeft(t *testing.T) {
	s := newServer()
	trial := s.add(script(t), as("polite", t.TempDir()), 5)
	stop := work(t, s, agent.Options{DrainGrace: 20 * time.Second, Leave: leave.Rules{
		Host: "node-7", Launch: "L1", Reason: func() string { return "preempted by Slurm" },
	}})
	s.await(t, "it has reported", func() bool { return len(trial.reports) == 1 })
	stop()
	if trial.reason() != "preempted by Slurm" || s.machine.Host != "node-7" || s.launch != "L1" {
		t.Errorf("the reason is %q, the host %q, the launch %q", trial.reason(), s.machine.Host, s.launch)
	}
}

func TestOtherGPUsThanPromisedAreRefused(t *testing.T) {
	s := newServer()
	if err := ends(t, s, agent.Options{Leave: leave.Rules{GPUs: 65}}); !errors.As(err, new(leave.Unfit)) || s.registered != 0 {
		t.Errorf("it registered %d times: %v", s.registered, err)
	}
}

// TestScriptsThatAreToldFirst: Slurm and systemd tell all processes of a job to end, and
// the script may have ended before its worker hears of it.
func TestScriptsThatAreToldFirst(t *testing.T) {
	for _, test := range []struct{ end, outcome string }{
		{"exit 0", "interrupted"},
		{"kill -TERM $$", "interrupted"},
		{"exit 143", "interrupted"},
		{"exit 1", "failed"}, // nobody told it to
	} {
		t.Run(test.end, func(t *testing.T) {
			t.Parallel()
			s, place := newServer(), t.TempDir()
			trial := s.add([]string{"sh", "-c", `echo $$ >"$PLACE/pid"; mv "$PLACE/pid" "$PLACE/began"; ` + test.end}, as("", place), 5)
			stop := work(t, s, agent.Options{Leave: leave.Rules{Notice: time.Hour, Reason: func() string { return "preempted by Slurm" }}})
			awaitNote(t, place, "began")
			awaitGone(t, file(t, place, "began"))
			if test.outcome == "failed" {
				s.await(t, "it has failed", func() bool { return trial.outcomes() != "" })
			} else {
				time.Sleep(200 * time.Millisecond) // time to judge it too early
			}
			stop()
			if trial.outcomes() != test.outcome || (trial.reason() == "preempted by Slurm") != (test.outcome == "interrupted") {
				t.Errorf("it ended %q: %q", trial.outcomes(), trial.reason())
			}
		})
	}
}
