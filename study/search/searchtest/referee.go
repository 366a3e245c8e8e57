package searchtest

import (
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
)

type state int

const (
	out state = iota
	measured
	failed
)

// watched is a trial as the referee sees it.
type watched struct {
	bracket       int // 0 unless promotion is synchronous; see book
	configuration space.Configuration
	rung          int
	state         state
	outcomes      map[int]outcome // by rung
	// reports holds what it reported on the way, by rung and epoch.
	reports map[moment]float64
}

// referee keeps the book of a game and fails the test on a foul.
type referee struct {
	*rapid.T
	settings search.Settings
	// ends says that the method may run out of configurations before the study
	// runs out of trials.
	ends     bool
	trials   []watched
	brackets []book
	// repeats are numbered behind the trials; see repeat.
	repeats []repeated
	// queue has what was enqueued and not created yet.
	queue []wish
	// retryable has the failed trials that nobody wants tried again yet.
	retryable []int
	// exhausted is set when the method showed by what it did that it has no
	// configuration before the next outcome.
	exhausted bool
	finished  bool
	informed  bool // it was told of results of elsewhere
}

// wish is a configuration that was enqueued, of a failed trial where it is tried again.
type wish struct {
	space.Configuration
	retryOf *int
}

func newReferee(t *rapid.T, settings search.Settings, ends bool) *referee {
	return &referee{T: t, settings: settings, ends: ends}
}

func (r *referee) top() int { return len(r.settings.Rungs) - 1 }

