package study_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// trainTo trains the lease's one epoch to a value of its first objective, with what
// that took.
func (w *world) trainTo(lease *protocol.Lease, value, seconds, joules float64) {
	w.t.Helper()
	_, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: trial.Float(seconds), Metrics: map[string]trial.Float{lease.Objectives[0]: trial.Float(value)},
		Energy: &trial.Energy{Joules: trial.Float(joules), Method: "estimate: test"},
	})
	if err == nil {
		_, err = w.finish(lease, protocol.BudgetReached)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) impact(name string) map[string]protocol.ImpactOutcome {
	w.t.Helper()
	answer, err := w.service.Impact(w.ctx, name)
	if err != nil {
		w.t.Fatal(err)
	}
	outcomes := map[string]protocol.ImpactOutcome{}
	for _, one := range answer.Outcomes {
		outcomes[one.Name] = one
	}
	return outcomes
}

func impactOf(t *testing.T, outcome protocol.ImpactOutcome, parameter string) protocol.ParameterImpact {
	t.Helper()
	for _, one := range outcome.Parameters {
		if one.Name == parameter {
			return one
		}
	}
	t.Fatalf("%s says nothing of %s: %+v", outcome.Name, parameter, outcome)
	return protocol.ParameterImpact{}
}

func TestImpactOfAStudy(t *testing.T) {
	for _, direction := range []string{"maximize", "minimize"} {
		in(func(t *testing.T, w *world) {
			created := w.create("direction: maximize", "direction: "+direction, "trials: 27", "trials: 120", "method: bohb", "method: random", "policy: multi", "policy: epochs", "min: 1, max: 9", "min: 1, max: 1",
				"space: {x: {type: float, low: 0, high: 1}}", "space: {x: {type: float, low: 0, high: 1}, batch: {values: [a, b]}, idle: {type: float, low: 0, high: 1}}")
			w.register("worker-1")
			if early := w.impact(created.Name); len(early) != 0 {
				t.Errorf("before any trial: %+v", early)
			}
			for trained := range 120 {
				lease := w.mustLease("worker-1")
				x, _ := lease.Params["x"].Number()
				seconds := 10.0 // with batch b 40 % more: in parts of the larger, 2/7
				if lease.Params["batch"] == space.String("b") {
					seconds = 14
				}
				w.trainTo(lease, 0.8+0.1*x, seconds, 2*seconds)
				if trained == 4 {
					if few := w.impact(created.Name)["accuracy"]; len(few.Parameters) != 0 || len(few.Notes) != 1 || !strings.Contains(few.Notes[0], "too few trials: 5 have this outcome, and 10 are needed") {
						t.Errorf("after five trials: %+v", few)
					}
				}
			}
			outcomes := w.impact(created.Name)
			accuracy, seconds, joules := outcomes["accuracy"], outcomes["training_seconds"], outcomes["training_joules"]
			if accuracy.Trials != 120 || accuracy.Estimated || !joules.Estimated || joules.Method != "estimate: test" || seconds.Unit != "s" || *seconds.Rung != 0 {
				t.Errorf("%+v", outcomes)
			}
			for _, c := range []struct {
				outcome          protocol.ImpactOutcome
				parameter, class string
				variation        float64
			}{
				{accuracy, "x", protocol.HighImpact, 0.1 / 0.9}, {accuracy, "idle", protocol.LowImpact, 0}, {accuracy, "batch", protocol.LowImpact, 0},
				{seconds, "batch", protocol.HighImpact, 4.0 / 14}, {seconds, "x", protocol.LowImpact, 0}, {joules, "batch", protocol.HighImpact, 4.0 / 14},
			} {
				one := impactOf(t, c.outcome, c.parameter)
				if one.Class != c.class || math.Abs(one.Variation-c.variation) > 0.02 || one.Measured || one.Chance == nil || c.variation > 0 && *one.Chance > 0.01 {
					t.Errorf("%s with %s: %+v, want %s, about %.3f", c.outcome.Name, c.parameter, one, c.class, c.variation)
				}
			}
			if x := impactOf(t, accuracy, "x"); math.Abs(x.Lowest-0.8) > 0.02 || math.Abs(x.Highest-0.9) > 0.02 {
				t.Errorf("from %g to %g, want from 0.8 to 0.9", x.Lowest, x.Highest)
			} else if at, _ := x.HighestAt.Number(); at < 0.8 {
				t.Errorf("the highest is at x = %g", at)
			}
			if batch := impactOf(t, seconds, "batch"); batch.LowestAt != space.String("a") || batch.HighestAt != space.String("b") {
				t.Errorf("%+v", batch)
			}
		})(t)
	}
}

// Knobs of the system change within a run: their impact is measured.
func TestImpactOfKnobsIsMeasured(t *testing.T) {
	in(func(t *testing.T, w *world) {
		tuned(w, "threads")
		w.box(false).train("threads", slowWithTwo)
		seconds := w.impact("threads")["training_seconds"]
		threads := impactOf(t, seconds, "cpu_threads")
		if !threads.Measured || threads.Runs == 0 || threads.Chance != nil || threads.Kind != space.System || threads.Class != protocol.HighImpact ||
			math.Abs(threads.Variation-(1-1.21/2.02)) > 0.05 || threads.LowestAt != space.Int(1) || threads.HighestAt != space.Int(2) {
			t.Errorf("%+v", threads)
		}
	})(t)
}

func TestImpactIsAskedOfAStudyThatThereIs(t *testing.T) {
	in(func(t *testing.T, w *world) {
		if _, err := w.service.Impact(w.ctx, "none"); err == nil {
			t.Error("a study that is not there has an impact")
		}
	})(t)
}
