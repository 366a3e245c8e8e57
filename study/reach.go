package study

import (
	"fmt"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/spending"
	"github.com/tandem-tune/tandem/trial"
)

// reaches reports whether the epoch, which is counted in already, completes the
// trial's budget. Epochs may be reported out of order, so that of a budget in
// epochs only the last one does.
func reaches(t trial.Trial, epoch int) bool {
	if !t.Budget.Measured() {
		return epoch == t.Budget.Epochs
	}
	return t.Budget.Reached(spent(t))
}

// spent is what the trial has spent so far. An epoch that was lost and trained
// again was accepted, and counts, once.
func spent(t trial.Trial) budget.Spent {
	return budget.Spent{Epoch: t.LastEpoch, Seconds: float64(t.Seconds), Joules: float64(t.Energy.Joules)}
}

// unmeasured names what a report lacks that the budget is counted in.
func unmeasured(b budget.Budget, report protocol.Report) []problem.Field {
	var faults []problem.Field
	if b.Seconds > 0 && report.Seconds <= 0 {
		faults = append(faults, problem.Field{Path: "seconds", Value: report.Seconds,
			Message: "must be the epoch's wall-clock time, above 0: the study's budget is in seconds"})
	}
	if b.Joules > 0 && report.Energy == nil {
		faults = append(faults, problem.Field{Path: "energy",
			Message: "must be the epoch's joules and how they were obtained: the study's budget is in joules"})
	}
	return faults
}

// amounts says how much of a measured budget was spent; an estimate says so.
func amounts(t trial.Trial) string {
	text := fmt.Sprintf("epoch %d", t.LastEpoch)
	if t.Budget.Seconds > 0 {
		text += fmt.Sprintf(", %.4g of %.4g s of training", float64(t.Seconds), t.Budget.Seconds)
	}
	if t.Budget.Joules > 0 {
		text += fmt.Sprintf(", %.4g of %.4g J", float64(t.Energy.Joules), t.Budget.Joules)
		if t.Energy.Estimated() {
			text += " (an estimate)"
		}
	}
	return text
}

// passed promotes a trial that has spent the next rung's budget already, since
// its last epoch was that long or its epochs are used up: its values count
// there too, and nothing is trained. False if it has something to train.
func (tx *transaction) passed(t trial.Trial, action search.Action) (bool, error) {
	t.Promotions++
	t.Rung, t.Budget = action.Rung, tx.session.ladder[action.Rung].Budget
	if !t.Budget.Measured() || !t.Budget.Reached(spent(t)) {
		return false, nil
	}
	t.Results = append(append([]trial.Result{}, t.Results...), tx.result(t, t.Last))
	_, err := tx.measured(t)
	return true, err
}

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
