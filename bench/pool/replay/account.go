package replay

import (
	"slices"
)

// Distribution sums up seconds.
type Distribution struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Most   float64 `json:"most"`
}

// Energy is joules by what they went into. All are computed from the recorded
// profiles and the described machines: an estimate of what the cluster would
// have drawn.
type Energy struct {
	// Work is what jobs added to idle machines, Wasted the part of it that was
	// done for nothing: by jobs that were evicted without a checkpoint, or ran out
	// of memory.
	Work   float64 `json:"work"`
	Wasted float64 `json:"wasted"`
	// Idle is what awake machines draw with or without work, Asleep what sleeping
	// ones do, and Waking what it took to wake up.
	Idle   float64 `json:"idle"`
	Asleep float64 `json:"asleep"`
	Waking float64 `json:"waking"`
	// Moves is what it took to take jobs elsewhere.
	Moves float64 `json:"moves"`
}

// Total is all of it.
func (e Energy) Total() float64 { return e.Work + e.Idle + e.Asleep + e.Waking + e.Moves }

// Ended is a job that ended, at seconds of the trace.
type Ended struct {
	Job      *Job    `json:"-"`
	Name     string  `json:"name"`
	Machine  string  `json:"machine"` // the last one
	Began    float64 `json:"began"`   // the first time
	At       float64 `json:"at"`
	Waited   float64 `json:"waited"` // all times together
	Joules   float64 `json:"joules"`
	Priority int     `json:"priority"`
}

// Span is the time that a job was on a machine.
type Span struct {
	Job, Machine string
	User         string
	GPUs         []int
	From, To     float64
}

// Step is what the cluster did from a time on.
type Step struct {
	At float64
	// Allocated is how many GPUs have jobs (cores, where there are no GPUs), Busy
	// how many are kept busy.
	Allocated, Busy float64
	Waiting         int
	// Watts is what everything draws.
	Watts float64
}

// Outcome is what came of a replay.
type Outcome struct {
	Policy string `json:"policy"`
	Jobs   int    `json:"jobs"`
	// Makespan is from the first arrival to the last end, in seconds.
	Makespan float64 `json:"makespan_seconds"`
	// Allocated is the share of the GPU time (of the cores' where no machine has
	// GPUs) in which a job was on it, Utilization that in which it did work.
	Allocated   float64 `json:"allocated"`
	Utilization float64 `json:"utilization"`
	// Completion is from a job's arrival to its end, Waiting the part of it
	// before and between its runs.
	Completion Distribution `json:"completion_seconds"`
	Waiting    Distribution `json:"waiting_seconds"`
	Energy     Energy       `json:"joules"`
	Total      float64      `json:"total_joules"`
	Migrations int          `json:"migrations"`
	// MoveSeconds is the time in which jobs did not work since they had moved.
	MoveSeconds float64      `json:"move_seconds"`
	Evictions   int          `json:"evictions"`
	OutOfMemory int          `json:"out_of_memory"`
	Priorities  []OfPriority `json:"priorities,omitempty"`
	// Users are those of the trace, where there are several, who had the most of the
	// GPUs first. Fairness is Jain's index of their mean slowdowns: 1 where all were
	// slowed down alike.
	Users    []OfUser `json:"users,omitempty"`
	Fairness float64  `json:"fairness,omitempty"`
	Ended    []Ended  `json:"-"`
	Spans    []Span   `json:"-"`
	Steps    []Step   `json:"-"`
	// Units is how many GPUs there are, or cores where there are none.
	Units int `json:"-"`
	// rest is what machines draw behind the last job, as the policy leaves them, by
	// power state.
	rest [3]float64
}

// Alike counts what machines draw in all outcomes until the last of them ends, which it
// returns in seconds from the first arrival: they were played on the same jobs, and
// whose jobs end sooner has drawn less only for the time that is left out.
func Alike(outcomes []Outcome) (until float64) {
	for _, one := range outcomes {
		until = max(until, one.Makespan)
	}
	for i := range outcomes {
		one := &outcomes[i]
		one.Energy.Idle += one.rest[awake] * (until - one.Makespan)
		one.Energy.Asleep += one.rest[asleep] * (until - one.Makespan)
		one.Total = one.Energy.Total()
	}
	return until
}

// OfPriority is what jobs of a priority met with.
type OfPriority struct {
	Priority   int          `json:"priority"`
	Jobs       int          `json:"jobs"`
	Completion Distribution `json:"completion_seconds"`
	Waiting    Distribution `json:"waiting_seconds"`
}

// account adds up what happens.
type account struct {
	policy string
	record bool
	start  float64

	gpus, cores  int
	watts        [3]float64 // by power state
	energy       [3]float64
	drawing      float64 // of jobs
	busy         float64
	busySum      float64
	allocatedSum float64

	workJoules, wasted, moveJoules, moveSeconds float64
	migrations, evictions, outOfMemory          int
	ended                                       []Ended
	spans                                       []Span
	steps                                       []Step
}

