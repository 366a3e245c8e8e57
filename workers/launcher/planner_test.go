package launcher_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/launcher"
)

// cluster is an engine in simulated time.
type cluster struct {
	now     time.Time
	planner *launcher.Planner
	jobs    []*job
	wants   []launcher.Want
	plan    launcher.Plan
	// asked counts the jobs that were ordered.
	asked int
}

type job struct {
	launcher.Job
	registered bool
	trials     int
}

func newCluster(t interface{ Fatal(...any) }, shapes ...launcher.Shape) *cluster {
	sorted, err := launcher.Sorted(shapes)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{now: time.Unix(1e9, 0), planner: &launcher.Planner{Shapes: sorted, Idle: 5 * time.Minute}}
}

// tick plans and does what is planned.
func (c *cluster) tick() {
	c.now = c.now.Add(10 * time.Second)
	seen := launcher.Seen{Wants: c.wants}
	for _, one := range c.jobs {
		seen.Jobs = append(seen.Jobs, one.Job)
		if one.registered && one.State != launcher.Ended {
			seen.Workers = append(seen.Workers, launcher.Worker{Launch: one.Launch, Trials: one.trials, Slots: 1})
		}
	}
	c.plan = c.planner.Plan(c.now, seen)
	for _, order := range c.plan.Orders {
		for i := range order.Count {
			c.asked++
			c.jobs = append(c.jobs, &job{Job: launcher.Job{ID: fmt.Sprint(c.asked), Launch: fmt.Sprintf("%s-%d", order.ID, i), Shape: order.Shape.Name, State: launcher.Pending}})
		}
	}
	for _, id := range c.plan.Cancel {
		for _, one := range c.jobs {
			if one.ID == id {
				one.State, one.Cause = launcher.Ended, protocol.Preempted
			}
		}
	}
}

// count counts the jobs in a state.
func (c *cluster) count(state launcher.State) (n int) {
	for _, one := range c.jobs {
		if one.State == state {
			n++
		}
	}
	return n
}

func want(trials, gpus int) []launcher.Want {
	return []launcher.Want{{Study: "s", Trials: trials, GPUs: gpus}}
}

func (c *cluster) must(t *testing.T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d, want %d; notes: %q", what, got, want, c.plan.Notes)
	}
}

func TestWhatIsPendingIsSupply(t *testing.T) {
	c := newCluster(t, launcher.Shape{})
	c.wants = want(3, 0)
	for range 10 {
		c.tick()
	}
	c.must(t, "jobs", c.asked, 3)
}

func TestNothingWantedNothingStarted(t *testing.T) {
	c := newCluster(t, launcher.Shape{})
	c.wants = want(0, 0)
	for range 10 {
		c.tick()
	}
	c.must(t, "jobs", c.asked, 0)
}

func TestWhatDoesNotFitIsSaidAndNotStarted(t *testing.T) {
	c := newCluster(t, launcher.Shape{Name: "small", GPUs: 1}, launcher.Shape{Name: "cpu"})
	c.wants = want(3, 2)
	c.tick()
	c.must(t, "jobs", c.asked, 0)
	if len(c.plan.Notes) != 1 || !strings.Contains(c.plan.Notes[0].Says, "no shape has what its trials ask for (2 GPUs") {
		t.Errorf("it says %q", c.plan.Notes)
	}
	c.wants = append(want(1, 1), want(2, 0)...)
	c.tick()
	if len(c.plan.Orders) != 2 || c.plan.Orders[0].Shape.Name != "cpu" || c.plan.Orders[0].Count != 2 || c.plan.Orders[1].Count != 1 {
		t.Errorf("the orders are %+v", c.plan.Orders)
	}
}

func TestSurplusIsTakenBackOnceTheStudyEnded(t *testing.T) {
	c := newCluster(t, launcher.Shape{Most: 5})
	c.wants = want(5, 0)
	c.tick()
	c.jobs[0].State, c.jobs[0].registered, c.jobs[0].trials = launcher.Running, true, 1
	c.jobs[1].State = launcher.Running // and has not registered
	c.wants = nil
	c.tick()
	c.must(t, "taken back", len(c.plan.Cancel), 4)
	if c.jobs[0].State != launcher.Running {
		t.Error("a worker with a trial was taken back")
	}
}

// TestAWorkerThatIsHeardOfRuns, whatever its engine says: some tell later.
func TestAWorkerThatIsHeardOfRuns(t *testing.T) {
	c := newCluster(t, launcher.Shape{Most: 2})
	c.wants = want(2, 0)
	c.tick()
	c.jobs[0].registered, c.jobs[0].trials = true, 1
	c.wants = nil
	c.tick()
	if c.jobs[0].State != launcher.Pending || c.jobs[1].State != launcher.Ended {
		t.Errorf("of two that wait for the engine, one of which has a trial, there are %+v and %+v", c.jobs[0], c.jobs[1])
	}
	c.tick()
	if shown := c.planner.Report(c.now, nil, nil).Shapes[0]; shown.Running != 1 || shown.Pending != 0 {
		t.Errorf("it reports %+v", shown)
	}
}

func TestSurplusIsTakenBackSlowlyWhileStudiesRun(t *testing.T) {
	c := newCluster(t, launcher.Shape{})
	c.wants = want(5, 0)
	c.tick()
	c.wants = want(2, 0)
	for i, taken := range []int{0, 0, 3} {
		c.tick()
		c.must(t, fmt.Sprintf("taken back at %d", i), len(c.plan.Cancel), taken)
	}
	c.must(t, "pending", c.count(launcher.Pending), 2)
}

