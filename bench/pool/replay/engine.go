package replay

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/workers/placement"
)

// happening is what an event is about. Of events at the same time those with a
// lower one come first.
type happening int

const (
	ends happening = iota
	resumes
	fails
	wakes
	dawns
	arrives
	looks
)

type event struct {
	at      float64
	what    happening
	order   int // of those pushed
	job     *Running
	version int
	place   int // of the job that arrives, or the machine that wakes
}

// agenda is what will happen, the soonest first.
type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(a[i].at, a[j].at), cmp.Compare(a[i].what, a[j].what), cmp.Compare(a[i].order, a[j].order)) < 0
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push is container/heap's.
func (a *agenda) Push(x any) { *a = append(*a, x.(event)) }

// Pop is container/heap's.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

type engine struct {
	*State
	jobs     []Job
	policy   Policy
	settings Settings
	agenda   agenda
	pushed   int
	done     int
	looking  bool    // a look is on the agenda
	looked   int     // the releases at the last one
	changed  float64 // when a job last started or left a machine
	account  account
	trouble  error
}

func newEngine(cluster Cluster, jobs []Job, policy Policy, settings Settings) *engine {
	e := &engine{jobs: slices.Clone(jobs), policy: policy, settings: settings, looked: -1}
	slices.SortStableFunc(e.jobs, func(a, b Job) int { return cmp.Compare(a.Arrives, b.Arrives) })
	for i := range e.jobs {
		if e.jobs[i].Utilization == 0 {
			e.jobs[i].Utilization = 1
		}
	}
	e.State = &State{
		types: slices.Clone(cluster.Types), hosts: make([]host, len(cluster.Machines)), kinds: map[string]int{}, names: map[string]int{},
		byFree: map[groupKey]*Group{}, waiting: newQueue(&e.policy), most: settings.JobsPerGPU, move: settings.Move,
	}
	e.users = newUsers(cluster, e.jobs, settings.Quotas)
	e.waiting.users, e.waiting.bounded = &e.users, len(settings.Quotas) > 0
	for i, one := range e.types {
		e.kinds[one.Name] = i
	}
	for i, one := range cluster.Machines {
		kind := e.kinds[one.Type]
		e.hosts[i] = host{Machine: one, kind: kind, free: e.types[kind].Capacity, gpus: make([][]*Running, e.types[kind].Capacity.GPUs), busy: make([]float64, e.types[kind].Capacity.GPUs)}
		e.names[one.Name] = i
		e.join(i)
		e.account.add(&e.types[kind])
	}
	e.waiting.started.tree = make([]int, len(e.jobs)+1)
	if policy.MostPassed != nil {
		e.waiting.passes = policy.MostPassed(e.account.gpus, settings.JobsPerGPU)
	}
	e.account.policy, e.account.record = policy.Name, settings.Record
	return e
}

func (e *engine) push(one event) {
	one.order = e.pushed
	e.pushed++
	heap.Push(&e.agenda, one)
}

// run plays event after event; what happens at one time is decided about
// together.
func (e *engine) run() error {
	e.now = e.jobs[0].Arrives
	e.account.start = e.now
	e.push(event{at: e.now, what: arrives})
	e.dawn()
	for e.done < len(e.jobs) {
		if len(e.agenda) == 0 {
			return e.stuck()
		}
		e.advance(e.agenda[0].at)
		for len(e.agenda) > 0 && e.agenda[0].at == e.now {
			e.happen(heap.Pop(&e.agenda).(event))
		}
		e.dispatch()
		if e.trouble != nil {
			return fmt.Errorf("policy %q, at %.0f s: %w", e.policy.Name, e.now, e.trouble)
		}
		if e.standing() {
			return e.stuck()
		}
		e.plan()
		e.account.step(e.State)
	}
	return nil
}

// dawn puts the next day on the agenda, where a quota bounds what is used in one.
func (e *engine) dawn() {
	if e.users.daily() {
		e.push(event{at: (math.Floor(e.now/aDay) + 1) * aDay, what: dawns})
	}
}

