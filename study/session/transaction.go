package session

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/spending"
	"github.com/tandem-tune/tandem/study/starts"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
)

// Transaction gathers what one use case writes. Nothing of it is visible, in
// memory or in the store, before commit; and what is told about it, not before
// it is durable.
type Transaction struct {
	Session *Session
	Now     time.Time
	Change  journal.Change
	trials  map[int]trial.Trial
	Study   *journal.Study
	// Postponed says that a trial needs more than the part of a GPU that was kept for it,
	// apart why it must not run beside who is there.
	Postponed bool
	apart     string
	// Crowding is whether a trial that ends its lease shares its GPU.
	Crowding Crowding
	// Preempted says that the trial which ends its lease was asked to make way.
	Preempted bool
	// Here is the worker that a trial is leased to, machine the type of the one that
	// reports.
	Here    Lessee
	Machine string
	// Migration is why a trial that is given back goes to another machine, awaited whether
	// that waits still, held whether the trial is held for it.
	Migration     *allocator.Migration
	Awaited, Held bool
	// resting has until when a trial that was lost again is not given to anybody.
	resting map[int]time.Time
	// Start judges a start of a trial that failed or succeeded.
	Start starts.Judge
	// searched is how many steps the search has moved on: giving the transaction up
	// then makes the session stale. holds is how many trials workers have behind it.
	searched, holds int
	// keep has the search's state stored with the transaction.
	keep bool
	// Ended says that the study ends with it.
	Ended bool
	// Over says that nothing of the study is left behind the transaction:
	// whoever comes next loads it again, and finds it gone.
	Over bool
	// After is what follows outside of the study, in the pool and in what is learned: it
	// is done once the transaction is durable, before anybody is woken. undo takes back
	// what had to be seen earlier, if the transaction is refused or given up.
	After, Undo []func()
}

// Begin returns an empty transaction on the session, which is locked.
func (r *Session) Begin() *Transaction {
	return &Transaction{Session: r, Now: r.options.Now(), trials: make(map[int]trial.Trial)}
}

// study is the study as this transaction sees it.
func (tx *Transaction) study() journal.Study {
	if tx.Study != nil {
		return *tx.Study
	}
	return tx.Session.Study
}

// trial returns the trial as this transaction sees it.
func (tx *Transaction) trial(number int) trial.Trial {
	if staged, ok := tx.trials[number]; ok {
		return staged
	}
	return tx.Session.Trials[number]
}

// all are the trials that there were, as this transaction sees them.
func (tx *Transaction) all() iter.Seq[trial.Trial] {
	return func(yield func(trial.Trial) bool) {
		for number := range tx.Session.Trials {
			if !yield(tx.trial(number)) {
				return
			}
		}
	}
}

// state stages the trial in its new state, with a line in the log.
func (tx *Transaction) state(t trial.Trial, next trial.State, reason string) (trial.Trial, error) {
	t, err := t.To(next, reason)
	if err != nil {
		return t, err
	}
	t = t.Settled(tx.Now)
	if next.Terminal() {
		t.Finished = &tx.Now
	}
	tx.Note(t)
	return t, nil
}

// Note stages the trial, with a line in the log that says its reason.
func (tx *Transaction) Note(t trial.Trial) {
	tx.Stage(t)
	told := t
	told.SystemUse, told.Samples = nil, nil // sums of what the reports say one by one
	tx.Log(journal.Event{Kind: journal.TrialState, Trial: t.ID, State: string(t.State), Worker: t.Worker, Reason: t.Reason}, told)
}

// Stage writes the trial without a line in the log.
func (tx *Transaction) Stage(t trial.Trial) { tx.trials[t.Number] = t }

// Log appends an event with its data.
func (tx *Transaction) Log(event journal.Event, data any) {
	event.Study = tx.Session.Study.ID
	event.Sequence = tx.Session.Sequence + int64(len(tx.Change.Events)) + 1
	event.At = tx.Now
	if data != nil {
		// Every type logged here marshals: values, strings and Floats only.
		event.Data, _ = json.Marshal(data)
	}
	tx.Change.Events = append(tx.Change.Events, event)
}

