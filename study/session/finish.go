package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/approximation"
	"github.com/tandem-tune/tandem/workers/gpushare"
)

// End decides what a trial becomes when its lease ends in an orderly way. A
// trial that was measured at its rung is done with it, however the worker ended.
func (tx *Transaction) End(t trial.Trial, request protocol.FinishRequest) (trial.Trial, error) {
	switch {
	case t.MeasuredAt(t.Rung):
		return tx.measured(t, afterwards(request))
	case request.Outcome == protocol.Interrupted, request.Outcome == protocol.Refused:
		return tx.interrupted(t, request)
	case request.Outcome == protocol.Vanished:
		t, reason := tx.Start.WorkersOwn(t, request.Reason)
		err := tx.Lose(t, cmp.Or(reason, "worker "+t.Worker+" died under it"), false)
		return tx.trial(t.Number), err
	case t.Budget.Measured() && request.Outcome == protocol.BudgetReached:
		return tx.failedStart(t, "the command ended before its budget was spent: "+t.Amounts())
	case request.Outcome == protocol.BudgetReached:
		return tx.failedStart(t, fmt.Sprintf("the command ended after epoch %d of %d", t.LastEpoch, t.Budget.Epochs))
	case request.OutOfGPUMemory && tx.Crowding.Beside:
		t, reason := gpushare.AfterShortage(t, tx.Crowding.GPUBytes, cmp.Or(request.Reason, "the command failed"))
		return tx.state(t, trial.Queued, reason)
	default:
		return tx.failedStart(t, cmp.Or(request.Reason, "the command failed"))
	}
}

// interrupted puts the trial back into the queue. If its checkpoint could not be
// restored, it goes on from the one before, or starts again.
func (tx *Transaction) interrupted(t trial.Trial, request protocol.FinishRequest) (trial.Trial, error) {
	t, request.Reason = tx.Start.WorkersOwn(t, request.Reason)
	reason := cmp.Or(request.Reason, "given back by the worker")
	if request.Unusable != "" && t.Checkpoint != nil && t.Checkpoint.Artifact == request.Unusable {
		t.Checkpoint, t.Earlier = t.Earlier, nil
		if rung := tx.Session.Ladder[t.Rung]; t.ResumesAt(rung) {
			reason += fmt.Sprintf("; goes on from the checkpoint of epoch %d instead", t.Checkpoint.Epoch)
		} else {
			reason += "; starts from its first epoch, as there is no earlier checkpoint"
		}
	}
	if tx.Preempted && request.Outcome == protocol.Interrupted {
		t.Preemptions++
		t.Preempted = &tx.Now
	}
	t, reason = tx.depart(t, reason)
	return tx.state(t, trial.Queued, reason)
}

// afterwards says that a command failed behind its last report. Its result counts,
// but what it was to do then, such as to write a file, may not have been done.
func afterwards(request protocol.FinishRequest) string {
	if request.Outcome != protocol.CommandFailed {
		return ""
	}
	return "; the command failed after its last report: " + cmp.Or(request.Reason, "it does not say why")
}

// measured moves a trial with a result at its rung out of its worker's hands,
// shows the result to the search,
// and ends the study if its target is met.
func (tx *Transaction) measured(t trial.Trial, afterwards string) (trial.Trial, error) {
	r := tx.Session
	next, reason := trial.Paused, fmt.Sprintf("measured at rung %d", t.Rung)
	if t.Rung == len(r.Ladder)-1 {
		next, reason = trial.Completed, "measured at the top rung"
	}
	if t.Budget.Measured() {
		reason += ": " + t.Amounts()
	}
	t, err := tx.state(t, next, reason+afterwards)
	if err != nil {
		return t, err
	}
	if err := tell(tx, t); err != nil {
		return t, err
	}
	result := t.Results[len(t.Results)-1]
	if t.RepeatOf != nil { // the search is over already: what is left of it is to see how lucky its best were
		return tx.settled(t)
	}
	if reached(r.Study.Definition, result) {
		err = tx.Conclude(protocol.StudyCompleted, fmt.Sprintf("trial %d reached the target", t.Number))
		t = tx.trial(t.Number)
		return t, err
	}
	return tx.settled(t)
}

