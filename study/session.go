package study

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/spending"
	"github.com/tandem-tune/tandem/study/starts"
	"github.com/tandem-tune/tandem/study/tuning"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// session is a study's state in memory: what the store has or is about to
// have, plus the search. When a write is refused, it is marked stale and loaded
// again.
type session struct {
	id, owner string // of the study; they never change
	mutex     sync.Mutex
	stale     bool
	// newest is the outcome of the last change that is shown here; nil when all
	// of it was read from the store. loads counts how often that happened.
	newest *Outcome
	loads  int
	// used is when somebody last asked for more than a summary. summary is the
	// study in short, kept when it is over and the rest is left to the store.
	used    time.Time
	summary *protocol.StudyView

	study    Study
	ladder   []budget.Rung
	trials   []trial.Trial     // by number
	queue    []int             // numbers of queued trials, the first to go first
	resting  map[int]time.Time // until when some of them are not given to anybody
	starts   starts.Known      // what failed before it reported
	sequence int64             // of the last event
	spending spending.Spending // of all trials
	held     int               // how many trials workers have
	use      ranking.Use       // of system configurations, by all trials

	// resident is the most memory a trial was seen to use since it was loaded.
	resident int64
	gpuUsage gpushare.Usage // of GPUs, by all trials
	// sought is when a machine was last looked for that could be cleared for a trial.
	sought time.Time

	ready *ranking.Goals // see goals

	// costs estimates what epochs take where; nil until somebody asks.
	costs *costmodel.Model

	method search.Method // nil when the study is over or the search broken
	// broken is why the search cannot be continued by this program. The study
	// then hands out nothing, but takes reports, and can be stopped or deleted.
	broken error
	// regret is the newest bound of a study with stop.regret; nil before.
	regret        *protocol.RegretBound
	sinceSnapshot int
	// waiting is set when the search has nothing until the next observation.
	waiting bool
	// able is since when one more trial could have started by the study's own limits;
	// zero: none can. overQuota says that its owner's quota has kept that back since.
	able      time.Time
	overQuota bool
	// durable is what resting, waiting and able were behind the newest durable change.
	durable unstored
	// askers are the workers that have asked for trials of this study by its name, asked
	// is when one last did.
	askers map[string]bool
	asked  time.Time
}

// enqueue keeps the queue in step with a trial's state.
func (r *session) enqueue(t trial.Trial) {
	if t.State != trial.Queued {
		delete(r.resting, t.Number)
	}
	at := slices.Index(r.queue, t.Number)
	switch {
	case t.State == trial.Queued && at < 0:
		r.queue = append(r.queue, t.Number)
	case t.State != trial.Queued && at >= 0:
		r.queue = slices.Delete(r.queue, at, at+1)
	}
}

// tuned is the study as what chooses system configurations sees it.
func (r *session) tuned() tuning.Study {
	return tuning.Study{ID: r.study.ID, Definition: &r.study.Definition}
}

// Decision is one step of a study's search, as its log keeps it.
type Decision struct {
	Event   search.Event    `json:"event"`
	Actions []search.Action `json:"actions,omitempty"`
}

// eventPage is how many events are read at once while a search is replayed.
const eventPage = 5000

// position is where the study's log ends.
func (r *session) position() *Position { return &Position{Study: r.study.ID, Sequence: r.sequence} }

// wait lets the lock go until the newest change shown is durable or refused.
func (r *session) wait() error {
	newest, loads := r.newest, r.loads
	if newest == nil {
		return nil
	}
	r.mutex.Unlock()
	err := newest.Wait()
	r.mutex.Lock()
	if err != nil && r.loads == loads {
		r.stale = true // what was loaded since has the outcome of every change before
	}
	return err
}

// answered returns what a use case that writes nothing answers, once all that
// the answer is based on is durable.
func answered[T any](r *session, answer T, err error) (T, error) {
	if refused := r.wait(); refused != nil {
		var nothing T
		return nothing, problem.New(problem.Unavailable, "a change that this answer was based on was not stored (%w): ask again", refused)
	}
	return answer, err
}

// leave lets the lock go at the end of a use case. One that panics has perhaps
// changed what is here without the store, or shown what was never handed to it:
// then all of it is loaded again. Leases that nobody counts come back with it.
func (r *session) leave() {
	cause := recover()
	if cause != nil {
		r.stale = true
	}
	r.mutex.Unlock()
	if cause != nil {
		panic(cause)
	}
}

// refusal is answered for a use case that answers with an error or nothing.
func refusal(r *session, err error) error {
	_, err = answered(r, struct{}{}, err)
	return err
}

// look returns what a query sees in the study, once all of that is durable.
func look[T any](ctx context.Context, s *Service, ref string, see func(*session) (T, error)) (T, error) {
	for {
		var nothing T
		r, err := s.locked(ctx, ref)
		if err != nil {
			return nothing, err
		}
		seen, err := see(r)
		refused := r.wait()
		r.mutex.Unlock()
		if refused == nil {
			return seen, err
		}
	}
}

