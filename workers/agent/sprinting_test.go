package agent_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/agent/agenttest"
	"github.com/tandem-tune/tandem/workers/agent/knob"
)

// A command that sprints is made faster, the server hears for how long in each
// epoch, and afterwards all is as it was.
func TestAReportSaysForHowLongItSprinted(t *testing.T) {
	root, policies := agenttest.FrequencyTree(t)
	s := newServer()
	// It ends the first epoch when the sprint has begun, and the second a while later.
	command := fmt.Sprintf(`echo '{"epoch": 1, "accuracy": 1}'; until grep -q performance %s; do sleep 0.02; done; sleep 0.1; echo '{"epoch": 2, "accuracy": 1}'; sleep 0.1; echo '{"epoch": 3, "accuracy": 1}'`,
		filepath.Join(policies[0], "scaling_governor"))
	one := s.add([]string{"/bin/sh", "-c", command}, nil, 3)
	s.change(func() { one.lease.Sprint = &definition.Sprint{AfterSeconds: 0.2} })
	work(t, s, agent.Options{Root: root, Sprint: knob.Budget{Joules: 1e9, ExtraWatts: 1}})
	s.await(t, "the trial is over", func() bool { return len(one.finishes) == 1 })
	if len(one.reports) != 3 {
		t.Fatalf("there are %d reports", len(one.reports))
	}
	for i, report := range one.reports {
		if report.SprintSeconds < 0 || report.SprintSeconds > report.Seconds || i > 0 && report.SprintSeconds == 0 {
			t.Errorf("epoch %d sprinted %g of %g s", report.Epoch, report.SprintSeconds, report.Seconds)
		}
	}
	if got := policySettings(t, policies[0]); got != "schedutil 3000000" {
		t.Errorf("afterwards it is %s", got)
	}
}