// standing reports that what waits waits for nothing.
func (e *engine) standing() bool {
	if e.waiting.bounded && slices.ContainsFunc(e.waiting.heads(), func(one *Waiting) bool { return e.users.refuses(one) && e.users.by[one.User].spent > 0 }) {
		return false // the next day may bring it
	}
	if len(e.live) > 0 || e.waiting.count == 0 || e.waiting.count+e.done < len(e.jobs) {
		return false
	}
	return !slices.ContainsFunc(e.hosts, func(one host) bool { return one.power == waking })
}

// stuck is the error of a replay in which nothing happens any more.
func (e *engine) stuck() error {
	for _, one := range e.live {
		return fmt.Errorf("policy %q: job %s and %d others run and never end, since the slowdown of jobs on a GPU became 0", e.policy.Name, one.Name, len(e.live)-1)
	}
	return fmt.Errorf("policy %q: job %s and %d others wait, and the policy leaves them waiting on an empty cluster", e.policy.Name, e.waiting.heads()[0].Name, e.waiting.count-1)
}

func (e *engine) advance(to float64) {
	e.account.pass(to-e.now, e.State)
	e.users.pass(to - e.now)
	e.now = to
}

// plan puts the next look on the agenda where one is due.
func (e *engine) plan() {
	due := e.policy.Knob != nil || e.policy.Mover != nil && e.releases != e.looked
	if e.policy.Mover != nil && e.policy.Shares {
		// What is known of a job that started may be new at the look after the next.
		due = e.now-e.changed <= 2*e.policy.Every
	}
	if due && !e.looking && e.done < len(e.jobs) {
		e.looking = true
		next := (float64(int64(e.now/e.policy.Every)) + 1) * e.policy.Every
		e.push(event{at: next, what: looks})
	}
}

func (e *engine) happen(one event) {
	if one.job != nil && one.version != one.job.stamp(one.what) {
		return // overtaken
	}
	switch one.what {
	case arrives:
		e.arrive(one.place)
	case ends:
		e.end(one.job)
	case resumes:
		one.job.paused = false
		e.refresh(one.job)
	case fails:
		e.account.outOfMemory++
		e.release(one.job, true)
		one.job.from.Alone = true
		e.waiting.push(one.job.from)
	case wakes:
		e.hosts[one.place].power = awake
		e.join(one.place)
		e.account.turn(e.Type(one.place), waking, awake)
		e.releases++
	case dawns:
		e.users.dawn()
		e.releases++
		e.dawn()
	case looks:
		e.looking = false
		e.look()
	}
}

func (e *engine) arrive(at int) {
	job := &e.jobs[at]
	left := job.Work
	if job.Priority < len(e.policy.Drop) {
		left *= 1 - e.policy.Drop[job.Priority]
	}
	e.waiting.push(&Waiting{Job: job, Left: left, whole: left, Since: e.now, sequence: at, first: -1})
	if at+1 < len(e.jobs) {
		e.push(event{at: e.jobs[at+1].Arrives, what: arrives, place: at + 1})
	}
}

// dispatch gives what waits its places, in order, until nothing has room.
func (e *engine) dispatch() {
	for e.trouble == nil {
		job := e.waiting.next(e.releases)
		if job == nil {
			return
		}
		spot, found := e.policy.Chooser.Choose(e.State, job)
		if !found && e.policy.Preemption != Never {
			if victims := e.State.victims(job); victims != nil {
				for _, one := range victims {
					e.evict(one)
				}
				spot, found = e.policy.Chooser.Choose(e.State, job)
			}
		}
		if !found {
			e.wake(job)
			job.class.blocked = e.releases
			continue
		}
		e.start(job, spot)
	}
}