// clock lets the study's time count while it is running and workers hold trials of it.
func clock(tx *Transaction) {
	study := tx.study()
	if runs := study.Status == protocol.StudyRunning && tx.holds > 0; runs != (study.Since != nil) {
		study = study.Counting(runs, tx.Now, tx.Now)
		tx.Study, tx.Change.Update = &study, &study
	}
}

// Status stages the study in a new status, with a line in the log.
func (tx *Transaction) Status(status protocol.StudyStatus, reason string) {
	study := tx.study()
	if study.Status, study.Reason = status, reason; status == protocol.StudyRunning {
		study.Finished = nil
		tx.Then(func() { tx.Session.asked = tx.Now })
	} else if status.Over() {
		study.Finished, tx.Ended = &tx.Now, true
	}
	tx.Study, tx.Change.Update = &study, &study
	tx.Log(journal.Event{Kind: journal.StatusChange, State: string(status), Reason: reason}, nil)
}

// Transfer gives the study to the owner, under the name; by says whose decision that is.
func (tx *Transaction) Transfer(owner, name, by string) {
	study := tx.study()
	before := cmp.Or(study.Owner, access.Administrators)
	study.Owner, study.Definition.Name = owner, name
	tx.Study, tx.Change.Update, tx.Change.Transfer = &study, &study, true
	to := protocol.Ownership{Owner: cmp.Or(owner, access.Administrators), Name: name}
	tx.Log(journal.Event{Kind: journal.Transferred, Reason: fmt.Sprintf("from %s to %s, by %s", before, to.Owner, by)}, to)
	tx.Then(func() { tx.Session.owner.Store(owner) })
}

// Search lets the search handle an event and logs the step.
func (tx *Transaction) Search(event search.Event) ([]search.Action, error) {
	if tx.Session.Method == nil {
		return nil, tx.Session.Broken
	}
	actions, err := tx.Session.Method.Handle(event)
	if err != nil {
		return nil, err
	}
	if len(actions) == 1 && actions[0].Kind == search.Wait {
		return actions, nil // changes nothing, so it is not worth a line
	}
	tx.searched++
	tx.Log(journal.Event{Kind: journal.Searched}, Decision{Event: event, Actions: actions})
	return actions, nil
}

// Then has something done once the transaction is durable: not when another attempt
// of the same call was faster, which has done it.
func (tx *Transaction) Then(follow func()) { tx.After = append(tx.After, follow) }

// takeBack undoes what was shown outside of the study before the transaction was
// durable.
func (tx *Transaction) takeBack() {
	for _, undo := range slices.Backward(tx.Undo) {
		undo()
	}
	tx.Undo = nil
}

// Abandon forgets a transaction that failed before its commit.
func (tx *Transaction) Abandon() {
	tx.takeBack()
	if tx.searched > 0 {
		tx.Session.Stale = true // the search saw an event that was never stored
	}
}