// refresh loads the session from the store if it is stale.
func (s *Service) refresh(ctx context.Context, r *session) error {
	for loads := r.loads; r.stale && r.newest != nil && r.loads == loads; {
		newest := r.newest
		_ = r.wait() // whatever the outcome, it is in what is loaded then
		if r.newest == newest {
			break
		}
	}
	if !r.stale {
		return nil
	}
	stored, err := s.store.Study(ctx, r.study.ID)
	if problem.Is(err, problem.NotFound) {
		s.forget(r)
	}
	if err != nil {
		return err
	}
	trials, err := s.store.Trials(ctx, stored.ID)
	if err != nil {
		return err
	}
	r.study, r.trials, r.queue = stored, trials, nil
	r.ladder = stored.Definition.Budget.Ladder()
	r.method, r.broken = nil, nil
	r.spending, r.held, r.use = spending.Spending{}, 0, ranking.Use{}
	if r.durable.at == 0 { // nothing has changed since it was first loaded
		r.durable.starts = starts.Of(trials)
	}
	r.gpuUsage.Reload(trials)
	for _, t := range trials {
		r.spending = r.spending.Plus(r.spent(t))
		r.use.Replace(nil, t.SystemUse)
		if t.State.Held() {
			r.held++
		}
		if t.State == trial.Queued {
			r.queue = append(r.queue, t.Number)
		}
	}
	r.regret = regretOf(stored.Definition, trials)
	r.resting, r.waiting = maps.Clone(r.durable.resting), r.durable.waiting
	r.able, r.overQuota, r.starts = r.durable.able, r.durable.overQuota, r.durable.starts
	if err := s.replay(ctx, r); err != nil {
		return err
	}
	if r.broken != nil {
		s.options.Logger.Error("a study cannot go on", "study", stored.Definition.Name, "error", r.broken)
	}
	r.noteAble(s.options.Now())
	s.regrant(r)
	r.stale, r.newest, r.summary = false, nil, nil
	r.loads++
	return nil
}

// forget drops a session whose study is not in the store any more.
func (s *Service) forget(r *session) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.sessions[r.study.ID] == r {
		delete(s.sessions, r.study.ID)
	}
}

// regrant gives the leases found in the store a whole term, unless they are
// known already.
func (s *Service) regrant(r *session) {
	now, leases := s.options.Now(), []pool.Lease(nil)
	for _, t := range r.trials {
		if t.State.Held() {
			granted := now
			if t.Started != nil {
				granted = *t.Started
			}
			leases = append(leases, r.leaseRecord(t, r.takes(t, 0, 0), granted))
		}
	}
	if len(leases) > 0 {
		s.allocator.Regrant(leases)
	}
}

// replay rebuilds the search from its last snapshot and the log behind it, and
// checks that it decides today what it decided then; else the search is broken.
// The error is the store's.
func (s *Service) replay(ctx context.Context, r *session) error {
	snapshot, err := s.store.Snapshot(ctx, r.study.ID)
	if err != nil && !problem.Is(err, problem.NotFound) {
		return err
	}
	if !r.study.Status.Over() {
		r.method, r.broken = restored(r.study.Definition, snapshot.State)
	}
	r.sequence, r.sinceSnapshot = snapshot.Sequence, 0
	for {
		events, err := s.store.Events(ctx, r.study.ID, r.sequence, eventPage)
		if err != nil {
			return err
		}
		for _, event := range events {
			r.sequence = event.Sequence
			if event.Kind == Searched && r.method != nil {
				if err := replayDecision(r.method, event); err != nil {
					r.method, r.broken = nil, err
				}
				r.sinceSnapshot++
			}
		}
		if len(events) < eventPage {
			return nil
		}
	}
}

// restored is a study's search in the state of a snapshot, if there is one.
func restored(def definition.Definition, state json.RawMessage) (search.Method, error) {
	method, err := search.New(def.SearchSettings())
	if err == nil && len(state) > 0 {
		err = method.Restore(state)
	}
	if err != nil {
		return nil, problem.New(problem.Unavailable,
			"the search cannot be restored (%w): continue this study with the version of tandem that wrote it", err)
	}
	return method, nil
}

// Replay puts a study's logged decisions to a new search, from the first event
// on. It returns how many came out the same, and an error at the first one that
// does not.
func Replay(def definition.Definition, events []Event) (decisions int, err error) {
	method, err := search.New(def.SearchSettings())
	if err != nil {
		return 0, err
	}
	for _, event := range events {
		if event.Kind != Searched {
			continue
		}
		if err := replayDecision(method, event); err != nil {
			return decisions, err
		}
		decisions++
	}
	return decisions, nil
}

func replayDecision(method search.Method, event Event) error {
	var decision Decision
	if err := json.Unmarshal(event.Data, &decision); err != nil {
		return fmt.Errorf("event %d: %w", event.Sequence, err)
	}
	actions, err := method.Handle(decision.Event)
	if err != nil {
		return problem.New(problem.Unavailable, "event %d: the search does not take what it took when it was logged (%w); continue this study with the version of tandem that wrote it",
			event.Sequence, err)
	}
	then, err := json.Marshal(decision.Actions)
	if err != nil {
		return err
	}
	now, err := json.Marshal(actions)
	if err != nil {
		return err
	}
	if len(actions)+len(decision.Actions) > 0 && !bytes.Equal(then, now) {
		return problem.New(problem.Unavailable,
			"event %d: the search decided %s when it was logged and %s now; continue this study with the version of tandem that wrote it",
			event.Sequence, then, now)
	}
	return nil
}

// trialSeed derives a trial's seed from the study's, so that a repeated study
// trains with the same seeds. It fits in 31 bits, which every library takes.
func trialSeed(study uint64, number int) uint64 {
	z := study + 0x9e3779b97f4a7c15*uint64(number+1) // SplitMix64 (Steele et al. 2014)
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return (z ^ (z >> 31)) & math.MaxInt32
}

func trialID(study string, number int) trial.ID {
	return trial.ID(study + "-" + strconv.Itoa(number))
}
