package budget_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/budget"
)

func TestMeasuredLadders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		settings budget.Settings
		seconds  []float64
		joules   []float64
		epochs   int
	}{
		{"three times as long each", budget.Settings{Seconds: budget.AmountRange{Min: 60, Max: 540}}, []float64{60, 180, 540}, nil, budget.MaxEpochs},
		{"the minimum is a ninth", budget.Settings{Seconds: budget.AmountRange{Max: 540}}, []float64{60, 180, 540}, nil, budget.MaxEpochs},
		{"joules, bounded by epochs", budget.Settings{Joules: budget.AmountRange{Min: 100, Max: 900}, Epochs: budget.EpochRange{Min: 20, Max: 20}}, nil, []float64{100, 300, 900}, 20},
		{"not quite three times", budget.Settings{Seconds: budget.AmountRange{Min: 0.1, Max: 0.2}}, []float64{0.1, 0.2}, nil, budget.MaxEpochs},
		{"thirds that binary cannot write", budget.Settings{Seconds: budget.AmountRange{Min: 0.1, Max: 0.9}}, []float64{0.1, 0.3, 0.9}, nil, budget.MaxEpochs},
		{"one", budget.Settings{Seconds: budget.AmountRange{Min: 7, Max: 7}}, []float64{7}, nil, budget.MaxEpochs},
		{"linear", budget.Settings{Growth: budget.Linear, Seconds: budget.AmountRange{Min: 10, Max: 35}}, []float64{10, 20, 30, 35}, nil, budget.MaxEpochs},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if faults := c.settings.WithDefaults().Validate("budget"); len(faults) > 0 {
				t.Fatal(faults)
			}
			var seconds, joules []float64
			for _, rung := range c.settings.Ladder() {
				if rung.Budget.Seconds > 0 {
					seconds = append(seconds, rung.Budget.Seconds)
				}
				if rung.Budget.Joules > 0 {
					joules = append(joules, rung.Budget.Joules)
				}
				if rung.FromScratch || rung.Budget.Epochs != c.epochs || rung.Budget.DataFraction != 1 {
					t.Errorf("%+v", rung)
				}
			}
			if !slices.Equal(seconds, c.seconds) || !slices.Equal(joules, c.joules) {
				t.Errorf("%v s, %v J", seconds, joules)
			}
		})
	}
}

func TestReached(t *testing.T) {
	t.Parallel()
	timed := budget.Budget{Epochs: 10, DataFraction: 1, Seconds: 60}
	for _, c := range []struct {
		name  string
		spent budget.Spent
		want  bool
	}{
		{"too early", budget.Spent{Epoch: 9, Seconds: 59.9, Joules: 1e9}, false},
		{"to the second", budget.Spent{Epoch: 1, Seconds: 60}, true},
		{"all epochs", budget.Spent{Epoch: 10, Seconds: 1}, true},
	} {
		if got := timed.Reached(c.spent); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if metered := (budget.Budget{Epochs: 10, Joules: 5}); !metered.Reached(budget.Spent{Epoch: 1, Joules: 5}) || metered.Reached(budget.Spent{Epoch: 1, Seconds: 99}) {
		t.Error("joules do not count as joules")
	}
}

func TestCosts(t *testing.T) {
	t.Parallel()
	epochs := budget.NewPlan(budget.Settings{Epochs: budget.EpochRange{Min: 1, Max: 9}}, budget.NoPromotion, 10, 0, false)
	timed := budget.NewPlan(budget.Settings{Seconds: budget.AmountRange{Min: 60, Max: 540}}, budget.Synchronous, 9, 1, false)
	if timed.Seconds != 9*60+3*120+1*360 || timed.Epochs != 0 || timed.Trainings != 13 {
		t.Fatalf("%+v", timed)
	}
	pace := budget.Pace{Seconds: 2, Joules: 30, Source: "was given"}
	for _, c := range []struct {
		name                     string
		plan                     budget.Plan
		pace                     budget.Pace
		workers                  int
		training, elapsed, joule float64
	}{
		{"90 epochs", epochs, pace, 1, 180, 180, 2700},
		{"four at once", epochs, pace, 4, 180, 45, 2700},
		{"no sooner than one training", epochs, pace, 64, 180, 18, 2700},
		{"only joules", epochs, budget.Pace{Joules: 30}, 1, 0, 0, 2700},
		{"seconds are known by themselves", timed, budget.Pace{}, 2, 1260, 630, 0},
		{"their joules are not", timed, pace, 2, 1260, 630, 1260 * 15},
	} {
		costs := c.plan.Cost(c.pace, c.workers)
		if costs == nil || math.Abs(costs.TrialSeconds-c.training)+math.Abs(costs.ElapsedSeconds-c.elapsed)+math.Abs(costs.Joules-c.joule) > 1e-9 ||
			!strings.HasPrefix(costs.Method, "estimate") {
			t.Errorf("%s: %+v", c.name, costs)
		}
	}
	if costs := epochs.Cost(budget.Pace{}, 1); costs != nil {
		t.Errorf("nothing is known, and the plan costs %+v", costs)
	}
}
