package budget_test

import (
	"fmt"
	"testing"

	"github.com/tandem-tune/tandem/budget"
)

// With budgets from 1 to 81 and eta 3 one round of Hyperband (Li et al. 2018,
// table 1) tries 143 configurations in 206 trainings: a configuration counts
// once for each rung it reaches. If each training begins anew, as the paper
// counts, that is 1,902 units; continued from checkpoints it is 1,581.
func TestPlanAnswersHyperbandsTable(t *testing.T) {
	t.Parallel()
	s := budget.Settings{Policy: budget.Epochs, Epochs: budget.EpochRange{Min: 1, Max: 81}, Eta: 3}
	plan := budget.NewPlan(s, budget.Synchronous, 143, 0, false)
	want := "[{0 81 [81 27 9 3 1]} {1 34 [34 11 3 1]} {2 15 [15 5 1]} {3 8 [8 2]} {4 5 [5]}]"
	if got := fmt.Sprint(plan.Brackets); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if plan.Trainings != 206 || plan.ScratchEpochs != 1902 || plan.Epochs != 1581 || plan.FullEpochs != 143*81 {
		t.Errorf("%d trainings, %d epochs anew, %d continued, %d in full", plan.Trainings, plan.ScratchEpochs, plan.Epochs, plan.FullEpochs)
	}
}

func TestSynchronousPlans(t *testing.T) {
	t.Parallel()
	s := budget.Settings{Policy: budget.Epochs, Epochs: budget.EpochRange{Min: 1, Max: 9}, Eta: 3} // brackets of 9, 5 and 3
	for _, c := range []struct {
		name             string
		trials, brackets int
		want             string
		stages           []row
	}{
		{"two rounds and the start of a third", 2*17 + 4, 0, "[{0 22 [22 7 2]} {1 10 [10 2]} {2 6 [6]}]",
			[]row{{22, 0, 22, 22}, {10, 7, 44, 44}, {6, 4, 78, 78}}},
		{"only the cheapest bracket, again and again", 27, 1, "[{0 27 [27 9 3]}]",
			[]row{{27, 0, 27, 27}, {0, 9, 18, 18}, {0, 3, 18, 18}}},
		{"too few to halve twice: one is still trained to the top", 4, 0, "[{0 4 [4 1 0]} {1 0 [0 0]} {2 0 [0]}]",
			[]row{{4, 0, 4, 4}, {0, 1, 2, 2}, {0, 1, 6, 6}}},
		{"nothing bounds the trials", 0, 0, "[{0 0 [0 0 0]} {1 0 [0 0]} {2 0 [0]}]", []row{{}, {}, {}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plan := budget.NewPlan(s, budget.Synchronous, c.trials, c.brackets, false)
			if got := fmt.Sprint(plan.Brackets); got != c.want {
				t.Errorf("brackets %s\nwant     %s", got, c.want)
			}
			if got := rows(plan); fmt.Sprint(got) != fmt.Sprint(c.stages) {
				t.Errorf("stages %v\nwant   %v", got, c.stages)
			}
		})
	}
}

func TestPlanWithoutPromotion(t *testing.T) {
	t.Parallel()
	s := budget.Settings{Policy: budget.Epochs, Epochs: budget.EpochRange{Min: 1, Max: 9}, Eta: 3}
	plan := budget.NewPlan(s, budget.NoPromotion, 7, 0, false)
	if got, want := fmt.Sprint(rows(plan)), fmt.Sprint([]row{{}, {}, {7, 0, 63, 63}}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := fmt.Sprint(plan.Brackets); got != "[{2 7 []}]" {
		t.Error(got)
	}
}
