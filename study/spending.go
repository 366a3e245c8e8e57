package study

import (
	"fmt"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/spending"
	"github.com/tandem-tune/tandem/trial"
)

// spent is what the trial has used.
func (r *session) spent(t trial.Trial) spending.Spending { return spending.Of(r.ladder, t) }

// spend ends a study whose trials have used up one of its budgets.
func (tx *transaction) spend(t trial.Trial) (trial.Trial, error) {
	r := tx.session
	if r.study.Status.Over() || tx.study != nil {
		return t, nil
	}
	total := r.spending.Replacing(r.spent(r.trials[t.Number]), r.spent(t))
	for _, bound := range total.Limits(r.study.Definition.Stop) {
		if bound.Reached() {
			err := tx.conclude(protocol.StudyCompleted, fmt.Sprintf("its budget of %g %s is spent", bound.Limit, bound.What))
			return tx.trial(t.Number), err
		}
	}
	return t, nil
}
