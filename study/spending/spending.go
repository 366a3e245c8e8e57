// Package spending counts what trials use: passes over the data, time and energy.
package spending

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Spending is what trials have used together.
type Spending struct {
	// Passes are over the whole data, Seconds of training.
	Passes, Seconds float64
	Energy          trial.Energy
	Cost            *trial.Cost
}

// Of is what a trial on the ladder has used.
func Of(ladder []budget.Rung, t trial.Trial) Spending {
	return Spending{Passes: DataPasses(ladder, t), Seconds: float64(t.Seconds), Energy: t.Energy, Cost: t.Cost}
}

// Plus is the sum of both.
func (s Spending) Plus(other Spending) Spending {
	return Spending{Passes: s.Passes + other.Passes, Seconds: s.Seconds + other.Seconds, Energy: s.Energy.Plus(other.Energy), Cost: s.Cost.Plus(other.Cost)}
}

// Replacing is the sum when one trial's part of it changes.
func (s Spending) Replacing(before, now Spending) Spending {
	before.Energy.Joules, before.Energy.Method = -before.Energy.Joules, now.Energy.Method
	s.Cost = s.Cost.Minus(before.Cost)
	return s.Plus(Spending{Passes: -before.Passes, Seconds: -before.Seconds, Energy: before.Energy}).Plus(now)
}

// Limit is one of a study's limits, and how much of it is used.
type Limit struct {
	What        string
	Used, Limit float64
}

// Limits are those that the study file sets.
func (s Spending) Limits(stop definition.Stop) []Limit {
	joules := "joules"
	if s.Energy.Estimated() {
		joules = "joules (an estimate)"
	}
	cost := s.Cost
	if cost == nil {
		cost = &trial.Cost{Currency: "of the currency of the prices"}
	}
	money, grams := cost.Currency, "g of CO2"
	if cost.Estimated() {
		money, grams = money+" (with an estimate)", grams+" (an estimate)"
	}
	var set []Limit
	for _, one := range []Limit{
		{"passes over the data", s.Passes, stop.DataPasses},
		{"seconds of training", s.Seconds, stop.TrainingSeconds},
		{joules, float64(s.Energy.Joules), stop.Joules},
		{money, float64(cost.Amount), stop.Cost},
		{grams, float64(cost.Grams()), stop.CO2},
	} {
		if one.Limit > 0 {
			set = append(set, one)
		}
	}
	return set
}

// Reached allows for the rounding of sums: nine ninths are one pass.
func (l Limit) Reached() bool { return l.Used >= l.Limit*(1-1e-9) }

// DataPasses is the trial's epochs weighted by the share of the data each used.
// Epochs after the last completed rung count with the present budget.
func DataPasses(ladder []budget.Rung, t trial.Trial) float64 {
	passes, done := 0.0, 0
	for _, result := range t.Results {
		epochs := result.Budget.Epochs
		if !ladder[result.Rung].FromScratch {
			epochs -= done
		}
		epochs = min(epochs, t.Epochs-done)
		passes += float64(epochs) * result.Budget.DataFraction
		done += epochs
	}
	return passes + float64(t.Epochs-done)*t.Budget.DataFraction
}
