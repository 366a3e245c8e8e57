package agent_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/workers/agent"
)

// TestOutOfMemory lets a script take memory until there is no more. It fails
// with the reason and what it had; the worker and its next trial do not notice.
func TestOutOfMemory(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	// It ends by itself should nothing bound it.
	const hog = `
import time
held = []
for _ in range(192):
    held.append(bytearray(b"x") * (8 << 20))
    time.sleep(0.002)
print('{"epoch": 1, "accuracy": 1}')
`
	s := newServer()
	trial := s.add([]string{"python3", "-c", hog}, nil, 1)
	s.change(func() { trial.lease.System = map[string]space.Value{"memory_gib": space.Float(0.25)} })
	work(t, s, agent.Options{})
	s.await(t, "it has ended", func() bool { return len(trial.finishes) == 1 })
	if trial.outcomes() == "budget_reached" {
		t.Skipf("nothing bounds memory here: %v", trial.log)
	}
	had := regexp.MustCompile(`had ([0-9.]+) GiB`).FindStringSubmatch(trial.reason())
	if trial.outcomes() != "failed" || !strings.Contains(trial.reason(), "memory") || had == nil || had[1] < "0.1" || had[1] > "0.5" {
		t.Errorf("ended %s: %s", trial.outcomes(), trial.reason())
	}
	next := s.add(script(t), as("lines", t.TempDir()), 1)
	s.await(t, "the next trial is finished", func() bool { return len(next.finishes) == 1 })
	if next.outcomes() != "budget_reached" {
		t.Errorf("the next trial ended %s: %s", next.outcomes(), next.reason())
	}
}

// TestLogsAreBounded lets a script write what no log can hold: one line without
// an end, and bytes that are no text.
func TestLogsAreBounded(t *testing.T) {
	for name, command := range map[string]string{
		"one line":   `head -c 8000000 /dev/zero | tr '\0' x`,
		"no text":    `head -c 8000000 /dev/urandom`,
		"no end":     `yes "the same again" | head -c 8000000`,
		"to stderr":  `head -c 8000000 /dev/urandom >&2`,
		"empty text": `head -c 8000000 /dev/zero`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			trial := s.add([]string{"sh", "-c", command + `; echo; echo '{"epoch": 1, "accuracy": 1}'`}, nil, 1)
			work(t, s, agent.Options{NoProfile: true})
			s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
			if len(trial.reports) != 1 || trial.outcomes() != "budget_reached" {
				t.Errorf("%d reports, ended %s: %s", len(trial.reports), trial.outcomes(), trial.reason())
			}
			// A byte that is no text takes three in the log.
			if log := trial.log[1]; len(log) < 1000 || len(log) > 3<<20 || strings.ToValidUTF8(log, "") != log || strings.Contains(log, "\x00") || !strings.Contains(log, "left out") {
				t.Errorf("the log has %d bytes", len(log))
			}
		})
	}
}
