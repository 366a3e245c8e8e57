package main

import (
	"context"
	"fmt"
	"os"

	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/budget"
)

// ladder is one way to grow budgets on the table of epochs and data fractions.
type ladder struct {
	name     string
	settings budget.Settings
}

// ladders are the three policies of thesis section 7.4.3. Its dataset policy
// trains one epoch; ours trains as many as there are.
func ladders() []ladder {
	all, least := budget.FractionRange{Min: 1, Max: 1}, budget.FractionRange{Min: 0.0625, Max: 1}
	return []ladder{
		{"epochs", budget.Settings{Policy: budget.Epochs, Epochs: budget.EpochRange{Min: 1, Max: 9}, DataFraction: all, Eta: 3}},
		{"dataset, 9 epochs", budget.Settings{Policy: budget.Dataset, Epochs: budget.EpochRange{Min: 9, Max: 9}, DataFraction: least, Eta: 3}},
		{"dataset, 1 epoch", budget.Settings{Policy: budget.Dataset, Epochs: budget.EpochRange{Min: 1, Max: 1}, DataFraction: least, Eta: 3}},
		{"multi", budget.Settings{Policy: budget.Multi, Epochs: budget.EpochRange{Min: 1, Max: 9}, DataFraction: least, Eta: 3}},
	}
}

// comparePolicies runs each policy on the table that has both axes, once with a
// budget of data passes and once with one of training time.
func comparePolicies(ctx context.Context, o options) error {
	t, err := loadPerceptron(dataFolder())
	if err != nil {
		return fmt.Errorf("%w (%w)", errNoData, err)
	}
	passes := o.budget(t)
	seconds := o.trainings * meanTraining(t)
	for _, basis := range []struct {
		name    string
		options simulator.Options
		at      func(simulator.Point) float64
		budget  float64
	}{
		{"data passes", simulator.Options{MaxCost: passes}, func(p simulator.Point) float64 { return p.Cost }, passes},
		{"training time", simulator.Options{MaxSeconds: seconds}, func(p simulator.Point) float64 { return p.Seconds }, seconds},
	} {
		r := report{tables: []*table{t}}
		for _, method := range o.methods {
			for _, l := range ladders() {
				for seed := range o.seeds {
					options := basis.options
					options.Seed, options.LeaseSeconds, options.Workers = uint64(seed)+1, longLease, 1
					options.Full = budget.Budget{Epochs: t.maxEpochs(), DataFraction: 1}
					def := t.definition
					def.Search.Method, def.Search.Seed, def.Budget = method, options.Seed, l.settings.WithDefaults()
					trace, err := simulator.Run(ctx, def, t, options)
					if err != nil {
						return fmt.Errorf("%s, %s: %w", method, l.name, err)
					}
					one := finished{method: method + ", " + l.name, problem: t.name, seed: options.Seed, workers: 1, budget: basis.budget, seconds: trace.Seconds}
					one.follow(t, trace.Points, basis.at)
					r.runs = append(r.runs, one)
				}
			}
		}
		fmt.Printf("\nBudget: %.0f %s\n", basis.budget, map[bool]string{true: "data passes", false: "s of training"}[basis.name == "data passes"])
		r.print(os.Stdout)
	}
	return nil
}

// meanTraining is the time of one full training, over all rows.
func meanTraining(t *table) float64 {
	sum, rows := 0.0, len(t.points)+len(t.drawn) // one of the two is empty
	for row := range rows {
		for epoch := 1; epoch <= t.maxEpochs(); epoch++ {
			sum += t.at(row, epoch, 1).Seconds
		}
	}
	return sum / float64(rows)
}
