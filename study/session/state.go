package session

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/spending"
	"github.com/tandem-tune/tandem/study/starts"
	"github.com/tandem-tune/tandem/study/tuning"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// State is what a study is in memory: what the store has or is about to have, plus the
// search.
type State struct {
	ID    string       // of the study; it never changes
	owner atomic.Value // see Owner

	Study    journal.Study
	Ladder   []budget.Rung
	Trials   []trial.Trial     // by number
	Queue    []int             // numbers of queued trials, the first to go first
	Resting  map[int]time.Time // until when some of them are not given to anybody
	Starts   starts.Known      // what failed before it reported
	Sequence int64             // of the last event
	spending spending.Spending // of all trials
	Held     int               // how many trials workers have
	use      ranking.Use       // of system configurations, by all trials

	// Resident is the most memory a trial was seen to use since it was loaded.
	Resident int64
	gpuUsage gpushare.Usage // of GPUs, by all trials
	// sought is when a machine was last looked for that could be cleared for a trial.
	sought time.Time

	ready *ranking.Goals // see goals

	// costs estimates what epochs take where; nil until somebody asks.
	costs *costmodel.Model

	trusts []search.Trust // as the search last said

	Method *search.Method // nil when the study is over or the search broken
	// Broken is why the search cannot be continued by this program. The study
	// then hands out nothing, but takes reports, and can be stopped or deleted.
	Broken error
	// waiting is set when the search has nothing until the next observation.
	waiting bool
	// able is since when each trial that could start by the study's own limits could have,
	// the first to go first. overQuota says that its owner's quota has kept them back since.
	able      []time.Time
	overQuota bool
	// Askers are the workers that have asked for trials of this study by its name, asked
	// is when one last did.
	Askers map[string]bool
	asked  time.Time
}

// GPUs estimates what trainings should use of GPUs.
type GPUs interface {
	Expect(gpushare.Study, *trial.Trial) gpushare.Estimate
}

// enqueue keeps the queue in step with a trial's state.
func (r *State) enqueue(t trial.Trial) {
	if t.State != trial.Queued {
		delete(r.Resting, t.Number)
	}
	at := slices.Index(r.Queue, t.Number)
	switch {
	case t.State == trial.Queued && at < 0:
		r.Queue = append(r.Queue, t.Number)
	case t.State != trial.Queued && at >= 0:
		r.Queue = slices.Delete(r.Queue, at, at+1)
	}
}

// Owner is whose the study is, as far as that is durable; empty: the administrators'. It
// needs no lock.
func (r *State) Owner() string {
	owner, _ := r.owner.Load().(string)
	return owner
}

// Position is where the study's log ends.
func (r *State) Position() *journal.Position {
	return &journal.Position{Study: r.Study.ID, Sequence: r.Sequence}
}

// Tuning is the study as what chooses system configurations sees it.
func (r *State) Tuning() tuning.Study {
	return tuning.Study{ID: r.Study.ID, Owner: r.Study.Owner, Definition: &r.Study.Definition, Trials: r.Trials}
}

// count sums up trials that were loaded.
func (r *State) count() {
	r.spending, r.Held, r.use = spending.Spending{}, 0, ranking.Use{}
	r.gpuUsage.Reload(r.Trials)
	for _, t := range r.Trials {
		r.spending = r.spending.Plus(spending.Of(r.Ladder, t))
		r.use.Replace(nil, t.SystemUse)
		if t.State.Held() {
			r.Held++
		}
		if t.State == trial.Queued {
			r.Queue = append(r.Queue, t.Number)
		}
	}
}

func (r *State) Copy() journal.View {
	return journal.View{Study: r.Study, Ladder: r.Ladder, Trials: slices.Clone(r.Trials), Sequence: r.Sequence}
}

// Trial returns one of the study's trials; the error is not_found.
func (r *State) Trial(number int) (trial.Trial, error) {
	return journal.View{Study: r.Study, Trials: r.Trials}.Trial(number)
}

// Trains reports whether workers may train the study's trials now.
func (r *State) Trains() bool {
	return r.Study.Status == protocol.StudyRunning && len(r.Study.Definition.Command) > 0
}

