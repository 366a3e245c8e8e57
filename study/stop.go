package study

import (
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
)

// judge shows an accepted report to the search of a study that stops trials
// early. A trial that has lost is pruned in the same transaction: its worker
// hears of it in the answer, and its place is free.
func (tx *transaction) judge(t trial.Trial, report protocol.Report) (trial.Trial, error) {
	r := tx.session
	switch {
	case r.study.Definition.Search.EarlyStopping == nil:
		return t, nil
	case r.method == nil: // a broken search still takes reports; it only cannot judge them
		return t, nil
	case t.RepeatOf != nil: // it is trained to its end, whatever it comes to
		return t, nil
	case t.MeasuredAt(t.Rung): // with its result it is the rung's to judge
		return t, nil
	}
	values, ok := r.values(t, report.Metrics)
	if !ok {
		return t, nil
	}
	actions, err := tx.search(search.Event{Kind: search.Reported, Trial: t.Number, Rung: t.Rung, Epoch: report.Epoch, Values: values})
	if err != nil || len(actions) == 0 {
		return t, err
	}
	if t, err = tx.state(t, trial.Pruned, "stopped early: "+actions[0].Reason); err != nil {
		return t, err
	}
	return tx.settled(t)
}

// values are the objectives after a report, which is counted in already; false
// if something they need is missing, as only the last report of a rung must
// have it all.
func (r *session) values(t trial.Trial, metrics map[string]trial.Float) ([]trial.Float, bool) {
	aims, err := r.aims()
	if err != nil {
		return nil, false
	}
	known := ranking.Numbers(t, metrics)
	var values []trial.Float
	for _, goal := range aims.objectives {
		for _, name := range goal.formula.Names() {
			if _, ok := known[name]; !ok {
				return nil, false
			}
		}
		values = append(values, trial.Float(goal.formula.Value(known)))
	}
	return values, true
}
