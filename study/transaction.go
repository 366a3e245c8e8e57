package study

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/starts"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/approximation"
	"github.com/tandem-tune/tandem/workers/gpushare"
)

// transaction gathers what one use case writes. Nothing of it is visible, in
// memory or in the store, before commit; and what is told about it, not before
// it is durable.
type transaction struct {
	session *session
	now     time.Time
	change  Change
	trials  map[int]trial.Trial
	study   *Study
	// part is the part of a GPU that such a trial may have instead, expects what a
	// trial should take of one, and postponed says that one needs more than its part,
	// or apart, that it must not run beside who is there.
	part      *allocator.Part
	expects   func(trial.Trial) gpushare.Estimate
	postponed bool
	apart     string
	// crowding is whether a trial that ends its lease shares its GPU.
	crowding crowding
	// preempted says that the trial which ends its lease was asked to make way.
	preempted bool
	// here is the worker that a trial is leased to, placing adds to a leased trial why;
	// machine is the type of the one that reports.
	here    lessee
	placing func(trial.Trial) (trial.Trial, string)
	machine string
	// migration is why a trial that is given back goes to another machine, awaited whether
	// that waits still, held whether the trial is held for it.
	migration     *allocator.Migration
	awaited, held bool
	// resting has until when a trial that was lost again is not given to anybody.
	resting map[int]time.Time
	// start judges a start of a trial that failed or succeeded.
	start starts.Judge
	// holder is to whom the lease of a trial that is leased belongs.
	holder string
	// approximation is what a trial that is leased leaves out.
	approximation approximation.Choice
	// known is what is known of system configurations on the worker's machine.
	known *groundtruth.Machine
	// regret is the bound that this transaction computed, if it did.
	regret *protocol.RegretBound
	// searched is how many steps the search has moved on: giving the transaction up
	// then makes the session stale.
	searched int
	// over says that nothing of the study is left behind the transaction:
	// whoever comes next loads it again, and finds it gone.
	over bool
	// after is what follows outside of the study, in the pool and in what is learned: it
	// is done once the transaction is durable, before anybody is woken. undo takes back
	// what had to be seen earlier, if the transaction is refused or given up.
	after, undo []func()
}

func (s *Service) begin(r *session) *transaction {
	return &transaction{
		session: r, now: s.options.Now(), trials: make(map[int]trial.Trial),
		expects: func(t trial.Trial) gpushare.Estimate { return s.expectedUse(r, &t) },
	}
}

// trial returns the trial as this transaction sees it.
func (tx *transaction) trial(number int) trial.Trial {
	if staged, ok := tx.trials[number]; ok {
		return staged
	}
	return tx.session.trials[number]
}

// all are the trials that there were, as this transaction sees them.
func (tx *transaction) all() iter.Seq[trial.Trial] {
	return func(yield func(trial.Trial) bool) {
		for number := range tx.session.trials {
			if !yield(tx.trial(number)) {
				return
			}
		}
	}
}

// state stages the trial in its new state, with a line in the log.
func (tx *transaction) state(t trial.Trial, next trial.State, reason string) (trial.Trial, error) {
	t, err := t.To(next, reason)
	if err != nil {
		return t, err
	}
	t.Stalled = false
	if next.Terminal() {
		t.Finished = &tx.now
	}
	tx.stage(t)
	told := t
	told.SystemUse = nil // sums of what the reports say one by one
	tx.log(Event{Kind: TrialState, Trial: t.ID, State: string(next), Worker: t.Worker, Reason: reason}, told)
	return t, nil
}

// stage writes the trial without a line in the log.
func (tx *transaction) stage(t trial.Trial) { tx.trials[t.Number] = t }

// log appends an event with its data.
func (tx *transaction) log(event Event, data any) {
	event.Study = tx.session.study.ID
	event.Sequence = tx.session.sequence + int64(len(tx.change.Events)) + 1
	event.At = tx.now
	if data != nil {
		// Every type logged here marshals: values, strings and Floats only.
		event.Data, _ = json.Marshal(data)
	}
	tx.change.Events = append(tx.change.Events, event)
}

// status stages the study in a new status, with a line in the log.
func (tx *transaction) status(study Study) {
	tx.study = &study
	tx.change.Update = &study
	tx.log(Event{Kind: StatusChange, State: string(study.Status), Reason: study.Reason}, nil)
}

// search lets the search handle an event and logs the step.
func (tx *transaction) search(event search.Event) ([]search.Action, error) {
	if tx.session.method == nil {
		return nil, tx.session.broken
	}
	actions, err := tx.session.method.Handle(event)
	if err != nil {
		return nil, err
	}
	if len(actions) == 1 && actions[0].Kind == search.Wait {
		return actions, nil // changes nothing, so it is not worth a line
	}
	tx.searched++
	tx.log(Event{Kind: Searched}, Decision{Event: event, Actions: actions})
	return actions, nil
}

