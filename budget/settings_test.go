package budget_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/budget"
)

func TestWithDefaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		given, want budget.Settings
	}{
		{
			"nothing given: both axes grow",
			budget.Settings{},
			budget.Settings{Policy: budget.Multi, Growth: budget.Geometric, Epochs: budget.EpochRange{Min: 1, Max: 9}, DataFraction: budget.FractionRange{Min: 0.1, Max: 1}, Eta: 3},
		},
		{
			"only epochs: all of the data throughout",
			budget.Settings{Epochs: budget.EpochRange{Min: 2, Max: 16}},
			budget.Settings{Policy: budget.Epochs, Growth: budget.Geometric, Epochs: budget.EpochRange{Min: 2, Max: 16}, DataFraction: budget.FractionRange{Min: 1, Max: 1}, Eta: 3},
		},
		{
			"only data_fraction: the epochs stay",
			budget.Settings{DataFraction: budget.FractionRange{Min: 0.2, Max: 0.8}},
			budget.Settings{Policy: budget.Dataset, Growth: budget.Geometric, Epochs: budget.EpochRange{Min: 1, Max: 9}, DataFraction: budget.FractionRange{Min: 0.2, Max: 0.8}, Eta: 3},
		},
		{
			"multi by name and only epochs: the data grows too",
			budget.Settings{Policy: budget.Multi, Epochs: budget.EpochRange{Max: 27}},
			budget.Settings{Policy: budget.Multi, Growth: budget.Geometric, Epochs: budget.EpochRange{Min: 1, Max: 27}, DataFraction: budget.FractionRange{Min: 0.1, Max: 1}, Eta: 3},
		},
		{
			"a maximum below the default minimum",
			budget.Settings{DataFraction: budget.FractionRange{Max: 0.05}, Eta: 2, Growth: budget.Linear},
			budget.Settings{Policy: budget.Dataset, Growth: budget.Linear, Epochs: budget.EpochRange{Min: 1, Max: 9}, DataFraction: budget.FractionRange{Min: 0.05, Max: 0.05}, Eta: 2},
		},
		{
			"a minimum above the default maximum",
			budget.Settings{Epochs: budget.EpochRange{Min: 20}},
			budget.Settings{Policy: budget.Epochs, Growth: budget.Geometric, Epochs: budget.EpochRange{Min: 20, Max: 20}, DataFraction: budget.FractionRange{Min: 1, Max: 1}, Eta: 3},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.given.WithDefaults(); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestWithDefaultsLeavesCompleteSettingsAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := settings().Draw(t, "settings")
		if got := s.WithDefaults(); got != s {
			t.Fatalf("%+v became %+v", s, got)
		}
	})
}

func TestValidateNamesEveryFault(t *testing.T) {
	t.Parallel()
	valid := budget.Settings{}.WithDefaults()
	for _, c := range []struct {
		name  string
		spoil func(*budget.Settings)
		want  []string
	}{
		{"valid", func(*budget.Settings) {}, nil},
		{"policy", func(s *budget.Settings) { s.Policy = "hours" }, []string{"budget.policy"}},
		{"seconds without seconds", func(s *budget.Settings) { s.Policy = budget.Seconds }, []string{"budget.seconds"}},
		{"seconds upside down", func(s *budget.Settings) { s.Policy, s.Seconds = budget.Seconds, budget.AmountRange{Min: 9, Max: 3} }, []string{"budget.seconds.min"}},
		{"joules without end", func(s *budget.Settings) {
			s.Policy, s.Joules = budget.Joules, budget.AmountRange{Min: math.NaN(), Max: math.Inf(1)}
		}, []string{"budget.joules.min", "budget.joules.max"}},
		{"joules under seconds", func(s *budget.Settings) {
			s.Policy, s.Seconds, s.Joules = budget.Seconds, budget.AmountRange{Min: 1, Max: 9}, budget.AmountRange{Min: 1, Max: 9}
		}, []string{"budget.joules"}},
		{"seconds under multi", func(s *budget.Settings) { s.Seconds = budget.AmountRange{Min: 1, Max: 9} }, []string{"budget.seconds"}},
		{"linear seconds and too long", func(s *budget.Settings) {
			s.Policy, s.Growth, s.Seconds = budget.Seconds, budget.Linear, budget.AmountRange{Min: 1, Max: 1e9}
		}, []string{"budget.growth"}},
		{"growth", func(s *budget.Settings) { s.Growth = "cubic" }, []string{"budget.growth"}},
		{"eta of one never halves", func(s *budget.Settings) { s.Eta = 1 }, []string{"budget.eta"}},
		{"eta too large", func(s *budget.Settings) { s.Eta = 101 }, []string{"budget.eta"}},
		{"no epochs", func(s *budget.Settings) { s.Epochs.Min = 0 }, []string{"budget.epochs.min"}},
		{"epochs upside down", func(s *budget.Settings) { s.Epochs = budget.EpochRange{Min: 9, Max: 3} }, []string{"budget.epochs.min"}},
		{"too many epochs", func(s *budget.Settings) { s.Epochs.Max = budget.MaxEpochs + 1 }, []string{"budget.epochs.max"}},
		{"no data", func(s *budget.Settings) { s.DataFraction.Min = 0 }, []string{"budget.data_fraction.min"}},
		{"too much data", func(s *budget.Settings) { s.DataFraction.Max = 10 }, []string{"budget.data_fraction.max"}},
		{"data is not a number", func(s *budget.Settings) { s.DataFraction.Min = math.NaN() }, []string{"budget.data_fraction.min"}},
		{"data upside down", func(s *budget.Settings) { s.DataFraction = budget.FractionRange{Min: 1, Max: 0.5} }, []string{"budget.data_fraction.min"}},
		{"linear and too long", func(s *budget.Settings) { s.Growth, s.Epochs.Max = budget.Linear, budget.MaxRungs+1 }, []string{"budget.growth"}},
		{"linear and just short enough", func(s *budget.Settings) { s.Growth, s.Epochs.Max = budget.Linear, budget.MaxRungs }, nil},
		{
			"all at once",
			func(s *budget.Settings) {
				*s = budget.Settings{Policy: "a", Growth: "b", Eta: -1, Epochs: budget.EpochRange{Min: -1, Max: -2}, DataFraction: budget.FractionRange{Min: -1, Max: 2}}
			},
			[]string{"budget.policy", "budget.growth", "budget.eta", "budget.epochs.min", "budget.epochs.max", "budget.data_fraction.min", "budget.data_fraction.max"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := valid
			c.spoil(&s)
			var got []string
			for _, f := range s.Validate("budget") {
				got = append(got, f.Path)
				if !strings.HasPrefix(f.Message, "must") && !strings.Contains(f.Message, ": ") {
					t.Errorf("%s: %q does not say what would be right", f.Path, f.Message)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("faults at %v, want %v", got, c.want)
			}
		})
	}
}

func TestLongestLinearLadder(t *testing.T) {
	t.Parallel()
	s := budget.Settings{Growth: budget.Linear, Epochs: budget.EpochRange{Min: 1, Max: budget.MaxRungs}}
	if n := len(s.Ladder()); n != budget.MaxRungs {
		t.Errorf("%d rungs, want %d", n, budget.MaxRungs)
	}
}
