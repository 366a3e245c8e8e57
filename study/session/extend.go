package session

import (
	"context"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/spending"
	"github.com/tandem-tune/tandem/trial"
)

// Extend gives the study more of what bounds it. One that is over goes on: its search
// knows what it knew, and trials that the end had cut off wait again. Those are returned.
func (tx *Transaction) Extend(ctx context.Context, more protocol.ExtendRequest) ([]trial.Trial, error) {
	r := tx.Session
	if err := r.recall(ctx); err != nil {
		return nil, err
	}
	reopened, err := extend(tx, more)
	if err != nil && r.Study.Status.Over() {
		r.Method = nil
	}
	return reopened, err
}

// recall makes the search of a study that is over ready to go on.
func (r *Session) recall(ctx context.Context) error {
	for settled := false; !settled; {
		newest := r.newest
		if err := r.Wait(); err != nil {
			return problem.New(problem.Unavailable, "how the study ended was not stored (%w): ask again", err)
		}
		settled = newest == r.newest
	}
	if !r.Study.Status.Over() {
		return nil
	}
	stored, err := r.options.Store.Study(ctx, r.ID)
	if err == nil {
		err = r.replay(ctx, stored.Definition, true)
	}
	if err == nil {
		err, r.Broken = r.Broken, nil
	}
	return err
}

func extend(tx *Transaction, more protocol.ExtendRequest) ([]trial.Trial, error) {
	r, study := tx.Session, tx.Session.Study
	var again []int
	if more.RetryFailed && r.Method != nil {
		again = r.Method.Retryable()
		if len(again) == 0 {
			return nil, problem.New(problem.Conflict, "no trial of study %s is left to retry: none failed that was not tried again already", study.Definition.Name)
		}
		if bound := study.Definition.Stop.Trials % definition.MaxTrials; bound > 0 || study.Status.Over() {
			more.Trials += len(again)
		}
	}
	at := spending.Point{Trials: len(trial.Searched(r.Trials)) + r.Enqueued(), Seconds: study.ElapsedAt(tx.Now).Seconds(), Over: study.Status.Over()}
	stop, err := r.spending.Extended(study.Definition.Stop, more, at)
	if err != nil {
		return nil, err
	}
	study.Definition.Stop, study.Stop = stop, &stop
	if at.Over {
		study.Reopened = tx.Now
	}
	tx.Study, tx.Change.Update, tx.keep = &study, &study, true
	tx.Log(journal.Event{Kind: journal.Extended, Reason: "by a user"}, stop)
	if _, err := tx.Search(search.Event{Kind: search.Extended, MaxTrials: stop.Trials}); err != nil {
		return nil, err
	}
	for _, number := range again {
		if _, err := tx.Search(search.Event{Kind: search.Enqueued, RetryOf: &number}); err != nil {
			return nil, err
		}
	}
	if !at.Over {
		return nil, nil
	}
	reopened, err := reopen(tx)
	if err != nil {
		return nil, err
	}
	if r.Method.Ended() {
		if stop.Trials > 0 && at.Trials >= stop.Trials {
			return nil, problem.New(problem.Conflict, "study %s cannot go on: its %d trials (stop.trials) are created, and none may go up; give it more trials too", study.Definition.Name, at.Trials)
		}
		return nil, problem.New(problem.Conflict, "study %s cannot go on: its search has nothing left to try; create a study with a larger space and search.warm_start", study.Definition.Name)
	}
	tx.Status(protocol.StudyRunning, "extended by a user")
	return reopened, nil
}

// reopen takes back what the end of the study has done to trials whose search still counts
// on them: they are queued, or paused where they were measured at their rung.
func reopen(tx *Transaction) (reopened []trial.Trial, err error) {
	method := tx.Session.Method
	for _, t := range tx.Session.Trials {
		if method.Expects(t.Number) && t.MeasuredAt(t.Rung) { // the study ended before its worker said so
			if err := tell(tx, t); err != nil {
				return nil, err
			}
		}
		next := trial.Paused
		switch {
		case t.State != trial.Pruned && t.State != trial.Cancelled:
			continue
		case method.Expects(t.Number):
			next = trial.Queued
		case !method.Rests(t.Number):
			continue
		}
		t.Finished, t.Earlier = nil, nil
		t.Results = slices.Clone(t.Results)
		for i, result := range t.Results {
			if result.Checkpoint != nil && (t.Checkpoint == nil || *result.Checkpoint != *t.Checkpoint) {
				t.Results[i].Checkpoint = nil // it may be gone since the end
			}
		}
		if t, err = tx.state(t, next, "the study was extended"); err != nil {
			return nil, err
		}
		reopened = append(reopened, t)
	}
	return reopened, nil
}