// out lists the trials that are with a worker.
func (r *referee) out() []int {
	var numbers []int
	for number := range len(r.trials) + len(r.repeats) {
		if r.at(number).state == out {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// at is the trial or the repeat with the number.
func (r *referee) at(number int) *watched {
	if number < len(r.trials) {
		return &r.trials[number]
	}
	return &r.repeats[number-len(r.trials)].watched
}

func (r *referee) observe(e search.Event) {
	t := r.at(e.Trial)
	r.exhausted = false
	t.outcomes[t.rung] = r.outcomeOf(e)
	t.state = measured
	if e.Kind == search.Failed {
		t.state = failed
		if e.Trial < len(r.trials) {
			r.retryable = append(r.retryable, e.Trial)
			slices.Sort(r.retryable)
		}
	}
}

// scoreOf is what was reported, larger is better. Trials are stopped early by
// one objective only.
func (r *referee) scoreOf(e search.Event) float64 {
	score := float64(e.Values[0])
	if !r.settings.Maximize[0] {
		score = -score
	}
	if math.IsNaN(score) {
		return math.Inf(-1)
	}
	return score
}

func (r *referee) judge(a search.Action) {
	if r.finished && a.Kind != search.Finish {
		r.Fatalf("%s after finish", a.Kind)
	}
	if a.Reason == "" {
		r.Fatalf("%s has no reason", a.Kind)
	}
	switch a.Kind {
	case search.Create:
		if a.RepeatOf != nil {
			r.repeat(a)
			return
		}
		r.create(a)
	case search.Promote:
		r.promote(a)
	case search.Wait:
		if len(r.out()) == 0 {
			r.Fatal("waits though no trial is out: a dead-lock")
		}
		r.exhaust(a)
		r.nothingEarned(a)
		r.nothingOwed(a)
	case search.Finish:
		r.finish(a)
	default:
		r.Fatalf("unknown action %q", a.Kind)
	}
}

func (r *referee) create(a search.Action) {
	if a.Trial != len(r.trials) {
		r.Fatalf("created trial %d after %d others", a.Trial, len(r.trials))
	}
	if len(r.repeats) > 0 || a.Origin == "repeat" {
		r.Fatalf("created trial %d after %d repeats, of origin %s", a.Trial, len(r.repeats), a.Origin)
	}
	if r.settings.MaxTrials > 0 && a.Trial >= r.settings.MaxTrials {
		r.Fatalf("created trial %d of at most %d", a.Trial, r.settings.MaxTrials)
	}
	if b := r.settings.Brackets; a.Rung < 0 || a.Rung > r.top() || b > 0 && a.Rung >= b {
		r.Fatalf("created at rung %d of %d with %d brackets", a.Rung, r.top()+1, b)
	}
	if r.exhausted {
		r.Fatalf("created trial %d after it had none, and nothing happened since", a.Trial)
	}
	if faults := r.settings.Space.Check(a.Configuration); len(faults) > 0 {
		r.Fatalf("created %v: %v", a.Configuration, faults)
	}
	if a.Origin == "" {
		r.Fatal("created without an origin")
	}
	r.dequeue(a)
	r.nothingEarned(a)
	r.trials = append(r.trials, watched{configuration: a.Configuration, bracket: r.bracketOf(a), rung: a.Rung, outcomes: map[int]outcome{}, reports: map[moment]float64{}})
}

// full reports whether the trials that are created and enqueued are all there
// can be: there are no more once the best are trained again.
func (r *referee) full() bool {
	return len(r.repeats) > 0 || r.settings.MaxTrials > 0 && len(r.trials)+len(r.queue) >= r.settings.MaxTrials
}

func (r *referee) enqueue(given wish) {
	r.queue = append(r.queue, given)
	r.exhausted = false
}

// dequeue checks that what was enqueued is created first, in order, with the
// values that were asked for.
func (r *referee) dequeue(a search.Action) {
	if len(r.queue) == 0 {
		if a.Origin == "enqueued" || a.RetryOf != nil {
			r.Fatalf("created %v as enqueued, and nothing is", a.Configuration)
		}
		return
	}
	if want := r.queue[0].retryOf; show(want) != show(a.RetryOf) || want != nil && a.Configuration.Key() != r.queue[0].Key() {
		r.Fatalf("created %v again as trial %s, want %s", a.Configuration, show(a.RetryOf), show(want))
	}
	for name, v := range r.queue[0].Configuration {
		if got, there := a.Configuration[name]; there && got != v {
			r.Fatalf("created %v instead of the enqueued %v", a.Configuration, r.queue[0])
		}
	}
	if a.Origin != "enqueued" {
		r.Fatalf("created a trial of origin %s before the enqueued %v", a.Origin, r.queue[0])
	}
	r.queue = r.queue[1:]
}

// exhaust checks that there is a reason to create no trial.
func (r *referee) exhaust(a search.Action) {
	if len(r.queue) > 0 {
		r.Fatalf("%s though %v is enqueued", a.Kind, r.queue[0])
	}
	bounded := r.settings.MaxTrials > 0 && len(r.trials) >= r.settings.MaxTrials
	if !bounded && !r.ends {
		r.Fatalf("%s though %d of %d trials are created", a.Kind, len(r.trials), r.settings.MaxTrials)
	}
	r.exhausted = true
}

func (r *referee) promote(a search.Action) {
	if a.Trial < 0 || a.Trial >= len(r.trials) || len(r.repeats) > 0 {
		r.Fatalf("promoted trial %d of %d with %d repeats behind them", a.Trial, len(r.trials), len(r.repeats))
	}
	t := &r.trials[a.Trial]
	if a.Rung > r.top() || a.Rung != t.rung+1 {
		r.Fatalf("promoted trial %d from rung %d to rung %d of %d", a.Trial, t.rung, a.Rung, r.top()+1)
	}
	if r.settings.Promotion == budget.NoPromotion {
		r.Fatalf("promoted trial %d, though there is no promotion", a.Trial)
	}
	if t.state != measured || t.outcomes[t.rung].lost {
		r.Fatalf("promoted trial %d, which has no result at rung %d", a.Trial, t.rung)
	}
	better, _, n := r.rank(a.Trial, t.rung)
	if better >= r.quota(t.bracket, t.rung, n) || !r.complete(t.bracket, t.rung, true) {
		r.final(a)
	}
	r.advance(a)
	t.rung, t.state = a.Rung, out
}

// quota is how many of the rung go up when n have an outcome there.
func (r *referee) quota(bracket, rung, n int) int {
	if r.settings.Promotion == budget.Synchronous {
		return r.brackets[bracket].quota(rung, r.settings.Eta)
	}
	return n / r.settings.Eta
}

// rank counts the other trials at the rung that are better, and those that are
// at least as good, and all trials that have an outcome there. Trials of
// different brackets are not compared when promotion is synchronous.
func (r *referee) rank(number, rung int) (better, notWorse, n int) {
	bracket := r.trials[number].bracket
	levels := r.levels(rung, func(t watched) bool { return t.bracket == bracket })
	for other, level := range levels {
		if other != number && level <= levels[number] {
			notWorse++
		}
		if level < levels[number] {
			better++
		}
	}
	return better, notWorse, len(levels)
}

// candidates lists the trials that could go up from the rung.
func (r *referee) candidates(rung int) []int {
	var numbers []int
	for number, t := range r.trials {
		if t.state == measured && t.rung == rung && !t.outcomes[rung].lost {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// topReached reports whether a trial has a value at the top rung.
func (r *referee) topReached() bool {
	for _, t := range r.trials {
		if o, there := t.outcomes[r.top()]; there && !o.lost {
			return true
		}
	}
	return false
}

// final allows a promotion that was not earned: only at the end, only without
// a result at the top, and only for the best candidate of the highest rung.
func (r *referee) final(a search.Action) {
	if n := len(r.out()); n > 0 || r.topReached() {
		r.Fatalf("promoted trial %d to rung %d: it is not among the best of its rung, with %d trials out and a result at the top: %t",
			a.Trial, a.Rung, n, r.topReached())
	}
	for rung := r.top() - 1; rung >= a.Rung-1; rung-- {
		levels := r.levels(rung, func(watched) bool { return true })
		for _, other := range r.candidates(rung) {
			if rung >= a.Rung || levels[other] < levels[a.Trial] {
				r.Fatalf("the final promotion took trial %d before trial %d", a.Trial, other)
			}
		}
	}
}

// nothingEarned checks that no trial was passed over which has surely earned
// its promotion.
func (r *referee) nothingEarned(a search.Action) {
	for rung := range r.top() {
		for _, number := range r.candidates(rung) {
			bracket := r.trials[number].bracket
			_, notWorse, n := r.rank(number, rung)
			if notWorse < r.quota(bracket, rung, n) && r.complete(bracket, rung, a.Kind != search.Create) {
				r.Fatalf("%s though trial %d is number %d of %d at rung %d", a.Kind, number, notWorse+1, n, rung)
			}
		}
	}
}

func (r *referee) finish(a search.Action) {
	if n := len(r.out()); n > 0 {
		r.Fatalf("finished with %d trials out", n)
	}
	r.searched(a)
	r.nothingOwed(a)
	r.finished = true
}

// searched checks that the search has nothing left to do with the trials it made.
func (r *referee) searched(a search.Action) {
	for number, t := range r.trials {
		if t.state == out {
			r.Fatalf("%s though trial %d is out", a.Kind, number)
		}
	}
	r.exhaust(a)
	r.nothingEarned(a)
	if !r.topReached() {
		for rung := range r.top() {
			if left := r.candidates(rung); len(left) > 0 {
				r.Fatalf("%s without a result at the top, though trial %d could go up", a.Kind, left[0])
			}
		}
	}
}