func (a *account) add(of *Type) {
	a.gpus += of.Capacity.GPUs
	a.cores += of.Capacity.Cores
	a.watts[awake] += of.IdleWatts
}

// turn is of a machine that goes from one power state to another.
func (a *account) turn(of *Type, from, to power) {
	a.watts[from] -= of.draws(from)
	a.watts[to] += of.draws(to)
}

func (t *Type) draws(in power) float64 {
	if in == asleep {
		return t.AsleepWatts
	}
	return t.IdleWatts
}

// pass is the time that goes by.
func (a *account) pass(seconds float64, s *State) {
	for state, watts := range a.watts {
		a.energy[state] += watts * seconds
	}
	a.allocatedSum += seconds * float64(s.allocated(a))
	a.busySum += seconds * a.working(s)
}

// allocated is how many GPUs have jobs, or cores where there are none.
func (s *State) allocated(a *account) int {
	if a.gpus > 0 {
		return s.takenGPUs
	}
	return s.takenCores
}

func (a *account) working(s *State) float64 {
	if a.gpus > 0 {
		return max(0, a.busy)
	}
	return float64(s.takenCores)
}

func (a *account) step(s *State) {
	if !a.record {
		return
	}
	watts := a.drawing
	for _, one := range a.watts {
		watts += one
	}
	now := Step{At: s.now, Allocated: float64(s.allocated(a)), Busy: a.working(s), Waiting: s.waiting.count, Watts: watts}
	a.steps = append(a.steps, now)
}

func (a *account) span(one *Running, s *State) {
	if a.record && s.now > one.Began {
		a.spans = append(a.spans, Span{Job: one.Name, Machine: s.Name(one.Machine), User: one.User, GPUs: one.GPUs, From: one.Began, To: s.now})
	}
}

func (a *account) end(one *Running, s *State) {
	a.ended = append(a.ended, Ended{
		Job: one.Job, Name: one.Name, Machine: s.Name(one.Machine), Began: one.from.first, At: s.now,
		Waited: one.from.waited, Joules: one.from.joules, Priority: one.Priority,
	})
}

// outcome sums up.
func (e *engine) outcome() Outcome {
	a := &e.account
	o := Outcome{
		Policy: a.policy, Jobs: len(a.ended), Makespan: e.now - a.start, Migrations: a.migrations, MoveSeconds: a.moveSeconds,
		Evictions: a.evictions, OutOfMemory: a.outOfMemory, Ended: a.ended, Spans: a.spans, Steps: a.steps, Units: a.gpus,
		Energy: Energy{Work: a.workJoules, Wasted: a.wasted, Idle: a.energy[awake], Asleep: a.energy[asleep], Waking: a.energy[waking], Moves: a.moveJoules},
	}
	if a.gpus == 0 {
		o.Units = a.cores
	}
	o.Total = o.Energy.Total()
	o.rest = e.atRest()
	o.Users, o.Fairness = e.users.outcome(a.ended)
	if o.Makespan > 0 && o.Units > 0 {
		o.Allocated = a.allocatedSum / (o.Makespan * float64(o.Units))
		o.Utilization = a.busySum / (o.Makespan * float64(o.Units))
	}
	completion, waiting := timesOf(a.ended)
	o.Completion, o.Waiting = distributionOf(completion), distributionOf(waiting)
	byPriority := map[int][]Ended{}
	for _, one := range a.ended {
		byPriority[one.Priority] = append(byPriority[one.Priority], one)
	}
	if len(byPriority) > 1 {
		for priority, list := range byPriority {
			completion, waiting := timesOf(list)
			o.Priorities = append(o.Priorities, OfPriority{Priority: priority, Jobs: len(list), Completion: distributionOf(completion), Waiting: distributionOf(waiting)})
		}
		slices.SortFunc(o.Priorities, func(a, b OfPriority) int { return b.Priority - a.Priority })
	}
	return o
}

// atRest is what machines draw behind the last job, where a knob has been asked once
// more; those that wake up are awake then.
func (e *engine) atRest() [3]float64 {
	if e.policy.Knob != nil {
		e.turnTo(e.policy.Knob.Awake(e.State))
	}
	rest := e.account.watts
	rest[awake] += rest[waking]
	return rest
}

func timesOf(list []Ended) (completion, waiting []float64) {
	for _, one := range list {
		completion, waiting = append(completion, one.At-one.Job.Arrives), append(waiting, one.Waited)
	}
	return completion, waiting
}

// distributionOf sums up the seconds, which it sorts.
func distributionOf(seconds []float64) Distribution {
	slices.Sort(seconds)
	var d Distribution
	if len(seconds) == 0 {
		return d
	}
	for _, one := range seconds {
		d.Mean += one / float64(len(seconds))
	}
	at := func(share float64) float64 { return seconds[min(len(seconds)-1, int(share*float64(len(seconds))))] }
	d.Median, d.P95, d.Most = at(0.5), at(0.95), seconds[len(seconds)-1]
	return d
}
