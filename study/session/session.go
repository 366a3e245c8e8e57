// Package session holds one study in memory: it loads the study from the store, replays
// its search, and decides what becomes of its trials. What a use case decides it gathers in
// a [Transaction], which is written as one change. The package knows the store's contract,
// and neither other studies nor who holds what of the pool.
package session

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/starts"
	"github.com/tandem-tune/tandem/study/tariff"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// Options are what sessions take from their surroundings.
type Options struct {
	Now    func() time.Time
	Store  journal.Store
	Logger *slog.Logger
	GPUs   GPUs
	Tariff *tariff.Tariff
	// Loaded is called with a session that was loaded from the store, while it is locked.
	Loaded func(*Session)
}

// Session is a study in memory. Its lock guards all of it. When a write is refused, it
// is marked stale and loaded again.
type Session struct {
	sync.Mutex
	State

	options *Options
	Stale   bool
	// newest is the outcome of the last change that is shown here; nil when all
	// of it was read from the store. loads counts how often that happened.
	newest *journal.Outcome
	Loads  int
	// Used is when somebody last asked for more than a summary. summary is the
	// study in short, kept when it is over and the rest is left to the store.
	Used          time.Time
	summary       *protocol.StudyView
	sinceSnapshot int
	// durable is what resting, waiting and able were behind the newest durable change.
	durable unstored
}

// New returns the session of a stored study, which is to be loaded.
func New(options *Options, stored journal.Study) *Session {
	r := &Session{options: options, Stale: true, State: State{ID: stored.ID, Study: stored.InForce()}}
	r.owner.Store(stored.Owner)
	return r
}

// Created returns that of a new study with its search, before it is stored.
func Created(options *Options, created journal.Study, method *search.Method) *Session {
	r := New(options, created)
	r.Stale, r.Ladder, r.Method, r.use, r.asked = false, created.Definition.Budget.Ladder(), method, ranking.Use{}, created.Created
	r.noteAble(created.Created, 0)
	return r
}

// Wait lets the lock go until the newest change shown is durable or refused.
func (r *Session) Wait() error {
	newest, loads := r.newest, r.Loads
	if newest == nil {
		return nil
	}
	r.Unlock()
	err := newest.Wait()
	r.Lock()
	if err != nil && r.Loads == loads {
		r.Stale = true // what was loaded since has the outcome of every change before
	}
	return err
}

// Answered returns what a use case that writes nothing answers, once all that
// the answer is based on is durable.
func Answered[T any](r *Session, answer T, err error) (T, error) {
	if refused := r.Wait(); refused != nil {
		var nothing T
		return nothing, problem.New(problem.Unavailable, "a change that this answer was based on was not stored (%w): ask again", refused)
	}
	return answer, err
}

// Leave lets the lock go at the end of a use case. One that panics has perhaps
// changed what is here without the store, or shown what was never handed to it:
// then all of it is loaded again. Leases that nobody counts come back with it.
func (r *Session) Leave() {
	cause := recover()
	if cause != nil {
		r.Stale = true
	}
	r.Unlock()
	if cause != nil {
		panic(cause)
	}
}

// Refusal is answered for a use case that answers with an error or nothing.
func Refusal(r *Session, err error) error {
	_, err = Answered(r, struct{}{}, err)
	return err
}

// Refresh loads the session from the store if it is stale. It is locked.
func (r *Session) Refresh(ctx context.Context) error {
	for loads := r.Loads; r.Stale && r.newest != nil && r.Loads == loads; {
		newest := r.newest
		_ = r.Wait() // whatever the outcome, it is in what is loaded then
		if r.newest == newest {
			break
		}
	}
	if !r.Stale {
		return nil
	}
	stored, err := r.options.Store.Study(ctx, r.Study.ID)
	if err != nil {
		return err
	}
	trials, err := r.options.Store.Trials(ctx, stored.ID)
	if err != nil {
		return err
	}
	r.Study, r.Trials, r.Queue = stored.InForce(), trials, nil
	r.owner.Store(stored.Owner)
	r.Ladder = stored.Definition.Budget.Ladder()
	r.Method, r.Broken = nil, nil
	if r.durable.at == 0 { // nothing has changed since it was first loaded
		r.durable.starts = starts.Of(trials)
	}
	r.count()
	r.Resting, r.waiting = maps.Clone(r.durable.resting), r.durable.waiting
	r.able, r.overQuota, r.Starts = slices.Clone(r.durable.able), r.durable.overQuota, r.durable.starts
	over := stored.Status.Over()
	if err := r.replay(ctx, stored.Definition, !over || stored.Definition.KnewBefore()); err != nil {
		return err
	}
	if over {
		trust(&r.State)
		r.Method, r.Broken = nil, nil
	}
	if r.Broken != nil {
		r.options.Logger.Error("a study cannot go on", "study", stored.Definition.Name, "error", r.Broken)
	}
	r.noteAble(r.options.Now(), 0)
	r.options.Loaded(r)
	r.Stale, r.newest, r.summary = false, nil, nil
	r.Loads++
	return nil
}

// evictAfter is how long a study that is over stays in memory unused.
const evictAfter = 10 * time.Minute

// Evict drops from memory what the store has too, of a study that is over and
// that nobody asked for lately; only what lists show is kept. The next who asks
// for more has it loaded again.
func (r *Session) Evict(now time.Time) {
	if r.Stale || !r.Study.Status.Over() || now.Sub(r.Used) < evictAfter {
		return
	}
	view := r.View(now)
	r.summary = &view
	r.Trials, r.Queue, r.Method, r.Stale = nil, nil, nil, true
}