// Startable is how many trials the search may have in addition to the queued ones: it
// is not asked before somebody gets what it says.
func (r *State) Startable() int {
	if r.waiting || r.Method == nil {
		return 0
	}
	left := maxStartable
	if most := r.Study.Definition.Stop.Trials; most > 0 {
		left = max(1, most-len(r.Trials)) // at the end it may have one to promote
	}
	if parallel := r.Study.Definition.Parallel; parallel > 0 {
		left = min(left, max(0, parallel-r.Held))
	}
	return left
}

// maxStartable is how many new trials a study without a bound is taken to have.
const maxStartable = 1 << 20

// Observe learns from epochs that are durable, where somebody has asked before.
func (r *State) Observe(t trial.Trial, accepted []trial.Report) {
	if r.costs == nil {
		return
	}
	for _, report := range accepted {
		r.costs.Learn(t, report)
	}
}

// Idle reports that the study surely has nothing to lease now.
func (r *State) Idle() bool { return r.waiting && len(r.Queue) == 0 }

// Full reports whether the study has as many trials at once as it wants, besides
// so many that move and are about to go on.
func (r *State) Full(moving int) bool {
	most := r.Study.Definition.Parallel
	return most > 0 && r.Held+moving >= most
}

func (r *State) Overdue(now time.Time) bool {
	limit := r.Study.Definition.Stop.Seconds
	return limit > 0 && r.Study.Status == protocol.StudyRunning && r.Study.ElapsedAt(now).Seconds() >= limit
}

// mayStart reports whether the study may have a trial to start: one is queued,
// more may be made, or one was measured and may go up. The search is asked only
// when a worker is free, so that a study whose last trials run has not heard yet
// that this was all.
func (r *State) mayStart() bool {
	if r.Idle() {
		return false
	}
	most := r.Study.Definition.Stop.Trials
	if len(r.Queue) > 0 || most == 0 || len(r.Trials) < most || r.Study.Definition.Search.Repeats != nil {
		return true
	}
	return slices.ContainsFunc(r.Trials, func(t trial.Trial) bool { return t.State == trial.Paused })
}

// NoteAsker notes that the worker asks for trials of this very study.
func (r *State) NoteAsker(worker string, now time.Time) {
	if r.Askers == nil {
		r.Askers = make(map[string]bool)
	}
	r.Askers[worker], r.asked = true, now
}

// AskedLately reports whether the study was begun, resumed or asked for not long ago: who
// did so may be about to ask, or to come back after the server was restarted.
func (r *State) AskedLately(now time.Time, term time.Duration) bool {
	return r.Study.Since != nil && now.Sub(*r.Study.Since) < term || now.Sub(r.asked) < term
}

// RestReason is why a study without a command is paused that nobody works on. It is
// stored: by it such a study is told from one that a user has paused.
const RestReason = "no process asks for its trials; it goes on when one does"

// AtRest reports whether the study waits for somebody to ask for its trials.
func AtRest(s journal.Study) bool {
	return s.Status == protocol.StudyPaused && s.Reason == RestReason
}

// Directive is what a holder of the trial has to do now.
func (r *State) Directive(t trial.Trial) protocol.Directive {
	switch {
	case t.State.Terminal():
		return protocol.Directive{Action: protocol.Stop, Reason: t.Reason}
	case t.MeasuredAt(t.Rung):
		return protocol.Directive{Action: protocol.Finish, Reason: "the budget of this rung is reached"}
	case r.Study.Status == protocol.StudyPaused:
		return protocol.Directive{Action: protocol.Pause, Reason: "the study is paused"}
	case t.Setting != nil:
		return protocol.Directive{Action: protocol.Continue, System: t.Setting.Configuration}
	default:
		return protocol.Directive{Action: protocol.Continue}
	}
}

// goals are what the study wants of a trial, made ready once.
func (r *State) goals() (*ranking.Goals, error) {
	if r.ready == nil {
		ready, err := ranking.GoalsOf(r.Study.Definition)
		if err != nil {
			return nil, err
		}
		r.ready = ready
	}
	return r.ready, nil
}

// toReport are the metrics that every report at the end of a budget must have,
// in the order of the objectives, and then of the constraints. Of a study whose
// formulas this program cannot read there are none; its reports are refused
// with the reason.
func (r *State) toReport() []string {
	goals, err := r.goals()
	if err != nil {
		return r.Study.Definition.NeedsReported(nil)
	}
	return r.Study.Definition.NeedsReported(goals.Names())
}