// tell shows the search what was measured of the trial at its rung.
func tell(tx *Transaction, t trial.Trial) error {
	result := t.Results[len(t.Results)-1]
	_, err := tx.Search(search.Event{
		Kind: search.Measured, Trial: t.Number, Rung: t.Rung, Values: approximation.Corrected(tx.Session.Study.Definition, result), Violation: result.Violation,
	})
	return err
}

// failed retries the trial while the user's retries last, else fails it for
// good; and ends a study in which nothing but failures happens.
func (tx *Transaction) failed(t trial.Trial, reason string) (trial.Trial, error) {
	def := tx.Session.Study.Definition
	t.Failures++
	if t.Failures <= def.Retry.Failures {
		return tx.state(t, trial.Queued, fmt.Sprintf("failed (%d of %d retries used): %s", t.Failures, def.Retry.Failures, reason))
	}
	t, err := tx.state(t, trial.Failed, reason)
	if err != nil {
		return t, err
	}
	if _, err := tx.Search(search.Event{Kind: search.Failed, Trial: t.Number, Rung: t.Rung}); err != nil {
		return t, err
	}
	row, measured := ranking.FailuresInARow(tx.all(), tx.Session.Study.Reopened)
	switch first, most := def.Stop.Failures, def.Stop.FailuresInARow; {
	case first > 0 && row >= first && !measured:
		return t, tx.Conclude(protocol.StudyFailed, fmt.Sprintf("the first trials failed, as many as stop.failures allows (%d)", first))
	case most > 0 && row >= most:
		return t, tx.Conclude(protocol.StudyFailed, fmt.Sprintf("%d trials in a row failed (stop.failures_in_a_row), the last one: %s; mend that, and 'tandem study retry %s --failed' goes on", row, trial.FirstLine(reason), def.Name))
	}
	return tx.settled(t)
}

// reached reports whether a feasible result meets the targets of all objectives
// that have one.
func reached(def definition.Definition, result trial.Result) bool {
	if !def.Stop.TargetReached || result.Violation > 0 {
		return false
	}
	for i, objective := range def.Objectives {
		if objective.Target == nil {
			continue
		}
		value := float64(result.Values[i])
		met := value <= *objective.Target
		if objective.Direction == definition.Maximize {
			met = value >= *objective.Target
		}
		if !met {
			return false
		}
	}
	return true
}

// failedStart stages a trial whose command failed before it reported anything.
func (tx *Transaction) failedStart(t trial.Trial, reason string) (trial.Trial, error) {
	t, again, reason := tx.Start.Failed(t, reason)
	if again {
		return tx.state(t, trial.Queued, fmt.Sprintf("failed (no retry used, as it had not reported and another worker may start it): %s", reason))
	}
	return tx.failed(t, reason)
}

// depart notes on a trial that is given back that it moves, and keeps it for its
// new machine for a while.
func (tx *Transaction) depart(t trial.Trial, reason string) (trial.Trial, string) {
	if tx.Migration == nil {
		return t, reason
	}
	record := tx.Migration.Record
	record.At = tx.Now
	t.Migrations = append(slices.Clone(t.Migrations), record)
	if !tx.Awaited {
		if entry := tx.Migration.Cancelled(); entry != nil {
			tx.Change.Pool = append(tx.Change.Pool, *entry)
		}
		return t, record.Why + "; that has other work by now"
	}
	tx.Held = true
	return t, fmt.Sprintf("%s; kept for it for up to %g s", record.Why, allocator.HoldSpan.Seconds())
}

// moved adds an epoch to what a trial's last move really came to.
func moved(t trial.Trial, report trial.Report) trial.Trial {
	last := len(t.Migrations) - 1
	if last < 0 || report.LeaseEpoch <= t.Migrations[last].LeaseEpoch {
		return t
	}
	t.Migrations = slices.Clone(t.Migrations)
	one := &t.Migrations[last]
	one.Epochs++
	one.Seconds += report.Seconds
	one.Energy = one.Energy.Plus(report.Energy)
	return t
}

