package budget_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/budget"
)

// row is a stage without its rung.
type row struct {
	started, promoted, epochs int
	dataPasses                float64
}

func rows(p budget.Plan) []row {
	var all []row
	for _, s := range p.Stages {
		all = append(all, row{s.Started, s.Promoted, s.Epochs, s.DataPasses})
	}
	return all
}

func TestNewPlan(t *testing.T) {
	t.Parallel()
	epochs := budget.Settings{Policy: budget.Epochs, Epochs: budget.EpochRange{Min: 1, Max: 27}, Eta: 3}
	data := budget.Settings{Policy: budget.Dataset, Epochs: budget.EpochRange{Min: 4, Max: 4}, DataFraction: budget.FractionRange{Min: 0.25, Max: 1}, Eta: 2}
	for _, c := range []struct {
		name             string
		settings         budget.Settings
		trials, brackets int
		learns           bool
		want             []row
		epochs           int
		dataPasses, full float64
	}{
		{
			"one round of Hyperband's table",
			epochs, 49, 0, true,
			[]row{{27, 0, 27, 27}, {12, 12, 36 + 24, 60}, {6, 10, 54 + 60, 114}, {4, 7, 108 + 126, 234}},
			435, 435, 49 * 27,
		},
		{
			"in one bracket a tenth more go up than by successive halving",
			epochs, 27, 1, false,
			[]row{{27, 0, 27, 27}, {0, 10, 20, 20}, {0, 4, 24, 24}, {0, 1, 18, 18}},
			89, 89, 27 * 27,
		},
		{
			"and more where the search learns",
			epochs, 27, 1, true,
			[]row{{27, 0, 27, 27}, {0, 12, 24, 24}, {0, 4, 24, 24}, {0, 1, 18, 18}},
			93, 93, 27 * 27,
		},
		{
			"too few to halve: one is still trained to the top",
			epochs, 2, 1, true,
			[]row{{2, 0, 2, 2}, {0, 1, 2, 2}, {0, 1, 6, 6}, {0, 1, 18, 18}},
			28, 28, 54,
		},
		{
			"rungs that start again are paid in full",
			data, 8, 1, true,
			[]row{{8, 0, 32, 8}, {0, 4, 16, 8}, {0, 2, 8, 8}},
			56, 24, 32,
		},
		{
			"nothing bounds the trials",
			epochs, 0, 0, true,
			[]row{{}, {}, {}, {}},
			0, 0, 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plan := budget.NewPlan(c.settings, budget.Asynchronous, c.trials, c.brackets, c.learns)
			if got := rows(plan); !slices.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
			if plan.Epochs != c.epochs || plan.DataPasses != c.dataPasses || plan.FullDataPasses != c.full {
				t.Errorf("%d epochs, %g passes, %g in full", plan.Epochs, plan.DataPasses, plan.FullDataPasses)
			}
		})
	}
}

func TestPlanSharesTrialsAsHyperbandDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                      string
		maxEpochs, trials, allows int
		want                      []int
	}{
		{"R = 27, eta 3", 27, 49, 0, []int{27, 12, 6, 4}},
		{"R = 81, eta 3 (Li et al. 2018, table 1)", 81, 143, 0, []int{81, 34, 15, 8, 5}},
		{"the two cheapest", 27, 39, 2, []int{27, 12}},
		{"more brackets than rungs", 9, 17, 9, []int{9, 5, 3}},
		{"one rung", 1, 20, 0, []int{20}},
		{"twice the table and one more", 27, 99, 0, []int{55, 24, 12, 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := budget.Settings{Policy: budget.Epochs, Epochs: budget.EpochRange{Min: 1, Max: c.maxEpochs}, Eta: 3}
			var got []int
			for i, b := range budget.NewPlan(s, budget.Asynchronous, c.trials, c.allows, true).Brackets {
				if b.Start != i {
					t.Errorf("bracket %d starts at rung %d", i, b.Start)
				}
				got = append(got, b.Trials)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestPlanHandsOutEveryTrialAndSaves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := settings().Draw(t, "settings")
		trials := rapid.IntRange(0, 100_000).Draw(t, "trials")
		brackets := rapid.IntRange(0, 6).Draw(t, "brackets")
		promotion := rapid.SampledFrom(budget.Promotions()).Draw(t, "promotion")
		learns := rapid.Bool().Draw(t, "learns")
		plan := budget.NewPlan(s, promotion, trials, brackets, learns)
		started, epochs, passes := 0, 0, 0.0
		for i, stage := range plan.Stages {
			started += stage.Started
			epochs += stage.Epochs
			passes += stage.DataPasses
			if i > 0 {
				below := plan.Stages[i-1].Started + plan.Stages[i-1].Promoted
				// Small brackets send up less by themselves than together.
				apart := promotion != budget.Asynchronous
				most := below / s.Eta
				if promotion != budget.Synchronous { // see overshoot
					most = int(math.Ceil(1.4 * float64(below) / float64(s.Eta)))
				}
				if stage.Promoted > max(1, most) || stage.Promoted < below/s.Eta && !apart {
					t.Fatalf("%d of %d go up to rung %d", stage.Promoted, below, i)
				}
			}
		}
		sizes := 0
		for _, b := range plan.Brackets {
			if len(b.Sizes) > 0 {
				sizes += b.Sizes[0]
			}
		}
		if promotion == budget.Synchronous && sizes != trials {
			t.Fatalf("brackets of %d trials, and there are %d", sizes, trials)
		}
		if promotion == budget.NoPromotion && (plan.Epochs != plan.FullEpochs || plan.Trainings != trials) {
			t.Fatalf("%d epochs in %d trainings without promotion", plan.Epochs, plan.Trainings)
		}
		if started != trials || epochs != plan.Epochs || math.Abs(passes-plan.DataPasses) > 1e-6*passes {
			t.Fatalf("%d of %d trials, %d of %d epochs", started, trials, epochs, plan.Epochs)
		}
		top := plan.Stages[len(plan.Stages)-1]
		if trials > 0 && top.Started+top.Promoted == 0 {
			t.Fatal("no trial reaches the top")
		}
		if s.Policy == budget.Epochs && plan.Epochs > plan.FullEpochs {
			t.Fatalf("%d epochs, more than %d without a ladder", plan.Epochs, plan.FullEpochs)
		}
	})
}