// show makes the transaction visible in memory.
func (tx *Transaction) show() {
	r := tx.Session
	leased := 0
	for _, number := range slices.Sorted(maps.Keys(tx.trials)) {
		staged := tx.trials[number]
		if staged.State == trial.Leased && (number >= len(r.Trials) || staged.LeaseEpoch > r.Trials[number].LeaseEpoch) {
			leased++
		}
		if number < len(r.Trials) {
			r.spending = r.spending.Replacing(spending.Of(r.Ladder, r.Trials[number]), spending.Of(r.Ladder, staged))
			r.use.Replace(r.Trials[number].SystemUse, staged.SystemUse)
			if undo := r.gpuUsage.Replace(r.Trials[number], staged); undo != nil {
				tx.Undo = append(tx.Undo, undo)
			}
			r.Trials[number] = staged
		} else {
			r.Trials = append(r.Trials, staged)
		}
		r.enqueue(staged)
	}
	r.Held = tx.holds
	if tx.resting != nil {
		if r.Resting == nil {
			r.Resting = make(map[int]time.Time)
		}
		maps.Copy(r.Resting, tx.resting)
	}
	if tx.Start.Learned != nil {
		r.Starts = *tx.Start.Learned
	}
	r.Sequence += int64(len(tx.Change.Events))
	r.sinceSnapshot += tx.searched
	if tx.Change.Snapshot != nil {
		r.sinceSnapshot = 0
	}
	if tx.searched > 0 {
		r.waiting = false
	}
	if tx.Study != nil {
		r.Study = *tx.Study
		if r.Study.Status.Over() {
			trust(&r.State)
			r.Method = nil
		}
	}
	r.noteAble(tx.Now, leased)
}

// Inform tells a new search what is known and wanted before its first trial.
func (tx *Transaction) Inform(prior []search.Observation, initial []space.Configuration) error {
	if len(prior) > 0 {
		if _, err := tx.Search(search.Event{Kind: search.Prior, Prior: prior}); err != nil {
			return err
		}
	}
	for i, configuration := range initial {
		if _, err := tx.Search(search.Event{Kind: search.Enqueued, Configuration: configuration}); err != nil {
			return fmt.Errorf("search.initial[%d]: %w", i, err)
		}
	}
	return nil
}

// Write hands the transaction to the store, shows it in memory and waits for the outcome.
func (tx *Transaction) Write(ctx context.Context) error {
	r := tx.Session
	if err := tx.seal(); err != nil {
		tx.Abandon()
		r.Stale = true
		return problem.New(problem.Internal, "snapshot the search: %w", err)
	}
	// A client that hangs up must not leave us guessing whether the write
	// happened, so it does not cancel it.
	r.newest = r.options.Store.Submit(context.WithoutCancel(ctx), tx.Change)
	_ = failpoint.Here(failpoint.StudySubmitted)
	tx.show()
	r.Stale = r.Stale || tx.Over
	shown := r.shown()
	_ = failpoint.Here(failpoint.StudyShown)
	err := r.Wait()
	if err == nil {
		r.endures(shown)
		if err = failpoint.Here(failpoint.StudyDurable); err != nil {
			r.Stale = true
			err = problem.New(problem.Unavailable, "the outcome is not known: %w", err)
		}
	}
	if err != nil {
		tx.takeBack()
	}
	return err
}

// seal turns the staged trials into guarded writes. It adds the search's state once the
// log after the last snapshot is as long as the study is large, so that its cost stays
// constant per event.
func (tx *Transaction) seal() error {
	r := tx.Session
	tx.holds = r.Held
	for _, number := range slices.Sorted(maps.Keys(tx.trials)) {
		if tx.trials[number].State.Held() {
			tx.holds++
		}
		if number < len(r.Trials) && r.Trials[number].State.Held() {
			tx.holds--
		}
		write := journal.TrialWrite{Trial: tx.trials[number]}
		if number < len(r.Trials) {
			before := r.Trials[number]
			write.Guard = &journal.Guard{LeaseEpoch: before.LeaseEpoch, State: before.State}
		}
		tx.Change.Trials = append(tx.Change.Trials, write)
	}
	clock(tx)
	tx.Change.Pool = append(tx.Change.Pool, tx.Start.Entries...)
	if tx.Change.Insert == nil {
		tx.Change.Behind = r.Position()
	}
	if tx.searched == 0 || r.Method == nil || !tx.keep && r.sinceSnapshot < max(200, len(r.Trials)) {
		return nil
	}
	state, err := r.Method.Snapshot()
	if err != nil {
		return err
	}
	tx.Change.Snapshot = &journal.Snapshot{Study: r.Study.ID, Sequence: r.Sequence + int64(len(tx.Change.Events)), State: state}
	return nil
}
