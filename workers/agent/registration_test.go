package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/workers/agent"
)

// TestAWorkerSaysWhichKnobsItCanSet compares what it registers with what the
// doctor says of the same machine.
func TestAWorkerSaysWhichKnobsItCanSet(t *testing.T) {
	s := newServer()
	stop := work(t, s, agent.Options{})
	s.await(t, "a worker registers", func() bool { return s.registered > 0 })
	stop()
	var can []string
	for _, one := range agent.Knobs("/") {
		if one.Available && !strings.Contains(one.Detail, "script") {
			can = append(can, strings.TrimPrefix(one.Name, "knob "))
		}
	}
	if !slices.Equal(s.machine.Knobs, can) {
		t.Errorf("the worker says it can set %v, the doctor %v", s.machine.Knobs, can)
	}
}