// end ends all jobs.
func (c *cluster) end(cause protocol.Cause) {
	for _, one := range c.jobs {
		if one.State != launcher.Ended {
			one.State, one.Cause, one.Why = launcher.Ended, cause, "no GPU is there"
		}
	}
}

func TestAShapeThatOnlyFailsIsHeld(t *testing.T) {
	c := newCluster(t, launcher.Shape{Most: 1, MostAnHour: 1000})
	c.wants = want(1, 0)
	for range 360 { // an hour
		c.tick()
		c.end(protocol.Crashed)
	}
	if c.asked < 4 || c.asked > 10 {
		t.Errorf("%d were started in an hour", c.asked)
	}
	if len(c.plan.Notes) == 0 || !strings.Contains(c.plan.Notes[0].Says, "no GPU is there") {
		t.Errorf("it says %q", c.plan.Notes)
	}
}

func TestPreemptionsHoldNothing(t *testing.T) {
	c := newCluster(t, launcher.Shape{Most: 1, MostAnHour: 1000})
	c.wants = want(1, 0)
	for range 100 {
		c.tick()
		c.end(protocol.Preempted)
	}
	if c.asked < 50 {
		t.Errorf("only %d were started", c.asked)
	}
}

func TestGPUHoursOfADayAreBounded(t *testing.T) {
	c := newCluster(t, launcher.Shape{GPUs: 4, Most: 1, GPUHoursADay: 2, MostAnHour: 1000})
	c.now = c.now.UTC().Truncate(24 * time.Hour)
	c.wants = want(1, 4)
	c.tick()
	c.jobs[0].State, c.jobs[0].registered, c.jobs[0].trials = launcher.Running, true, 1
	for range 181 {
		c.tick()
	}
	c.end(protocol.Finished)
	c.tick()
	c.must(t, "jobs", c.asked, 1)
	c.now = c.now.Add(24 * time.Hour)
	c.tick()
	c.must(t, "jobs on the next day", c.asked, 2)
}

// TestPlansKeepTheirBounds holds the planner against engines that do anything: no bound
// is passed, no worker with a trial is taken back, and all that waits is taken back at
// once when nothing is wanted.
func TestPlansKeepTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 6).Draw(t, "most")
		pending, hourly := rapid.IntRange(1, 6).Draw(t, "pending"), rapid.IntRange(1, 30).Draw(t, "hourly")
		c := newCluster(t, launcher.Shape{Most: most, MostPending: pending, MostAnHour: hourly})
		var started []time.Time
		for range rapid.IntRange(1, 120).Draw(t, "ticks") {
			c.wants = want(rapid.IntRange(0, 12).Draw(t, "wanted"), 0)
			before := c.asked
			c.tick()
			for range c.asked - before {
				started = append(started, c.now)
			}
			for len(started) > 0 && c.now.Sub(started[0]) >= time.Hour {
				started = started[1:]
			}
			alive, waiting := len(c.jobs)-c.count(launcher.Ended), 0
			for _, one := range c.jobs {
				if one.State == launcher.Pending && !one.registered {
					waiting++
				}
			}
			if alive > most || waiting > pending || len(started) > hourly {
				t.Fatalf("%d alive of %d, %d pending of %d, %d in an hour of %d", alive, most, waiting, pending, len(started), hourly)
			}
			if c.asked > before && c.asked-before > c.wants[0].Trials {
				t.Fatalf("%d started for %d trials", c.asked-before, c.wants[0].Trials)
			}
			for _, one := range c.jobs {
				if one.trials > 0 && one.State == launcher.Ended && one.Blameless() {
					t.Fatal("a worker with a trial was taken back")
				}
			}
			if c.wants[0].Trials == 0 && waiting > 0 {
				t.Fatal("nothing is wanted, and jobs wait")
			}
			for _, one := range c.jobs {
				switch {
				case one.State == launcher.Pending && rapid.Bool().Draw(t, "starts"):
					one.State = launcher.Running
				case one.State == launcher.Pending && rapid.IntRange(0, 3).Draw(t, "is heard of first") == 0:
					one.registered, one.trials = true, 1
				case one.State == launcher.Running && !one.registered:
					one.registered = rapid.Bool().Draw(t, "registers")
				case one.State == launcher.Running && one.trials == 0:
					one.trials = rapid.IntRange(0, 1).Draw(t, "takes")
				case one.State == launcher.Running && rapid.IntRange(0, 3).Draw(t, "ends") == 0:
					one.State, one.trials = launcher.Ended, 0
				}
			}
		}
	})
}

func TestShapesThatCannotBeMeantAreRefused(t *testing.T) {
	for _, test := range []struct {
		shapes []launcher.Shape
		says   string
	}{
		{nil, "no shape is given"},
		{[]launcher.Shape{{Name: "A b"}}, "name must be"},
		{[]launcher.Shape{{GPUs: -1}}, "gpus is -1"},
		{[]launcher.Shape{{TimeLimit: time.Second}}, "time_limit is 1s"},
		{[]launcher.Shape{{Name: "a"}, {Name: "a"}}, "two shapes are named a"},
	} {
		if _, err := launcher.Sorted(test.shapes); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test.shapes, err)
		}
	}
}