// Crowding is that a trial shares its GPU, or did under its lease.
type Crowding struct {
	Beside   bool
	GPUBytes int64
}

// maxLosses is how often the infrastructure may lose a trial before it is given up,
// maxExplained how often where it is known why each time; maxMachinesLost how many
// different machines may lose it without one report in between, after which the trial
// itself is suspected.
const (
	maxLosses       = 20
	maxExplained    = 100
	maxMachinesLost = 3
)

// A trial that was lost again rests, twice as long each time, so that a machine
// that dies of it is not sent the next one at once.
const (
	firstRest   = 5 * time.Second
	longestRest = 5 * time.Minute
)

// restAfter is how long a trial rests that was lost so many times: not at all
// after the first.
func restAfter(losses int) time.Duration {
	if losses < 2 {
		return 0
	}
	rest := firstRest
	for range losses - 2 {
		rest = min(2*rest, longestRest)
	}
	return rest
}

// Lose decides what becomes of a trial whose worker vanished. It never costs the user's
// retries. A loss that is explained speaks neither against the trial nor a machine.
func (tx *Transaction) Lose(t trial.Trial, how string, explained bool) error {
	if t.MeasuredAt(t.Rung) {
		_, err := tx.measured(t, "")
		return err
	}
	t.Losses++
	if explained {
		t.Explained++
	} else if where := cmp.Or(t.Host, t.Worker); !slices.Contains(t.LostOn, where) {
		t.LostOn = append(slices.Clone(t.LostOn), where)
	}
	suspected := suspicion(t)
	t, err := tx.state(t, trial.Lost, how+suspected)
	if err != nil {
		return err
	}
	if suspected != "" {
		if _, err := tx.Search(search.Event{Kind: search.Failed, Trial: t.Number, Rung: t.Rung}); err != nil {
			return err
		}
		_, err := tx.settled(t)
		return err
	}
	t.Finished = nil
	waits := "waits for another worker"
	if explained {
		_, err = tx.state(t, trial.Queued, fmt.Sprintf("lost for a known reason %d of at most %d times; %s", t.Explained, maxExplained, waits))
		return err
	}
	counted := t.Losses - t.Explained
	if rest := restAfter(counted); rest > 0 {
		waits = fmt.Sprintf("rests for %g s, then waits for another worker", rest.Seconds())
		tx.resting = map[int]time.Time{t.Number: tx.Now.Add(rest)}
	}
	_, err = tx.state(t, trial.Queued, fmt.Sprintf("lost %d of at most %d times; %s", counted, maxLosses, waits))
	return err
}

// suspicion says why a trial is not given to another worker; empty if it is.
func suspicion(t trial.Trial) string {
	const again = "; enqueue its configuration to try it again"
	switch {
	case len(t.LostOn) >= maxMachinesLost:
		return fmt.Sprintf("; quarantined, as it was lost on %d machines without a report in between (%s)%s", len(t.LostOn), strings.Join(t.LostOn, ", "), again)
	case t.Losses-t.Explained >= maxLosses:
		return fmt.Sprintf("; given up, as it was lost %d times%s", t.Losses-t.Explained, again)
	case t.Explained >= maxExplained:
		return fmt.Sprintf("; given up, as it was lost %d times, each for a known reason%s", t.Explained, again)
	default:
		return ""
	}
}

// NextQueued is the queued trial that the worker goes on with: one that is kept for
// it, the one that is meant for it, or else the first, but for those that rest and
// those that are kept for another one.
func (r *State) NextQueued(now time.Time, worker string, meant int, kept allocator.Held) (number int, found bool) {
	for _, one := range r.Queue {
		if r.rests(one, now) {
			continue
		}
		where, moved := kept[one]
		switch {
		case moved && where == worker, one == meant && !moved:
			return one, true
		case !moved && !found:
			number, found = one, true
		}
	}
	return number, found
}

// Rested reports whether a trial's rest has ended since it was asked last.
func (r *Session) Rested(now time.Time) bool {
	ended := false
	for number, until := range r.Resting {
		if !now.Before(until) {
			delete(r.Resting, number)
			ended = true
		}
	}
	r.noteAble(now, 0)
	r.noted()
	return ended
}
