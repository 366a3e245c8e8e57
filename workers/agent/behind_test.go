package agent_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/workers/agent"
)

// hasty keeps a checkpoint of each epoch without waiting for the server, and spoils each one
// through a file that it has open before the next report. With LEAVES it ends in error after
// its first checkpoint.
func hasty() int {
	file, err := os.Create(state())
	if err != nil {
		panic(err)
	}
	defer file.Close()
	write := func(text string) {
		if _, err := file.WriteAt([]byte(text), 0); err != nil {
			panic(err)
		}
	}
	for epoch := 1; epoch <= number("TANDEM_EPOCHS"); epoch++ {
		call("POST", "/v1/report", fmt.Sprintf(`{"epoch": %d, "metrics": {"accuracy": 1}}`, epoch))
		write(fmt.Sprintf("state of epoch %d", epoch))
		status, answer := call("POST", "/v1/checkpoint?wait=false", fmt.Sprintf(`{"epoch": %d}`, epoch))
		note("answers", "%d %v", status, answer["detail"])
		if os.Getenv("LEAVES") != "" || status != http.StatusOK {
			return 1
		}
		write("spoilt by epoch 9")
	}
	return 0
}

// The first checkpoint is sent when the second epoch has been reported, and holds what was in
// the folder when the script was answered. The last one is there before its answer.
func TestTheNextEpochBeginsWhileACheckpointIsSent(t *testing.T) {
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), as("hasty", place), 2)
	s.sends = func() { s.await(t, "the next epoch is reported", func() bool { return len(trial.reports) == 2 }) }
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	var calls []string
	for _, w := range s.writes {
		if w.call == "report" || w.call == "checkpoint" || w.call == "finish" {
			calls = append(calls, w.call)
		}
	}
	if got := strings.Join(calls, " "); got != "report report checkpoint checkpoint finish" || trial.outcomes() != "budget_reached" || trial.checkpoint.Epoch != 2 {
		t.Errorf("%s, %s, the checkpoint is %+v", got, trial.outcomes(), trial.checkpoint)
	}
	for epoch := 1; epoch <= 2; epoch++ {
		if !s.has(fmt.Sprintf("state of epoch %d", epoch)) {
			t.Errorf("no checkpoint has the state of epoch %d as it was kept", epoch)
		}
	}
	if s.has("spoilt") {
		t.Error("a checkpoint has what was written when it was packed already")
	}
}

// has reports whether an artifact has the text.
func (s *server) has(text string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, content := range s.artifacts {
		if bytes.Contains(content, []byte(text)) {
			return true
		}
	}
	return false
}

// A lease is not given back before a checkpoint on its way is there.
func TestTheEndWaitsForACheckpoint(t *testing.T) {
	s, place := newServer(), t.TempDir()
	environment := as("hasty", place)
	environment["LEAVES"] = "1"
	trial := s.add(script(t), environment, 3)
	s.sends = func() {
		awaitNote(t, place, "answers")
		time.Sleep(200 * time.Millisecond) // for an end that does not wait
	}
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	if trial.outcomes() != "failed" || trial.checkpoint == nil || trial.checkpoint.Epoch != 1 {
		t.Errorf("ended %s, the checkpoint is %+v", trial.outcomes(), trial.checkpoint)
	}
}

// What the server refuses behind the script fails the script's next checkpoint, and is in the log.
func TestACheckpointIsRefusedBehindTheScript(t *testing.T) {
	s, place := newServer(), t.TempDir()
	trial := s.add(script(t), as("hasty", place), 3)
	s.refuses = problem.New(problem.Invalid, "it is too large")
	work(t, s, agent.Options{})
	s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
	const said = "the checkpoint of epoch 1 was not kept: "
	answers, err := os.ReadFile(filepath.Join(place, "answers"))
	if lines := strings.Split(string(answers), "\n"); err != nil || len(lines) != 3 || !strings.HasPrefix(lines[0], "200 ") || !strings.HasPrefix(lines[1], "422 "+said) {
		t.Errorf("the script was answered %q, %v", lines, err)
	}
	if trial.outcomes() != "failed" || !strings.Contains(trial.log[1], said) || trial.checkpoint != nil {
		t.Errorf("ended %s with the checkpoint %+v, log %q", trial.outcomes(), trial.checkpoint, trial.log[1])
	}
}