// commit hands the transaction to the store and shows it in memory at once, so
// that the next use case of the study goes on from it and both share the wait
// for the disk; the session's lock is let go for that time. When it returns,
// the change is durable or refused. A refused change takes those behind it
// along: each is written only behind the event it was decided on.
//
// answer points to what the caller will be told; if another request with the same
// Idempotency-Key won the race, it is replaced by the answer that one stored.
func commit(ctx context.Context, s *Service, tx *transaction, answer any) error {
	var err error
	if tx.change.Receipt, err = receiptOf(ctx, answer, tx.now); err != nil {
		tx.abandon()
		return err
	}
	if err := failpoint.Here(failpoint.StudyDecided); err != nil {
		tx.abandon()
		return err
	}
	tx.fill()
	if err := tx.addSnapshot(); err != nil {
		tx.abandon()
		tx.session.stale = true
		return problem.New(problem.Internal, "snapshot the search: %w", err)
	}
	if err := s.write(ctx, tx); err != nil {
		tx.takeBack()
		return overtaken(ctx, s, err, answer)
	}
	for _, follow := range tx.after {
		follow()
	}
	if tx.study != nil && tx.study.Status.Over() {
		s.mutex.Lock()
		s.ended[tx.study.Status]++
		s.mutex.Unlock()
	}
	s.notify()
	return nil
}

// then has something done once the transaction is durable: not when another attempt
// of the same call was faster, which has done it.
func (tx *transaction) then(follow func()) { tx.after = append(tx.after, follow) }

// takeBack undoes what was shown outside of the study before the transaction was
// durable.
func (tx *transaction) takeBack() {
	for _, undo := range slices.Backward(tx.undo) {
		undo()
	}
	tx.undo = nil
}

// write submits the transaction, shows it and waits for the outcome.
func (s *Service) write(ctx context.Context, tx *transaction) error {
	r := tx.session
	if tx.change.Insert == nil {
		tx.change.Behind = r.position()
	}
	// A client that hangs up must not leave us guessing whether the write
	// happened, so it does not cancel it.
	r.newest = s.store.Submit(context.WithoutCancel(ctx), tx.change)
	_ = failpoint.Here(failpoint.StudySubmitted)
	tx.show()
	r.stale = r.stale || tx.over
	shown := r.shown()
	_ = failpoint.Here(failpoint.StudyShown)
	err := r.wait()
	if err == nil {
		r.endures(shown)
		if err = failpoint.Here(failpoint.StudyDurable); err != nil {
			r.stale = true
			err = problem.New(problem.Unavailable, "the outcome is not known: %w", err)
		}
	}
	return err
}

// fill turns the staged trials into guarded writes.
func (tx *transaction) fill() {
	r := tx.session
	for _, number := range slices.Sorted(maps.Keys(tx.trials)) {
		write := TrialWrite{Trial: tx.trials[number]}
		if number < len(r.trials) {
			before := r.trials[number]
			write.Guard = &Guard{LeaseEpoch: before.LeaseEpoch, State: before.State}
		}
		tx.change.Trials = append(tx.change.Trials, write)
	}
	tx.change.Pool = append(tx.change.Pool, tx.start.Entries...)
}

// addSnapshot adds the search's state once the log behind the last snapshot is
// as long as the study is large, so that its cost stays constant per event.
func (tx *transaction) addSnapshot() error {
	r := tx.session
	if tx.searched == 0 || r.method == nil || r.sinceSnapshot < max(200, len(r.trials)) {
		return nil
	}
	state, err := r.method.Snapshot()
	if err != nil {
		return err
	}
	tx.change.Snapshot = &Snapshot{Study: r.study.ID, Sequence: r.sequence + int64(len(tx.change.Events)), State: state}
	return nil
}

// abandon forgets a transaction that failed before its commit.
func (tx *transaction) abandon() {
	tx.takeBack()
	if tx.searched > 0 {
		tx.session.stale = true // the search saw an event that was never stored
	}
}

// show makes the transaction visible in memory.
func (tx *transaction) show() {
	r := tx.session
	leased := false
	for _, number := range slices.Sorted(maps.Keys(tx.trials)) {
		staged := tx.trials[number]
		leased = leased || staged.State == trial.Leased && (number >= len(r.trials) || staged.LeaseEpoch > r.trials[number].LeaseEpoch)
		if number < len(r.trials) {
			r.spending = r.spending.Replacing(r.spent(r.trials[number]), r.spent(staged))
			r.use.Replace(r.trials[number].SystemUse, staged.SystemUse)
			if undo := r.gpuUsage.Replace(r.trials[number], staged); undo != nil {
				tx.undo = append(tx.undo, undo)
			}
			if r.trials[number].State.Held() {
				r.held--
			}
			r.trials[number] = staged
		} else {
			r.trials = append(r.trials, staged)
		}
		if staged.State.Held() {
			r.held++
		}
		r.enqueue(staged)
	}
	if tx.resting != nil {
		if r.resting == nil {
			r.resting = make(map[int]time.Time)
		}
		maps.Copy(r.resting, tx.resting)
	}
	if tx.start.Learned != nil {
		r.starts = *tx.start.Learned
	}
	if tx.regret != nil {
		r.regret = tx.regret
	}
	r.sequence += int64(len(tx.change.Events))
	r.sinceSnapshot += tx.searched
	if tx.change.Snapshot != nil {
		r.sinceSnapshot = 0
	}
	if tx.searched > 0 {
		r.waiting = false
	}
	if tx.study != nil {
		r.study = *tx.study
		if r.study.Status.Over() {
			r.method = nil
		}
	}
	if leased { // the wait of the next one begins anew
		r.able, r.overQuota = time.Time{}, false
	}
	r.noteAble(tx.now)
}
