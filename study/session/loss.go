package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
)

// maxLosses is how often the infrastructure may lose a trial before it is
// given up; maxMachinesLost how many different machines may lose it without one
// report in between, after which the trial itself is suspected.
const (
	maxLosses       = 20
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

// Lose decides what becomes of a trial whose worker vanished. It never costs
// the user's retries.
func (tx *Transaction) Lose(t trial.Trial, how string) error {
	if t.MeasuredAt(t.Rung) {
		_, err := tx.measured(t)
		return err
	}
	t.Losses++
	if where := cmp.Or(t.Host, t.Worker); !slices.Contains(t.LostOn, where) {
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
	if rest := restAfter(t.Losses); rest > 0 {
		waits = fmt.Sprintf("rests for %g s, then waits for another worker", rest.Seconds())
		tx.resting = map[int]time.Time{t.Number: tx.Now.Add(rest)}
	}
	_, err = tx.state(t, trial.Queued, fmt.Sprintf("lost %d of at most %d times; %s", t.Losses, maxLosses, waits))
	return err
}

// suspicion says why a trial is not given to another worker; empty if it is.
func suspicion(t trial.Trial) string {
	const again = "; enqueue its configuration to try it again"
	switch {
	case len(t.LostOn) >= maxMachinesLost:
		return fmt.Sprintf("; quarantined, as it was lost on %d machines without a report in between (%s)%s", len(t.LostOn), strings.Join(t.LostOn, ", "), again)
	case t.Losses >= maxLosses:
		return fmt.Sprintf("; given up, as it was lost %d times%s", t.Losses, again)
	default:
		return ""
	}
}

// NextQueued is the queued trial that the worker goes on with: one that is kept for
// it, the one that is meant for it, or else the first, but for those that rest and
// those that are kept for another one.
func (r *State) NextQueued(now time.Time, worker string, meant int, kept allocator.Held) (number int, found bool) {
	for _, one := range r.Queue {
		if until, rests := r.Resting[one]; rests && now.Before(until) {
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
	r.noteAble(now)
	r.noted()
	return ended
}

// Stalls reports whether a worker says for the first time that the trial's
// script shows no sign of life.
func (r *State) Stalls(t trial.Trial, held protocol.HeldLease) bool {
	limit := r.Study.Definition.StallSeconds
	return limit > 0 && held.QuietSeconds >= limit && !t.Stalled && t.State.Held() && !t.MeasuredAt(t.Rung)
}

// Stall notes it, for people to see. Its worker ends the script where the study
// wants that.
func (tx *Transaction) Stall(t trial.Trial, held protocol.HeldLease) {
	t.Stalled = true
	t.Reason = fmt.Sprintf("stalled: no report, no output and next to no CPU time for %.0f s", held.QuietSeconds)
	tx.Stage(t)
	told := t
	told.SystemUse = nil // as in every line of the log
	tx.Log(journal.Event{Kind: journal.TrialState, Trial: t.ID, State: string(t.State), Worker: t.Worker, Reason: t.Reason}, told)
}
