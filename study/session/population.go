package session

import (
	"fmt"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
)

// inherit gives a child of a population what its parent had when it completed
// the rung below, and ends the trial whose place it takes. Any other new trial
// is left as it is. why is for the child's first lease.
func (tx *Transaction) inherit(t trial.Trial, action search.Action) (child trial.Trial, why string, err error) {
	why = "new"
	if action.Parent != nil {
		parent := tx.trial(*action.Parent)
		t.Parent = &parent.Number
		t.Checkpoint = checkpointAt(parent, t.Rung-1)
		t.LastEpoch = t.NextEpoch(tx.Session.Ladder[t.Rung]) - 1
		t.Inherited = t.LastEpoch
		why = fmt.Sprintf("continues trial %d", parent.Number)
		if t.Inherited == 0 {
			why = fmt.Sprintf("starts from scratch, as trial %d has no checkpoint of rung %d to continue from", parent.Number, t.Rung-1)
		}
	}
	if action.Replaces != nil {
		// One that failed, or was stopped early, is over already.
		if loser := tx.trial(*action.Replaces); !loser.State.Terminal() {
			_, err = tx.state(loser, trial.Pruned, fmt.Sprintf("beaten at rung %d: trial %d takes its place, which continues trial %d", loser.Rung, t.Number, *action.Parent))
		}
	}
	return t, why, err
}

// checkpointAt is what the trial had when it completed the rung, or nil.
func checkpointAt(t trial.Trial, rung int) *trial.Checkpoint {
	for _, result := range t.Results {
		if result.Rung == rung {
			return result.Checkpoint
		}
	}
	return nil
}

// keeps notes in the result what others may continue from. Only a population
// does: elsewhere a trial's older checkpoints are of no use.
func (r *State) keeps(t trial.Trial) trial.Trial {
	if r.Study.Definition.Search.Promotion != budget.Population {
		return t
	}
	results := append([]trial.Result{}, t.Results...)
	results[len(results)-1].Checkpoint = t.Checkpoint
	t.Results = results
	return t
}
