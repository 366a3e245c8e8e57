package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/agent/agenttest"
	"github.com/tandem-tune/tandem/workers/agent/knob"
)

// TestAWorkerSaysWhichKnobsItCanSet compares what it registers with what the
// doctor says of the same machine. It also says which features it knows.
func TestAWorkerSaysWhichKnobsItCanSet(t *testing.T) {
	s := newServer()
	stop := work(t, s, agent.Options{})
	s.await(t, "a worker registers", func() bool { return s.registered > 0 })
	stop()
	var can []string
	for _, one := range knob.Capabilities("/") {
		if one.Available && !strings.Contains(one.Detail, "script") {
			can = append(can, strings.TrimPrefix(one.Name, "knob "))
		}
	}
	if !slices.Equal(s.machine.Knobs, can) {
		t.Errorf("the worker says it can set %v, the doctor %v", s.machine.Knobs, can)
	}
	if !slices.Equal(s.features, protocol.Features()) {
		t.Errorf("the worker knows %v", s.features)
	}
}

// An elastic worker offers every core, and a trial that says nothing of cores
// may count on all of them.
func TestElasticWorker(t *testing.T) {
	cores := len(agenttest.AllowedCores(t))
	for name, test := range map[string]struct {
		options        agent.Options
		slots, threads int
		elastic        bool
	}{
		"elastic":          {agent.Options{Elastic: true}, min(cores, 64), cores, true},
		"elastic, bounded": {agent.Options{Elastic: true, Slots: 3}, 3, cores, true},
		"fixed":            {agent.Options{Slots: 2}, 2, max(1, cores/2), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range system.ThreadVariables() {
				t.Setenv(variable, "")
			}
			s, place := newServer(), t.TempDir()
			trial := s.add(script(t), as("show", place), 1)
			work(t, s, test.options)
			s.await(t, "it is finished", func() bool { return len(trial.finishes) == 1 })
			s.change(func() {
				for _, slots := range s.workers {
					if slots != test.slots || s.elastic != test.elastic {
						t.Errorf("it registered %d slots, elastic %v", slots, s.elastic)
					}
				}
			})
			if got := file(t, place, "environment"); !slices.Contains(got, fmt.Sprintf("OMP_NUM_THREADS=%d", test.threads)) {
				t.Errorf("the script has not %d threads: %q", test.threads, got)
			}
		})
	}
}
