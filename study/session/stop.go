package session

import (
	"fmt"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/spending"
	"github.com/tandem-tune/tandem/trial"
)

// judge shows an accepted report to the search of a study that stops trials
// early. A trial that has lost is pruned in the same transaction: its worker
// hears of it in the answer, and its place is free.
func (tx *Transaction) judge(t trial.Trial, report protocol.Report) (trial.Trial, error) {
	r := tx.Session
	switch {
	case r.Study.Definition.Search.EarlyStopping == nil:
		return t, nil
	case r.Method == nil: // a broken search still takes reports; it only cannot judge them
		return t, nil
	case t.RepeatOf != nil: // it is trained to its end, whatever it comes to
		return t, nil
	case t.MeasuredAt(t.Rung): // with its result it is the rung's to judge
		return t, nil
	}
	goals, err := r.goals()
	if err != nil {
		return t, nil
	}
	values, ok := goals.Values(t, report.Metrics)
	if !ok {
		return t, nil
	}
	actions, err := tx.Search(search.Event{Kind: search.Reported, Trial: t.Number, Rung: t.Rung, Epoch: report.Epoch, Values: values})
	if err != nil || len(actions) == 0 {
		return t, err
	}
	if t, err = tx.state(t, trial.Pruned, "stopped early: "+actions[0].Reason); err != nil {
		return t, err
	}
	return tx.settled(t)
}

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

// passed promotes a trial that has spent the next rung's budget already, since
// its last epoch was that long or its epochs are used up: its values count
// there too, and nothing is trained. False if it has something to train.
func (tx *Transaction) passed(t trial.Trial, action search.Action) (bool, error) {
	t.Promotions++
	t.Rung, t.Budget = action.Rung, tx.Session.Ladder[action.Rung].Budget
	if !t.Budget.Measured() || !t.Budget.Reached(spent(t)) {
		return false, nil
	}
	t.Results = append(append([]trial.Result{}, t.Results...), tx.result(t, t.Last))
	_, err := tx.measured(t, "")
	return true, err
}

// spend ends a study whose trials have used up one of its budgets.
func (tx *Transaction) spend(t trial.Trial) (trial.Trial, error) {
	r := tx.Session
	if r.Study.Status.Over() || tx.Study != nil {
		return t, nil
	}
	total := r.spending.Replacing(spending.Of(r.Ladder, r.Trials[t.Number]), spending.Of(r.Ladder, t))
	for _, bound := range total.Limits(r.Study.Definition.Stop) {
		if bound.Reached() {
			err := tx.Conclude(protocol.StudyCompleted, fmt.Sprintf("its budget of %g %s is spent", bound.Limit, bound.What))
			return tx.trial(t.Number), err
		}
	}
	return t, nil
}

// Conclude ends the study. Trials that wait or are paused are pruned when it
// ended by itself, unless they have not trained an epoch, and cancelled when the user
// ended it; so are those a worker
// still has, which is told at its next report or heartbeat. Only one that was
// measured at the top rung is completed. What it is called then, verdict
// says.
func (tx *Transaction) Conclude(status protocol.StudyStatus, reason string) error {
	in := tx.Session.Study.Definition.Inference
	status, reason = ranking.Verdict(status, reason, in != nil && in.Scenario != nil && in.Scenario.Server != nil, tx.all())
	last := trial.Pruned
	if status == protocol.StudyStopped {
		last = trial.Cancelled
	}
	for number := range tx.Session.Trials {
		t := tx.trial(number)
		if t.State.Terminal() {
			continue
		}
		next, why := last, reason
		switch top := len(tx.Session.Ladder) - 1; {
		case t.MeasuredAt(top):
			next, why = trial.Completed, "measured at the top rung" // its worker has only not said goodbye yet
		case t.Epochs == 0 && len(t.Results) == 0: // nothing is known of it that it could have lost by
			next, why = trial.Cancelled, "it was not tried before the study ended: "+reason
		}
		if _, err := tx.state(t, next, why); err != nil {
			return err
		}
	}
	tx.Status(status, reason)
	return nil
}

// settled ends the study behind the outcome of a trial that was the search's last.
// Who asks for trials and tells what became of them may know their number, and never
// ask again: nothing else would end it.
func (tx *Transaction) settled(t trial.Trial) (trial.Trial, error) {
	if tx.Study != nil || tx.Session.Method == nil || !tx.Session.Method.Ended() {
		return t, nil
	}
	err := tx.Conclude(protocol.StudyCompleted, searchEnded)
	return tx.trial(t.Number), err
}

// searchEnded is why a study is over whose search has nothing left to try.
const searchEnded = "the search is finished"

// result is the trial's at its rung, with when it was measured. The check of the report
// has refused it where the goals cannot be computed.
func (tx *Transaction) result(t trial.Trial, metrics map[string]trial.Float) trial.Result {
	goals, err := tx.Session.goals()
	if err != nil {
		return trial.Result{Rung: t.Rung, Budget: t.Budget, Deflation: t.Deflation, At: new(tx.Now)}
	}
	result := goals.Result(t, metrics)
	result.At = new(tx.Now)
	return result
}
