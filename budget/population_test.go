package budget_test

import (
	"fmt"
	"testing"

	"github.com/tandem-tune/tandem/budget"
)

func TestPopulationPlans(t *testing.T) {
	t.Parallel()
	s := budget.Settings{Policy: budget.Epochs, Growth: budget.Linear, Epochs: budget.EpochRange{Min: 2, Max: 8}} // 2, 4, 6 and 8 epochs
	for _, c := range []struct {
		name                       string
		population, trials, wanted int
		stages                     []row
	}{
		{"a fifth is replaced at each rung", 20, 0, 32, []row{{20, 0, 40, 40}, {4, 16, 40, 40}, {4, 16, 40, 40}, {4, 16, 40, 40}}},
		{"until the trials are used up", 20, 26, 26, []row{{20, 0, 40, 40}, {4, 16, 40, 40}, {2, 18, 40, 40}, {0, 20, 40, 40}}},
		{"fewer trials than the population", 20, 7, 7, []row{{7, 0, 14, 14}, {0, 7, 14, 14}, {0, 7, 14, 14}, {0, 7, 14, 14}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plan := budget.NewPopulationPlan(s, c.population, c.trials)
			if got := rows(plan); fmt.Sprint(got) != fmt.Sprint(c.stages) {
				t.Errorf("stages %v\nwant   %v", got, c.stages)
			}
			members := c.stages[0].started
			if plan.Trials != c.wanted || plan.Epochs != members*8 || plan.Trainings != 4*members || plan.FullEpochs != 8*c.wanted || plan.ScratchEpochs != members*20 {
				t.Errorf("%+v", plan)
			}
		})
	}
}