// NoteWaiting notes that the search, as it is shown, has nothing until the next
// observation.
func (r *Session) NoteWaiting(now time.Time) {
	r.waiting = true
	r.noteAble(now, 0)
	r.noted()
}

// noted notes what became known of the study without a change, unless one is on its
// way: that one notes it when it is durable.
func (r *Session) noted() {
	if r.durable.at == r.Sequence {
		r.durable = r.shown()
	}
}

// endures notes that a change is durable, behind which it was like this. Of several
// changes that wait together the last one may hear of it first.
func (r *Session) endures(shown unstored) {
	if shown.at >= r.durable.at {
		r.durable = shown
	}
}

// Costs is the study's cost model, made from its newest trials when somebody first asks.
func (r *Session) Costs(ctx context.Context) *costmodel.Model {
	if r.costs != nil {
		return r.costs
	}
	read := func(id trial.ID) ([]trial.Report, error) { return r.options.Store.Reports(ctx, id) }
	earlier, failed := r.earlierCosts(ctx, read)
	made, err := costmodel.Recall(r.Study.Definition.Space, earlier, r.Trials, read)
	if err = cmp.Or(err, failed); err != nil { // it is tried again the next time
		r.options.Logger.Warn("placement goes on without what was stored", "study", r.Study.Definition.Name, "error", err)
		return made
	}
	r.costs = made
	return made
}

// mostEarlier is how many studies of the same script are looked at for one that trained.
const mostEarlier = 3

// earlierCosts is the cost model of the newest other study of the same script that has
// trained, as the ground truth tells scripts apart; nil where there is none.
func (r *Session) earlierCosts(ctx context.Context, read func(trial.ID) ([]trial.Report, error)) (*costmodel.Model, error) {
	script := func(of journal.Study) string {
		return groundtruth.ScriptKey(of.Owner, of.Definition.Command, of.Definition.Directory)
	}
	studies, err := r.options.Store.Studies(ctx)
	left := mostEarlier
	for _, one := range studies {
		if one.ID == r.ID || left == 0 || len(one.Definition.Command) == 0 || script(one) != script(r.Study) {
			continue
		}
		left--
		trials, err := r.options.Store.Trials(ctx, one.ID)
		if err != nil {
			return nil, err
		}
		if made, err := costmodel.Recall(r.Study.Definition.Space, nil, trials, read); err != nil || made.Knows() {
			return made, err
		}
	}
	return nil, err
}

// Wanting reports whether the study has work for workers and may have one more of
// them.
func (r *Session) Wanting() bool {
	return !r.Stale && r.Broken == nil && len(r.Study.Definition.Command) > 0 &&
		r.Study.Status == protocol.StudyRunning && r.mayStart() && !r.Full(0)
}

// ResumeTime lets a running study's time go on from the last moment it is known to
// have been served: its newest event, or the end of the server before.
func (r *Session) ResumeTime(ctx context.Context) error {
	r.Lock()
	defer r.Unlock()
	r.asked = r.options.Now()
	if r.Study.Since == nil {
		return nil
	}
	served := *r.Study.Since
	newest, err := r.options.Store.Events(ctx, r.Study.ID, r.Sequence-1, 1)
	if err != nil {
		return err
	}
	if len(newest) > 0 && newest[0].At.After(served) {
		served = newest[0].At
	}
	return r.restamp(ctx, served, nil)
}

// restamp counts the study's time up to the moment it was served, and from now
// on again if workers hold trials of it; with it goes a snapshot, if there is one.
func (r *Session) restamp(ctx context.Context, served time.Time, snapshot *journal.Snapshot) error {
	stamped := r.Study.Counting(r.Held > 0, served, r.options.Now())
	if err := r.options.Store.Apply(ctx, journal.Change{Behind: r.Position(), Update: &stamped, Snapshot: snapshot}); err != nil {
		return err
	}
	r.Study = stamped
	return nil
}

// Close stores a snapshot of the search, and the study's time so far. It is locked.
func (r *Session) Close(ctx context.Context) error {
	if r.Stale || r.Method == nil {
		return nil
	}
	var snapshot *journal.Snapshot
	if r.sinceSnapshot > 0 {
		state, err := r.Method.Snapshot()
		if err != nil {
			return err
		}
		snapshot = &journal.Snapshot{Study: r.Study.ID, Sequence: r.Sequence, State: state}
		r.sinceSnapshot = 0
	}
	if r.Study.Since != nil {
		return r.restamp(ctx, r.options.Now(), snapshot)
	}
	if snapshot == nil {
		return nil
	}
	return r.options.Store.Apply(ctx, journal.Change{Behind: r.Position(), Snapshot: snapshot})
}

// Summary is the study as lists show it. It does not count as a use, so a page
// that lists studies keeps none of them in memory. It takes the lock.
func (r *Session) Summary(ctx context.Context) (protocol.StudyView, error) {
	r.Lock()
	defer r.Unlock()
	for {
		if r.Stale && r.summary != nil {
			return *r.summary, nil
		}
		if err := r.Refresh(ctx); err != nil {
			return protocol.StudyView{}, err
		}
		now := r.options.Now()
		view := r.View(now)
		if r.Wait() == nil {
			r.Evict(now)
			return view, nil
		}
	}
}
