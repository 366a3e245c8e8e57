package agent_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/workers/agent"
)

// TestAWorkerSaysWhatItCanMeasure compares what it registers with what the doctor
// says of the same machine.
func TestAWorkerSaysWhatItCanMeasure(t *testing.T) {
	for name, options := range map[string]agent.Options{"profiling": {}, "not profiling": {NoProfile: true}} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			stop := work(t, s, options)
			s.await(t, "a worker registers", func() bool { return s.registered > 0 })
			stop()
			found := profiler.Measurable("/")
			if len(s.measures) != len(found) {
				t.Fatalf("the worker says %+v, the doctor %+v", s.measures, found)
			}
			for i, one := range s.measures {
				if options.NoProfile && one.Name == "perf counters" {
					if one.Available || !strings.Contains(one.Reason, "--no-profile") {
						t.Errorf("counters that are switched off: %+v", one)
					}
					continue
				}
				if one.Name != found[i].Name || one.Available != found[i].Available || !one.Available && one.Reason == "" {
					t.Errorf("the worker says %+v, the doctor %+v", one, found[i])
				}
			}
		})
	}
}

// TestHeartbeatsTellTheLoad waits for one that does: the first span is a second.
func TestHeartbeatsTellTheLoad(t *testing.T) {
	s := newServer()
	stop := work(t, s, agent.Options{})
	s.await(t, "a heartbeat tells the load", func() bool { return s.load != nil })
	stop()
	if l := s.load; l.CPUUtilization < 0 || l.CPUUtilization > 1 || l.MemoryUtilization <= 0 || l.MemoryUtilization > 1 || l.Watts <= 0 || l.Method == "" {
		t.Errorf("%+v", l)
	}
}
