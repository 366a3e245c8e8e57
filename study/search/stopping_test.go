package search_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
	"github.com/tandem-tune/tandem/study/search/stopping"
	"github.com/tandem-tune/tandem/trial"
)

// reporting is a search of ten trials that all train nine epochs, with a rule.
func reporting(rule stopping.EarlyStopping) search.Settings {
	settings := sha(1, 3, 10)
	settings.Rungs = []budget.Rung{{Budget: budget.Budget{Epochs: 9, DataFraction: 1}}}
	settings.EarlyStopping = &rule
	return settings
}

// report sends a value and returns why the trial is stopped, or nothing.
func report(t *testing.T, method *search.Method, number, rung, epoch int, value float64) string {
	t.Helper()
	actions, err := method.Handle(search.Event{
		Kind: search.Reported, Trial: number, Rung: rung, Epoch: epoch, Values: []trial.Float{trial.Float(value)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(actions) == 0 {
		return ""
	}
	return actions[0].Reason
}

func TestRulesStopWhoIsBeaten(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range []struct {
		name string
		rule stopping.EarlyStopping
		// earlier has the values of trials 0, 1, ... after epoch 2; then the next
		// trial reports the values of its epochs from 1 on.
		earlier, then []float64
		stops         int // the epoch at which it is stopped, 0: never
		says          string
	}{
		{"below the median", stopping.EarlyStopping{Rule: stopping.Median, GraceEpochs: 1, MinTrials: 4, EveryEpochs: 1},
			[]float64{0.1, 0.2, 0.3, 0.4}, []float64{0.05, 0.25}, 2, "2 of 4 other trials had a better value than its best so far: the best 50% go on"},
		{"at the median", stopping.EarlyStopping{Rule: stopping.Median, GraceEpochs: 1, MinTrials: 4, EveryEpochs: 1},
			[]float64{0.1, 0.2, 0.3, 0.4}, []float64{0.05, 0.3}, 0, ""},
		{"its best so far counts", stopping.EarlyStopping{Rule: stopping.Median, GraceEpochs: 1, MinTrials: 4, EveryEpochs: 1},
			[]float64{0.1, 0.2, 0.3, 0.4}, []float64{0.35, 0.1}, 0, ""},
		{"too few to compare with", stopping.EarlyStopping{Rule: stopping.Median, GraceEpochs: 1, MinTrials: 5, EveryEpochs: 1},
			[]float64{0.1, 0.2, 0.3, 0.4}, []float64{0.05, 0.05}, 0, ""},
		{"within its grace", stopping.EarlyStopping{Rule: stopping.Median, GraceEpochs: 2, MinTrials: 1, EveryEpochs: 1},
			[]float64{0.1, 0.2, 0.3, 0.4}, []float64{0.05, 0.05}, 0, ""},
		{"between two comparisons", stopping.EarlyStopping{Rule: stopping.Median, GraceEpochs: 1, MinTrials: 1, EveryEpochs: 2},
			[]float64{0.1, 0.2, 0.3, 0.4}, []float64{0.05, 0.05}, 0, ""},
		{"the best quarter goes on", stopping.EarlyStopping{Rule: stopping.Percentile, Percentile: 25, MinTrials: 1, EveryEpochs: 1},
			[]float64{0.1, 0.2, 0.3, 0.4}, []float64{0.05, 0.35}, 2, "1 of 4 other trials had a better value than its best so far: the best 25% go on"},
		{"the best of all goes on", stopping.EarlyStopping{Rule: stopping.Percentile, Percentile: 1, MinTrials: 1, EveryEpochs: 1},
			[]float64{0.1, 0.2, 0.3, 0.4}, []float64{0.05, 0.5}, 0, ""},
		{"no number, at once", stopping.EarlyStopping{Rule: stopping.Median, GraceEpochs: 1, MinTrials: 9, EveryEpochs: 4},
			nil, []float64{0.9, nan}, 2, "diverged"},
		{"no number, within its grace", stopping.EarlyStopping{Rule: stopping.Median, GraceEpochs: 2, MinTrials: 9, EveryEpochs: 4},
			nil, []float64{0.9, nan, 0.9}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			method := start(t, reporting(c.rule))
			for number, value := range c.earlier {
				tell(t, method, fmt.Sprintf("request -> create %d at 0", number))
				report(t, method, number, 0, 2, value)
			}
			// Those that were stopped themselves stay what others compare with.
			number := len(c.earlier)
			tell(t, method, fmt.Sprintf("request -> create %d at 0", number))
			for i, value := range c.then {
				why := report(t, method, number, 0, i+1, value)
				if (why != "") != (c.stops == i+1) || !strings.Contains(why, c.says) && c.stops == i+1 {
					t.Fatalf("epoch %d was answered with %q, want it stopped at %d: %s", i+1, why, c.stops, c.says)
				}
			}
		})
	}
}

// Epochs of other rungs, and those of trials on other shares of the data, are
// no comparison.
func TestReportsCompareWithinTheirRung(t *testing.T) {
	t.Parallel()
	settings := sha(2, 4, 10)
	settings.EarlyStopping = &stopping.EarlyStopping{Rule: stopping.Median, MinTrials: 1, EveryEpochs: 1}
	settings.Brackets = 0
	settings.Rungs[0].Budget = budget.Budget{Epochs: 4, DataFraction: 0.5}
	method := start(t, settings)
	actions := make(map[int]int) // trial -> rung
	for range 6 {
		action, err := method.Handle(search.Event{Kind: search.Request})
		if err != nil {
			t.Fatal(err)
		}
		actions[action[0].Trial] = action[0].Rung
	}
	tops := 0
	for number := range 6 {
		value := 0.9
		if actions[number] == 1 {
			tops++
			value = 0.1 // far behind those of rung 0, and first at its own
		}
		if why := report(t, method, number, actions[number], 2, value); why != "" {
			t.Errorf("trial %d at rung %d: %s", number, actions[number], why)
		}
	}
	if tops == 0 || tops == 6 {
		t.Fatalf("%d of 6 trials started at the top", tops)
	}
}

func TestHalvingStopsAtTheRungsAndFeedsTheModel(t *testing.T) {
	t.Parallel()
	settings := sha(3, 2, 40) // 1, 2 and 4 epochs
	settings.Method, settings.RandomFraction, settings.Brackets = "bohb", 0, 0
	settings.Promotion = budget.NoPromotion
	settings.EarlyStopping = &stopping.EarlyStopping{Rule: stopping.Halving, MinTrials: 1}
	method := start(t, settings)
	for number, value := range []float64{0.5, 0.6, 0.4, 0.55} {
		tell(t, method, fmt.Sprintf("request -> create %d at 2", number))
		why := report(t, method, number, 2, 1, value)
		if wanted := []string{"", "", "rank 3 of 3 after the 1 epochs of rung 0, where the best 1 go on", ""}[number]; why != wanted {
			t.Errorf("trial %d: %q, want %q", number, why, wanted)
		}
	}
	// One that passed is worse at the next rung, where the best one is.
	if why := report(t, method, 1, 2, 2, 0.7); why != "" {
		t.Error(why)
	}
	if why := report(t, method, 0, 2, 2, 0.6); !strings.Contains(why, "rank 2 of 2 after the 2 epochs of rung 1") {
		t.Error(why)
	}
	// Between the rungs nobody is compared.
	if why := report(t, method, 1, 2, 3, math.NaN()); why != "" {
		t.Error(why)
	}
	action, err := method.Handle(search.Event{Kind: search.Request})
	if err != nil || action[0].Origin != "model" || !strings.Contains(action[0].Reason, "the model of rung 0, which has 4 observations") {
		t.Fatalf("%+v, %v", action, err)
	}
	tell(t, method, "1 measured 0.8 at 2")
	state, err := method.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	again := start(t, settings)
	if err := again.Restore(state); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*search.Method{method, again} {
		if why := report(t, one, 3, 2, 2, 0.65); !strings.Contains(why, "rank 2 of 3") {
			t.Error(why)
		}
	}
}

// A trial that was stopped is neither promoted nor waited for, and the study
// ends with the one that was not.
func TestAStoppedTrialIsOver(t *testing.T) {
	t.Parallel()
	for _, promotion := range []budget.Promotion{budget.Asynchronous, budget.Synchronous, budget.NoPromotion} {
		t.Run(string(promotion), func(t *testing.T) {
			t.Parallel()
			settings := sha(2, 2, 2)
			settings.Rungs = []budget.Rung{
				{Index: 0, Budget: budget.Budget{Epochs: 3, DataFraction: 1}}, {Index: 1, Budget: budget.Budget{Epochs: 6, DataFraction: 1}},
			}
			settings.Promotion, settings.EarlyStopping = promotion, &stopping.EarlyStopping{Rule: stopping.Median, MinTrials: 1, EveryEpochs: 1}
			at := 0
			if promotion == budget.NoPromotion {
				settings.Brackets, at = 0, 1
			}
			method := start(t, settings)
			tell(t, method, fmt.Sprintf("request -> create 0 at %d\nrequest -> create 1 at %d\nrequest -> wait", at, at))
			report(t, method, 0, at, 1, 0.5)
			if why := report(t, method, 1, at, 1, 0.4); why == "" {
				t.Fatal("trial 1 goes on")
			}
			if _, err := method.Handle(search.Event{Kind: search.Measured, Trial: 1, Rung: at, Values: []trial.Float{1}}); !problem.Is(err, problem.Conflict) {
				t.Errorf("the result of a stopped trial was answered %v", err)
			}
			tell(t, method, fmt.Sprintf("request -> wait\n0 measured 0.6 at %d", at))
			if at == 0 {
				tell(t, method, "request -> promote 0 at 1\nrequest -> wait\n0 measured 0.7 at 1")
			}
			tell(t, method, "request -> finish")
		})
	}
}

func TestRulesThatCannotBe(t *testing.T) {
	t.Parallel()
	half := searchtest.Ladder(3, 3)
	half[0].Budget.DataFraction = 0.5
	for _, c := range []struct {
		name   string
		change func(*search.Settings)
		want   []string // paths
	}{
		{"an unknown rule", func(s *search.Settings) { s.EarlyStopping.Rule = "hyperband" }, []string{"rule"}},
		{"nothing to compare with", func(s *search.Settings) { s.EarlyStopping.MinTrials, s.EarlyStopping.EveryEpochs = 0, 0 }, []string{"min_trials", "every_epochs"}},
		{"a percentile of a median", func(s *search.Settings) { s.EarlyStopping.Percentile = 25 }, []string{"percentile"}},
		{"a percentile of all", func(s *search.Settings) {
			s.EarlyStopping.Rule, s.EarlyStopping.Percentile = stopping.Percentile, 100
		}, []string{"percentile"}},
		{"halving beside promotion", func(s *search.Settings) {
			*s.EarlyStopping = stopping.EarlyStopping{Rule: stopping.Halving, MinTrials: 1}
		}, []string{"rule"}},
		{"halving without rungs", func(s *search.Settings) {
			*s.EarlyStopping = stopping.EarlyStopping{Rule: stopping.Halving, MinTrials: 1}
			s.Promotion, s.Brackets, s.Rungs = budget.NoPromotion, 0, s.Rungs[:1]
		}, []string{"rule"}},
		{"halving while the data grows", func(s *search.Settings) {
			*s.EarlyStopping = stopping.EarlyStopping{Rule: stopping.Halving, MinTrials: 1, EveryEpochs: 2}
			s.Promotion, s.Brackets, s.Rungs = budget.NoPromotion, 0, half
		}, []string{"every_epochs", "rule"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			settings := sha(3, 3, 10)
			settings.EarlyStopping = &stopping.EarlyStopping{Rule: stopping.Median, MinTrials: 5, EveryEpochs: 1}
			c.change(&settings)
			_, err := search.New(settings)
			var told *problem.Error
			if !errors.As(err, &told) || len(told.Fields) != len(c.want) {
				t.Fatalf("%v", err)
			}
			for i, path := range c.want {
				if told.Fields[i].Path != "search.early_stopping."+path {
					t.Errorf("fault %d is of %s, want %s", i, told.Fields[i].Path, path)
				}
			}
		})
	}
}

func TestSnapshotsWithReportsThatCannotBe(t *testing.T) {
	t.Parallel()
	settings := reporting(stopping.EarlyStopping{Rule: stopping.Median, MinTrials: 5, EveryEpochs: 1})
	method := start(t, settings)
	tell(t, method, "request -> create 0 at 0")
	report(t, method, 0, 0, 3, 0.5)
	state, err := method.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	const sent = `"reports":[{"rung":0,"epoch":3,"values":[0.5]}]`
	if !strings.Contains(string(state), sent) {
		t.Fatalf("the snapshot is %s", state)
	}
	for _, broken := range []string{
		`"reports":[{"rung":1,"epoch":3,"values":[0.5]}]`,
		`"reports":[{"rung":0,"epoch":9,"values":[0.5]}]`,
		`"reports":[{"rung":0,"epoch":3,"values":[]}]`,
		`"reports":[{"rung":0,"epoch":3,"values":[0.5]},{"rung":0,"epoch":3,"values":[0.5]}]`,
	} {
		if err := start(t, settings).Restore(json.RawMessage(strings.Replace(string(state), sent, broken, 1))); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s was read: %v", broken, err)
		}
	}
}