func (e *engine) start(job *Waiting, spot Spot) {
	if why := e.fits(job.Job, spot, job.Alone); why != "" {
		e.trouble = fmt.Errorf("it puts job %s on machine %d, GPUs %v: %s", job.Name, spot.Machine, spot.GPUs, why)
		return
	}
	e.waiting.pop(job)
	e.waiting.running[job.User]++
	e.users.by[job.User].has = e.users.by[job.User].has.Plus(job.amount())
	job.waited += e.now - job.Since
	if job.first < 0 {
		job.first = e.now
		e.waiting.started.add(job.sequence)
	}
	one := &Running{Job: job.Job, Began: e.now, sequence: job.sequence, left: job.Left, from: job, since: e.now, place: len(e.live)}
	e.live = append(e.live, one)
	e.changed = e.now
	e.settle(one, spot)
	if one.starved {
		return
	}
	if job.moved {
		e.pause(one)
	}
}

// settle puts a job on a machine and lets it work there.
func (e *engine) settle(one *Running, spot Spot) {
	e.occupy(one, spot)
	one.unit = one.Profile.On[e.Type(one.Machine).Name]
	one.Began = e.now
	if e.tooMuch(one) {
		one.starved = true
		e.push(event{at: e.now + e.settings.OutOfMemorySeconds, what: fails, job: one, version: one.life})
		return
	}
	e.refresh(one)
}

// pause lets a job load its checkpoint first.
func (e *engine) pause(one *Running) {
	cost := e.MoveCost()
	e.account.moveSeconds += cost.Seconds
	e.account.moveJoules += cost.Joules
	if cost.Seconds <= 0 {
		return
	}
	one.paused = true
	e.refresh(one)
	e.push(event{at: e.now + cost.Seconds, what: resumes, job: one, version: one.life})
}

// stamp is what tells an event about a job that was overtaken.
func (r *Running) stamp(of happening) int {
	if of == ends {
		return r.version
	}
	return r.life
}

// lift takes a job off its machine.
func (e *engine) lift(one *Running) {
	e.bring(one)
	e.changed = e.now
	e.rate(one, 0)
	e.vacate(one)
	e.account.span(one, e.State)
	e.refreshOthers(one)
	one.version++
	one.life++
}

// release ends a job's stay on its machine; what it did is kept, or lost.
func (e *engine) release(one *Running, lost bool) {
	e.lift(one)
	last := e.live[len(e.live)-1]
	e.live[one.place], last.place = last, one.place
	e.live = e.live[:len(e.live)-1]
	e.waiting.running[one.User]--
	e.users.by[one.User].has = without(e.users.by[one.User].has, one.amount())
	from := one.from
	from.joules += one.joules
	if lost {
		e.account.wasted += one.joules
	} else {
		from.Left = one.left
		from.moved = true
	}
	from.Since = e.now
}

func (e *engine) evict(one *Running) {
	e.account.evictions++
	e.release(one, e.policy.Preemption == Repeats || one.starved)
	e.waiting.push(one.from)
}

func (e *engine) end(one *Running) {
	whole := !one.shared && !one.from.moved && one.worked > 0
	e.release(one, false)
	e.done++
	e.account.end(one, e.State)
	learner, learns := e.policy.Chooser.(Learner)
	if learns && whole && one.joules > 0 {
		took := placement.Prediction{Seconds: e.now - one.Began, Joules: one.joules}
		e.trouble = cmp.Or(e.trouble, learner.Learn(one.Job, e.Type(one.Machine).Name, took))
	}
}

// look asks the knob, and the mover, and does what they say.
func (e *engine) look() {
	if e.policy.Knob != nil {
		e.turnTo(e.policy.Knob.Awake(e.State))
	}
	if e.policy.Shares {
		e.releases++ // what is known of jobs that run may have changed
	}
	if e.policy.Mover == nil || e.looked == e.releases {
		return
	}
	e.looked = e.releases
	for _, one := range e.policy.Mover.Moves(e.State) {
		e.move(one)
	}
}
