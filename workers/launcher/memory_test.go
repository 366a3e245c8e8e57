package launcher_test

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/launcher"
)

// TestJobsThatAreNoneOfOursAreLeftAlone: of a job whose launch the server would refuse,
// nothing is told, and nothing is asked.
func TestJobsThatAreNoneOfOursAreLeftAlone(t *testing.T) {
	c := newCluster(t, launcher.Shape{})
	c.wants = want(1, 0)
	c.tick()
	other := &job{Job: launcher.Job{ID: "other", Launch: "abc-N/A", Shape: "worker", State: launcher.Pending}}
	c.jobs = append(c.jobs, other)
	for _, state := range []launcher.State{launcher.Pending, launcher.Running, launcher.Ended} {
		other.State, other.Cause = state, protocol.Crashed
		c.tick()
		report := c.planner.Report(c.now, c.plan.Notes, nil)
		if len(report.Over) > 0 || len(report.Ends) > 0 || len(c.plan.Cancel) > 0 || report.Shapes[0].Pending != 1 || c.asked != 1 {
			t.Errorf("while the other one is %s the server is told %+v", state, report)
		}
	}
}

// TestAShapeIsTriedAgainWithOneWorkerAlone, and is on hold for longer when that fails.
func TestAShapeIsTriedAgainWithOneWorkerAlone(t *testing.T) {
	c := newCluster(t, launcher.Shape{Most: 8, MostAnHour: 1000})
	c.wants = want(4, 0)
	hold := func() (long time.Duration) {
		if hold := c.planner.Report(c.now, nil, nil).Shapes[0].Hold; hold != nil {
			long = hold.Until.Sub(c.now)
		}
		return long
	}
	c.tick()
	c.end(protocol.Crashed)
	c.tick()
	c.must(t, "jobs", c.asked, 4)
	if hold() != time.Minute {
		t.Errorf("four that fail at once hold it for %v", hold())
	}
	c.planner.TryAgain(c.now, "worker")
	c.tick()
	c.must(t, "jobs when it is tried again", c.asked, 5)
	c.end(protocol.Crashed)
	c.tick()
	c.must(t, "jobs on hold", c.asked, 5)
	if hold() != 2*time.Minute {
		t.Errorf("the next failure holds it for %v", hold())
	}
}
