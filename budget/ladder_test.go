package budget_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/budget"
)

func TestLadder(t *testing.T) {
	t.Parallel()
	epochs := func(low, high int) budget.EpochRange { return budget.EpochRange{Min: low, Max: high} }
	data := func(low, high float64) budget.FractionRange { return budget.FractionRange{Min: low, Max: high} }
	full := data(1, 1)
	type rung struct {
		epochs      int
		data        float64
		fromScratch bool
	}
	for _, c := range []struct {
		name     string
		settings budget.Settings
		want     []rung
	}{
		{
			// Thesis section 7.4.3, the example in the text.
			"algorithm 6: epochs 2 to 10, data from 10%",
			budget.Settings{Policy: budget.Multi, Growth: budget.Linear, Epochs: epochs(2, 10), DataFraction: data(0.1, 1)},
			[]rung{
				{2, 0.1, false},
				{4, 0.2, false},
				{6, 0.3, false},
				{8, 0.4, false},
				{10, 0.5, false},
				{10, 0.6, true},
				{10, 0.7, true},
				{10, 0.8, true},
				{10, 0.9, true},
				{10, 1, true},
			},
		},
		{
			"linear: the data arrives first",
			budget.Settings{Policy: budget.Multi, Growth: budget.Linear, Epochs: epochs(1, 4), DataFraction: data(0.5, 0.8)},
			[]rung{{1, 0.5, false}, {2, 0.8, false}, {3, 0.8, false}, {4, 0.8, false}},
		},
		{
			"linear: a third three times is all",
			budget.Settings{Policy: budget.Dataset, Growth: budget.Linear, Epochs: epochs(1, 2), DataFraction: data(0.333333, 1)},
			[]rung{{2, 0.333333, false}, {2, 0.666666, true}, {2, 1, true}},
		},
		{
			"linear: the last step is cut at the maximum",
			budget.Settings{Policy: budget.Epochs, Growth: budget.Linear, Epochs: epochs(3, 7), DataFraction: full},
			[]rung{{3, 1, false}, {6, 1, false}, {7, 1, false}},
		},
		{
			"epochs 1 to 27 are four rungs",
			budget.Settings{Policy: budget.Epochs, Epochs: epochs(1, 27), Eta: 3},
			[]rung{{1, 1, false}, {3, 1, false}, {9, 1, false}, {27, 1, false}},
		},
		{
			"epochs 1 to 81 are five rungs",
			budget.Settings{Policy: budget.Epochs, Epochs: epochs(1, 81), Eta: 3},
			[]rung{{1, 1, false}, {3, 1, false}, {9, 1, false}, {27, 1, false}, {81, 1, false}},
		},
		{
			"epochs 1 to 80 are four: one more would divide by less than eta",
			budget.Settings{Policy: budget.Epochs, Epochs: epochs(1, 80), Eta: 3},
			[]rung{{1, 1, false}, {4, 1, false}, {19, 1, false}, {80, 1, false}},
		},
		{
			"eta 2",
			budget.Settings{Policy: budget.Epochs, Epochs: epochs(2, 16), Eta: 2},
			[]rung{{2, 1, false}, {4, 1, false}, {8, 1, false}, {16, 1, false}},
		},
		{
			"both axes set out and arrive together, the longer one gives the length",
			budget.Settings{Policy: budget.Multi, Epochs: epochs(1, 27), DataFraction: data(0.1, 1), Eta: 3},
			[]rung{{1, 0.1, false}, {3, 0.215443, false}, {9, 0.464159, false}, {27, 1, false}},
		},
		{
			"the data is the longer axis: rungs whose epochs stand still start again",
			budget.Settings{Policy: budget.Multi, Epochs: epochs(1, 2), DataFraction: data(0.01, 1), Eta: 3},
			[]rung{{1, 0.01, false}, {1, 0.031623, true}, {1, 0.1, true}, {2, 0.316228, false}, {2, 1, true}},
		},
		{
			"a ninth written with six decimals is two steps of three",
			budget.Settings{Policy: budget.Dataset, Epochs: epochs(1, 5), DataFraction: data(0.111111, 1), Eta: 3},
			[]rung{{5, 0.111111, false}, {5, 0.333333, true}, {5, 1, true}},
		},
		{
			"an eighteenth, rounded up, is two steps of three from a half",
			budget.Settings{Policy: budget.Dataset, Epochs: epochs(1, 5), DataFraction: data(0.055556, 0.5), Eta: 3},
			[]rung{{5, 0.055556, false}, {5, 0.166667, true}, {5, 0.5, true}},
		},
		{
			"less than one factor of eta is still two rungs",
			budget.Settings{Policy: budget.Epochs, Epochs: epochs(5, 10), Eta: 3},
			[]rung{{5, 1, false}, {10, 1, false}},
		},
		{
			"the epochs policy pins the data at its maximum",
			budget.Settings{Policy: budget.Epochs, Epochs: epochs(1, 3), DataFraction: data(0.1, 0.5), Eta: 3},
			[]rung{{1, 0.5, false}, {3, 0.5, false}},
		},
		{
			"to the nearest: 25 times is nearer to three steps of three than to two",
			budget.Settings{Policy: budget.Epochs, Rounding: budget.Nearest, Epochs: epochs(2, 50), Eta: 3},
			[]rung{{2, 1, false}, {6, 1, false}, {17, 1, false}, {50, 1, false}},
		},
		{
			"down: 25 times are two steps of three at least",
			budget.Settings{Policy: budget.Epochs, Rounding: budget.Down, Epochs: epochs(2, 50), Eta: 3},
			[]rung{{2, 1, false}, {10, 1, false}, {50, 1, false}},
		},
		{
			"to the nearest: ten times are two steps of three",
			budget.Settings{Policy: budget.Dataset, Rounding: budget.Nearest, Epochs: epochs(5, 5), DataFraction: data(0.1, 1), Eta: 3},
			[]rung{{5, 0.1, false}, {5, 0.316228, true}, {5, 1, true}},
		},
		{
			"to the nearest: half a step is a whole one, 8 times are two of four",
			budget.Settings{Policy: budget.Epochs, Rounding: budget.Nearest, Epochs: epochs(1, 8), Eta: 4},
			[]rung{{1, 1, false}, {3, 1, false}, {8, 1, false}},
		},
		{
			"nothing grows: one rung",
			budget.Settings{Policy: budget.Multi, Epochs: epochs(10, 10), DataFraction: full, Eta: 3},
			[]rung{{10, 1, false}},
		},
		{
			"the defaults",
			budget.Settings{},
			[]rung{{1, 0.1, false}, {3, 0.316228, false}, {9, 1, false}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if faults := c.settings.WithDefaults().Validate("budget"); len(faults) > 0 {
				t.Fatalf("the settings have faults: %v", faults)
			}
			var got []rung
			for i, r := range c.settings.Ladder() {
				if r.Index != i {
					t.Errorf("rung %d has index %d", i, r.Index)
				}
				got = append(got, rung{r.Budget.Epochs, r.Budget.DataFraction, r.FromScratch})
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

// settings draws valid, complete settings.
func settings() *rapid.Generator[budget.Settings] {
	return rapid.Custom(func(t *rapid.T) budget.Settings {
		growth := rapid.SampledFrom([]budget.Growth{budget.Geometric, budget.Linear}).Draw(t, "growth")
		// Linear growth takes as many rungs as the ratio says.
		smallest, highest := 1, 10_000
		if growth == budget.Linear {
			highest = budget.MaxRungs
		}
		minEpochs := rapid.IntRange(smallest, highest).Draw(t, "min epochs")
		minData := rapid.IntRange(1_000_000/highest, 1_000_000).Draw(t, "min data")
		return budget.Settings{
			Policy: rapid.SampledFrom([]budget.Policy{budget.Multi, budget.Epochs, budget.Dataset}).Draw(t, "policy"),
			Growth: growth,
			Epochs: budget.EpochRange{Min: minEpochs, Max: rapid.IntRange(minEpochs, highest).Draw(t, "max epochs")},
			DataFraction: budget.FractionRange{
				Min: float64(minData) / 1e6,
				Max: float64(rapid.IntRange(minData, 1_000_000).Draw(t, "max data")) / 1e6,
			},
			Eta:      rapid.IntRange(2, 10).Draw(t, "eta"),
			Rounding: rapid.SampledFrom([]budget.Rounding{"", budget.Down, budget.Nearest}).Draw(t, "rounding"),
		}
	})
}

func TestLadderRunsFromTheMinimaToTheMaxima(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := settings().Draw(t, "settings")
		if faults := s.Validate("budget"); len(faults) > 0 {
			t.Fatalf("faults: %v", faults)
		}
		ladder := s.Ladder()
		first, top := ladder[0].Budget, ladder[len(ladder)-1].Budget
		wantFirst := budget.Budget{Epochs: s.Epochs.Min, DataFraction: s.DataFraction.Min}
		wantTop := budget.Budget{Epochs: s.Epochs.Max, DataFraction: s.DataFraction.Max}
		switch s.Policy {
		case budget.Epochs:
			wantFirst.DataFraction = wantTop.DataFraction
		case budget.Dataset:
			wantFirst.Epochs = wantTop.Epochs
		}
		if first != wantFirst || top != wantTop {
			t.Fatalf("from %v to %v, want %v to %v", first, top, wantFirst, wantTop)
		}
		if len(ladder) > budget.MaxRungs {
			t.Fatalf("%d rungs", len(ladder))
		}
		for i, r := range ladder[1:] {
			below := ladder[i].Budget
			if r.Budget.Epochs < below.Epochs || r.Budget.DataFraction < below.DataFraction || r.Budget == below {
				t.Fatalf("rung %d is %v above %v", r.Index, r.Budget, below)
			}
			if r.FromScratch != (r.Budget.Epochs == below.Epochs) {
				t.Fatalf("rung %d, %v above %v: from scratch %v", r.Index, r.Budget, below, r.FromScratch)
			}
		}
		if ladder[0].FromScratch {
			t.Fatal("the first rung has nothing to start again from")
		}
	})
}

func TestLinearLadderIsAlgorithm6(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := settings().Filter(func(s budget.Settings) bool {
			return s.Growth == budget.Linear && s.Policy == budget.Multi
		}).Draw(t, "settings")
		for i, r := range s.Ladder() {
			iteration := i + 1
			if want := min(s.Epochs.Max, iteration*s.Epochs.Min); r.Budget.Epochs != want {
				t.Fatalf("iteration %d: %d epochs, want %d", iteration, r.Budget.Epochs, want)
			}
			want := min(s.DataFraction.Max, float64(iteration)*s.DataFraction.Min)
			// A minimum has six decimals, so that its multiples are known to half
			// of the last one times the iteration.
			if math.Abs(r.Budget.DataFraction-want) > float64(iteration)*0.5e-6+1e-9 {
				t.Fatalf("iteration %d: %g of the data, want %g", iteration, r.Budget.DataFraction, want)
			}
		}
	})
}

// Down, a step is eta at least; to the nearest, at least its root, and at most its
// power of 3/2.
func TestGeometricLadderPromotesByAboutEta(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := settings().Filter(func(s budget.Settings) bool { return s.Growth == budget.Geometric }).Draw(t, "settings")
		ladder := s.Ladder()
		first, top := ladder[0].Budget, ladder[len(ladder)-1].Budget
		// A minimum counts as smaller by half of its last decimal.
		ratio := max(float64(top.Epochs)/float64(first.Epochs), top.DataFraction/(first.DataFraction-0.5e-6))
		steps, spare := len(ladder)-1, 0.0
		if s.Rounding == budget.Nearest {
			spare = 0.5
		}
		if steps > 1 && math.Pow(float64(s.Eta), float64(steps)-spare) > ratio*(1+1e-9) {
			t.Fatalf("%d steps of %d within a ratio of %g", steps, s.Eta, ratio)
		}
		// Epochs that stand still merge rungs.
		merged := int(math.Log(ratio)/math.Log(float64(s.Eta))) > steps
		if !merged && math.Pow(float64(s.Eta), float64(steps)+1-spare) < ratio*(1-1e-9) {
			t.Fatalf("only %d steps of %d within a ratio of %g", steps, s.Eta, ratio)
		}
	})
}

func TestLadderOfFaultySettingsEnds(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	for _, s := range []budget.Settings{
		{Policy: budget.Dataset, DataFraction: budget.FractionRange{Min: 0.1, Max: inf}},
		{Policy: budget.Dataset, DataFraction: budget.FractionRange{Min: math.NaN(), Max: inf}},
		{Policy: budget.Multi, Epochs: budget.EpochRange{Min: 1, Max: math.MaxInt}, Growth: budget.Linear},
		{Policy: budget.Multi, Epochs: budget.EpochRange{Min: -5, Max: 9}, Eta: 1},
		{Policy: "no such policy", Growth: "no such growth", Eta: -3},
	} {
		if len(s.WithDefaults().Validate("budget")) == 0 {
			t.Errorf("%+v has no fault", s)
		}
		if n := len(s.Ladder()); n < 1 || n > budget.MaxRungs {
			t.Errorf("%+v: %d rungs", s, n)
		}
	}
}
