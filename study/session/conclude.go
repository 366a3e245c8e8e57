package session

import (
	"fmt"
	"iter"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
)

// Conclude ends the study. Trials that wait or are paused are pruned when it
// ended by itself, unless they have not trained an epoch, and cancelled when the user
// ended it; so are those a worker
// still has, which is told at its next report or heartbeat. Only one that was
// measured at the top rung is completed. What it is called then, verdict
// says.
func (tx *Transaction) Conclude(status protocol.StudyStatus, reason string) error {
	status, reason = verdict(status, reason, tx.all())
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
	current := tx.Session.Study
	current.Elapsed, current.Since = current.ElapsedAt(tx.Now), nil
	current.Status, current.Reason, current.Finished = status, reason, &tx.Now
	tx.Status(current)
	return nil
}

// settled ends the study behind the outcome of a trial that was the search's last.
// Who asks for trials and tells what became of them may know their number, and never
// ask again: nothing else would end it.
func (tx *Transaction) settled(t trial.Trial) (trial.Trial, error) {
	method, tells := tx.Session.Method.(search.Ender)
	if tx.Study != nil || !tells || !method.Ended() {
		return t, nil
	}
	err := tx.Conclude(protocol.StudyCompleted, searchEnded)
	return tx.trial(t.Number), err
}

// searchEnded is why a study is over whose search has nothing left to try.
const searchEnded = "the search is finished"

// verdict is how a study ends that ended by itself. One that measured nothing has
// failed if trials of it failed or were lost, whatever it was that ended it: there
// is nothing to recommend, and its command is the likely cause. Trials that its rule
// has stopped early were seen to be worse than others, so that it has not failed.
func verdict(status protocol.StudyStatus, reason string, trials iter.Seq[trial.Trial]) (protocol.StudyStatus, string) {
	if status == protocol.StudyStopped {
		return status, reason
	}
	fruitless := failures{counts: map[string]int{}}
	known := 0
	for t := range trials {
		known++
		switch {
		case len(t.Results) > 0, t.State == trial.Pruned:
			return status, reason
		case t.State == trial.Failed, t.State == trial.Lost:
			fruitless.add(t)
		}
	}
	if fruitless.all() == 0 {
		return status, reason + ", and no trial was measured"
	}
	return protocol.StudyFailed, reason + ", and no trial was measured: " + fruitless.say(known)
}

// failures are the trials of a study that came to nothing.
type failures struct {
	failed, lost int
	counts       map[string]int // of each reason
	// commonest is the reason that most have, the first of equals; newest is the last
	// trial with it.
	commonest string
	newest    int
}

func (f *failures) add(t trial.Trial) {
	if t.State == trial.Lost {
		f.lost++
	} else {
		f.failed++
	}
	reason := trial.FirstLine(t.Reason)
	f.counts[reason]++
	if f.counts[reason] > f.counts[f.commonest] {
		f.commonest = reason
	}
	if reason == f.commonest {
		f.newest = t.Number
	}
}

func (f *failures) all() int { return f.failed + f.lost }

// say tells how many of the trials came to nothing, why most of them did, and where
// one can see more.
func (f *failures) say(trials int) string {
	var parts []string
	if f.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d failed", f.failed, trials))
	}
	if f.lost > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d lost", f.lost, trials))
	}
	return fmt.Sprintf("%s; the commonest reason (%d of %d): %s; see trial %d and its log",
		strings.Join(parts, " and "), f.counts[f.commonest], f.all(), f.commonest, f.newest)
}

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
