package searchtest

import (
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/stopping"
	"github.com/tandem-tune/tandem/study/space"
)

// anySettings draws a small study, the same for every method.
//
// One draw in three has several objectives.
func anySettings(t *rapid.T, made Subject) search.Settings {
	by := rapid.SampledFrom(made.Promotions).Draw(t, "promotion")
	objectives := rapid.SampledFrom([]int{1, 1, 3}).Draw(t, "objectives")
	if made.One {
		objectives = 1
	}
	rungs := rapid.IntRange(1, 4).Draw(t, "rungs")
	settings := search.Settings{
		Seed:           rapid.Uint64().Draw(t, "seed"),
		Space:          rapid.SampledFrom(spaces()).Draw(t, "space"),
		Rungs:          Ladder(rungs, 2),
		Eta:            rapid.IntRange(2, 4).Draw(t, "eta"),
		Brackets:       rapid.IntRange(0, rungs).Draw(t, "brackets"),
		MaxTrials:      rapid.IntRange(1, 30).Draw(t, "trials"),
		RandomFraction: rapid.SampledFrom([]float64{0, 1. / 3, 1}).Draw(t, "random fraction"),
		GridPoints:     rapid.IntRange(1, 3).Draw(t, "grid points"),
		Maximize:       rapid.SliceOfN(rapid.Bool(), 1, objectives).Draw(t, "maximize"),
		Promotion:      by,
	}
	if times := rapid.IntRange(1, 3).Draw(t, "times"); times > 1 {
		settings.Repeats = &search.Repeats{Trials: rapid.IntRange(1, 4).Draw(t, "repeated"), Times: times}
	}
	if by == budget.NoPromotion {
		settings.Brackets = 0
	}
	if len(settings.Maximize) == 1 {
		settings.EarlyStopping = anyStopping(t, settings)
	}
	if !made.Ends && rapid.Bool().Draw(t, "something is expected") {
		settings.Space = expecting(t, settings.Space)
	}
	return settings
}

// expecting is the space with expectations of some of its parameters.
func expecting(t *rapid.T, s space.Space) space.Space {
	s.Parameters = slices.Clone(s.Parameters)
	for name, value := range anyPart(t, s) {
		at := slices.IndexFunc(s.Parameters, func(p space.Parameter) bool { return p.Name == name })
		sure := []space.Sureness{space.Low, space.Medium, space.High}[at%3]
		s.Parameters[at].Expect = &space.Expectation{Value: value, Sure: sure}
	}
	return s
}

// anyStopping draws an early-stopping rule that goes with the settings, or none.
func anyStopping(t *rapid.T, settings search.Settings) *stopping.EarlyStopping {
	rules := []stopping.Rule{"", stopping.Median, stopping.Percentile}
	if settings.Promotion == budget.NoPromotion && len(settings.Rungs) > 1 {
		rules = append(rules, stopping.Halving)
	}
	rule := stopping.EarlyStopping{Rule: rapid.SampledFrom(rules).Draw(t, "early stopping")}
	if rule.Rule == "" {
		return nil
	}
	rule.GraceEpochs = rapid.IntRange(0, 2).Draw(t, "grace")
	rule.MinTrials = rapid.IntRange(1, 4).Draw(t, "least trials")
	if rule.Rule == stopping.Percentile {
		rule.Percentile = rapid.SampledFrom([]float64{10, 25, 100. / 3, 80}).Draw(t, "percentile")
	}
	if rule.Rule != stopping.Halving {
		rule.EveryEpochs = rapid.IntRange(1, 2).Draw(t, "every")
	}
	return &rule
}

// Ladder returns rungs of 1, factor, factor², ... epochs on all of the data.
func Ladder(rungs, factor int) []budget.Rung {
	ladder := make([]budget.Rung, rungs)
	epochs := 1
	for i := range ladder {
		ladder[i] = budget.Rung{Index: i, Budget: budget.Budget{Epochs: epochs, DataFraction: 1}}
		epochs *= factor
	}
	return ladder
}

// anyPart is a configuration of which parts may be missing.
func anyPart(t *rapid.T, s space.Space) space.Configuration {
	seed := rapid.Uint64().Draw(t, "configuration")
	configuration, err := s.Cube().Sample(rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		t.Fatalf("draw a configuration: %v", err)
	}
	for i, p := range s.Parameters {
		if seed>>(2*i)&3 == 0 {
			delete(configuration, p.Name)
		}
	}
	return configuration
}

// spaces are one of numbers, one of everything, and one that is soon used up.
func spaces() []space.Space {
	number := func(name string, kind space.Type, low, high float64) space.Parameter {
		return space.Parameter{Name: name, Kind: space.Training, Type: kind, Low: low, High: high}
	}
	choice := func(name string, kind space.Type, values ...space.Value) space.Parameter {
		return space.Parameter{Name: name, Kind: space.Model, Type: kind, Values: values}
	}
	is := func(name string, values ...space.Value) []space.Condition {
		return []space.Condition{{Parameter: name, In: values}}
	}
	sgd, adam := space.String("sgd"), space.String("adam")
	momentum := number("momentum", space.FloatType, 0, 0.9)
	momentum.When = is("optimizer", sgd)
	nesterov := choice("nesterov", space.CategoricalType, space.Bool(false), space.Bool(true))
	nesterov.When = is("optimizer", sgd)
	beta := number("beta", space.IntType, 1, 9)
	beta.When = is("optimizer", adam)
	return []space.Space{
		{Parameters: []space.Parameter{number("x", space.FloatType, 0, 1), number("n", space.IntType, 1, 100)}},
		{
			Parameters: []space.Parameter{
				choice("optimizer", space.CategoricalType, sgd, adam, space.String("none")), momentum, nesterov, beta,
				choice("batch", space.OrdinalType, space.Int(32), space.Int(64), space.Int(128), space.Int(256)),
			},
			Forbidden: []space.Forbidden{append(is("optimizer", adam), is("batch", space.Int(256))...)},
		},
		{Parameters: []space.Parameter{choice("activation", space.CategoricalType, space.String("relu"), space.String("tanh"), space.Int(3))}},
	}
}
