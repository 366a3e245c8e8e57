package agent_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/tandem-tune/tandem/workers/agent"
)

// TestProbesAreInTheRegistration starts one worker after the other on a machine.
func TestProbesAreInTheRegistration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "probes.json")
	var runs atomic.Int64
	for _, step := range []struct {
		what      string
		mode      agent.ProbeMode
		others    float64
		runs, has bool
	}{
		{"one that is not to probe", agent.ProbeNever, 0, false, false},
		{"the first one, disturbed", agent.ProbeOnce, 0.9, true, false},
		{"the first one", agent.ProbeOnce, 0, true, true},
		{"the next one", agent.ProbeOnce, 0.9, false, true},
		{"one that is to probe anew", agent.ProbeAlways, 0, true, true},
		{"one that is to probe, disturbed", agent.ProbeAlways, 0.9, true, true},
		{"one that is not to, then", agent.ProbeNever, 0, false, false},
	} {
		s, before := newServer(), runs.Load()
		stop := work(t, s, agent.Options{Probe: step.mode, ProbesFile: file}.WithProbingTask(&runs, step.others))
		s.await(t, "a worker registers", func() bool { return s.registered > 0 })
		stop()
		if ran := runs.Load() > before; ran != step.runs || (len(s.probes) > 0) != step.has {
			t.Errorf("%s: its tasks ran: %v, it told %+v", step.what, ran, s.probes)
		}
		for _, one := range s.probes {
			if one.Workload != "small" || !(one.Seconds > 0) || !(one.Joules > 0) || one.Method == "" {
				t.Errorf("%s: got %+v", step.what, one)
			}
		}
	}
	if _, err := agent.New(agent.Options{Server: newServer(), Scratch: t.TempDir(), Probe: "often"}); err == nil {
		t.Error("probing often is taken")
	}
}