// rests reports whether the trial is not given to anybody for now.
func (r *State) rests(number int, now time.Time) bool {
	until, resting := r.Resting[number]
	return resting && now.Before(until)
}

// couldStart is how many more trials could start by the study's own limits, given places:
// as many as its parallel leaves room for. Without one that is the next: the search makes
// each as it is asked for, and would have any number.
func (r *State) couldStart(now time.Time) int {
	if r.Study.Status != protocol.StudyRunning || r.Full(0) {
		return 0
	}
	most := max(1, r.Study.Definition.Parallel-r.Held)
	could := r.Startable()
	for at := 0; at < len(r.Queue) && could < most; at++ {
		if !r.rests(r.Queue[at], now) {
			could++
		}
	}
	return min(could, most)
}

// noteAble notes since when that is so, at each moment at which it may have changed, and
// that so many have started: those that could have for the longest.
func (r *State) noteAble(now time.Time, started int) {
	r.able = r.able[min(started, len(r.able)):]
	if started > 0 && r.overQuota {
		r.able, r.overQuota = nil, false
	}
	could := r.couldStart(now)
	for len(r.able) < could {
		r.able = append(r.able, now)
	}
	r.able = r.able[:could]
	r.overQuota = r.overQuota && could > 0
}

// Able is since when the next trial could have started by the study's own limits, given a
// place; zero: none can.
func (r *State) Able() (since time.Time) {
	if len(r.able) > 0 {
		since = r.able[0]
	}
	return since
}

// Waited is how long a trial that starts now had no place: from when it could have
// started by the study's own limits. What its owner's quota kept back waited for none.
func (r *State) Waited(now time.Time) time.Duration {
	if r.Able().IsZero() || r.overQuota {
		return 0
	}
	return now.Sub(r.Able())
}

// unstored is what is known of a study beside what is stored of it: what a change has
// done to it is taken back when the change is refused.
type unstored struct {
	resting   map[int]time.Time
	able      []time.Time
	overQuota bool
	waiting   bool
	starts    starts.Known
	// at is the number of the newest event then.
	at int64
}

func (r *State) shown() unstored {
	return unstored{resting: maps.Clone(r.Resting), able: slices.Clone(r.able), overQuota: r.overQuota, waiting: r.waiting, starts: r.Starts, at: r.Sequence}
}

// View is the study as clients see it at the time.
func (r *State) View(now time.Time) protocol.StudyView { return r.viewOf(r.Study, r.Trials, now) }

// View is the study as it will be once the transaction is committed.
func (tx *Transaction) View() protocol.StudyView {
	return tx.Session.viewOf(tx.study(), slices.Collect(tx.all()), tx.Now)
}

func (r *State) viewOf(study journal.Study, trials []trial.Trial, now time.Time) protocol.StudyView {
	reason := study.Reason
	if r.Broken != nil && !study.Status.Over() {
		reason = r.Broken.Error()
	}
	return protocol.StudyView{
		ID: study.ID, Name: study.Definition.Name, Owner: cmp.Or(study.Owner, access.Administrators), Status: study.Status, Reason: reason,
		Created: study.Created, Finished: study.Finished, Definition: study.Definition,
		Rungs: r.Ladder, Progress: r.Progress(study, trials, now), Annotation: study.Annotation, Extended: study.Stop != nil, Set: study.SetRequest,
		Sources: trust(r),
	}
}

// trust is how far the search trusts what was known before it began, or did at its end.
func trust(r *State) []search.Trust {
	if r.Method != nil {
		r.trusts = r.Method.Trusts()
	}
	return r.trusts
}

func (r *State) Progress(study journal.Study, trials []trial.Trial, now time.Time) protocol.Progress {
	p := ranking.Progress{Study: study, Trials: trials, Ladder: r.Ladder, Spending: r.spending, Use: r.use, Now: now}.Show()
	if !study.Status.Over() {
		p.Enqueued = r.Enqueued()
	}
	return p
}

// Enqueued is how many configurations the search is to try before anything of its own.
func (r *State) Enqueued() int {
	if r.Method == nil {
		return 0
	}
	return r.Method.Waiting()
}
