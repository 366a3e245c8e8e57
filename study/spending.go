package study

import (
	"fmt"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// spending is what all trials of a study have used together.
type spending struct {
	passes, seconds float64 // passes over the whole data, seconds of training
	energy          trial.Energy
}

// spent is what the trial has used.
func (r *runtime) spent(t trial.Trial) spending { return spentBy(r.ladder, t) }

// spentBy is what a trial on the ladder has used.
func spentBy(ladder []budget.Rung, t trial.Trial) spending {
	return spending{passes: dataPasses(ladder, t), seconds: float64(t.Seconds), energy: t.Energy}
}

func (s spending) plus(other spending) spending {
	return spending{passes: s.passes + other.passes, seconds: s.seconds + other.seconds, energy: s.energy.Plus(other.energy)}
}

// replacing is the sum when one trial's part of it changes.
func (s spending) replacing(before, now spending) spending {
	before.energy.Joules, before.energy.Method = -before.energy.Joules, now.energy.Method
	return s.plus(spending{passes: -before.passes, seconds: -before.seconds, energy: before.energy}).plus(now)
}

// bound is one of a study's budgets, and how much of it is used.
type bound struct {
	what        string
	used, limit float64
}

// bounds are the budgets that the study file sets.
func (s spending) bounds(stop definition.Stop) []bound {
	joules := "joules"
	if s.energy.Estimated() {
		joules = "joules (an estimate)"
	}
	var set []bound
	for _, one := range []bound{
		{"passes over the data", s.passes, stop.DataPasses},
		{"seconds of training", s.seconds, stop.TrainingSeconds},
		{joules, float64(s.energy.Joules), stop.Joules},
	} {
		if one.limit > 0 {
			set = append(set, one)
		}
	}
	return set
}

// reached allows for the rounding of sums: nine ninths are one pass.
func (b bound) reached() bool { return b.used >= b.limit*(1-1e-9) }

// spend ends a study whose trials have used up one of its budgets.
func (tx *transaction) spend(t trial.Trial) (trial.Trial, error) {
	r := tx.runtime
	if r.study.Status.Over() || tx.study != nil {
		return t, nil
	}
	total := r.spending.replacing(r.spent(r.trials[t.Number]), r.spent(t))
	for _, bound := range total.bounds(r.study.Definition.Stop) {
		if bound.reached() {
			err := tx.conclude(protocol.StudyCompleted, fmt.Sprintf("its budget of %g %s is spent", bound.limit, bound.what))
			return tx.trial(t.Number), err
		}
	}
	return t, nil
}
