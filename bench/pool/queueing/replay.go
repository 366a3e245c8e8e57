// Package queueing replays jobs of several priorities on slots, event by event, with
// evictions, sprints that an account of energy pays for, and a controller of what is
// left out (DiAS: I. Rocha's thesis, Neuchâtel 2021, chapter 4).
//
// It is for benchmarks and tests of workers/approximation. It does no I/O and knows no
// clock.
package queueing

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/workers/approximation"
)

// Policy is how the engine treats a job of higher priority that comes while all
// slots are busy and one runs a lower one.
type Policy int

// The policies.
const (
	// NonPreemptive lets the running job end.
	NonPreemptive Policy = iota
	// Evicting ends it and begins it again from its start later, as engines
	// without checkpoints do: the baseline of section 4.4.
	Evicting
	// Resuming ends it too, and later goes on where it was, as with a checkpoint
	// that costs nothing.
	Resuming
)

// Job is a piece of work that comes to the engine.
type Job struct {
	Class int
	// At is when it comes, in seconds since the beginning; Seconds what it takes at
	// the usual speed.
	At, Seconds float64
}

// Engine is what jobs are played on.
type Engine struct {
	// Slots is how many jobs run at once, each at full speed.
	Slots  int
	Policy Policy
	// Sprints has one entry for each class, or none at all; Account pays for them.
	Sprints []approximation.Sprint
	Account approximation.Account
	// Helps has running jobs sprint for the waiting: for each job that waits and
	// whose class sprints, one of a lower class does that runs, the one that has least
	// left (a training says how many epochs that is), with the sprint of the one that
	// waits, until that has begun. A sprint of its own goes before.
	Helps bool
	// BusyWatts and IdleWatts are what a slot takes.
	BusyWatts, IdleWatts float64
	// Control has the classes below the highest leave out what a controller says.
	Control *Control
}

// Outcome is what jobs of a class met with.
type Outcome struct {
	Jobs int
	// Mean and Tail (of 95%) are response times in seconds; Run is the part of the
	// mean that the job's last run took, without runs that were evicted.
	Mean, Tail, Run float64
}

// Played is what became of all jobs.
type Played struct {
	Classes []Outcome
	// Wasted is the share of the slots' busy time that was spent on work that was
	// done again (section 4.4.2, resource waste).
	Wasted float64
	// Seconds is from the first arrival to the last end; Busy and Sprinted are
	// seconds of slots.
	Seconds, Busy, Sprinted float64
	Joules                  float64
	// Dropped is the share of their work that jobs below the highest class left out,
	// in the mean over all of them.
	Dropped float64
}

// Check says what is wrong with the engine, for so many classes.
func (e Engine) Check(classes int) error {
	switch {
	case e.Slots < 1:
		return fmt.Errorf("an engine of %d slots: at least one is needed", e.Slots)
	case e.Policy < NonPreemptive || e.Policy > Resuming:
		return fmt.Errorf("%d is no policy", e.Policy)
	case len(e.Sprints) != 0 && len(e.Sprints) != classes:
		return fmt.Errorf("%d sprints for %d classes: one for each, or none at all", len(e.Sprints), classes)
	case e.Control != nil && (e.Policy != NonPreemptive || !(e.Control.Every > 0)):
		return fmt.Errorf("a controller that is asked every %g s, with policy %d: it must be asked in more than 0 s, and is for engines without evictions", e.Control.Every, e.Policy)
	}
	return nil
}

// Replay plays the jobs of so many classes, in the order in which they come,
// event by event. The first share of them (0 to below 1) warms the engine up and
// is not counted in the classes.
func (e Engine) Replay(jobs []Job, classes int, warm float64) (Played, error) {
	if err := e.Check(classes); err != nil {
		return Played{}, err
	}
	last := math.Inf(-1)
	for i, job := range jobs {
		if job.Class < 0 || job.Class >= classes || !(job.At >= last) || !(job.Seconds >= 0) || math.IsInf(job.At+job.Seconds, 0) {
			return Played{}, fmt.Errorf("job %d is of class %d of %d, comes at %g s after one at %g s and takes %g s: classes count from 0, jobs are in the order they come in, and times are finite", i, job.Class, classes, job.At, last, job.Seconds)
		}
		last = job.At
	}
	p := &play{engine: e, jobs: jobs, warm: int(warm * float64(len(jobs))), level: e.Account.Joules, responses: make([][]float64, classes), runs: make([]float64, classes), waiting: make([][]queued, classes)}
	if len(jobs) > 0 {
		p.now = jobs[0].At
	}
	for p.step() {
	}
	return p.outcome(), nil
}

// queued is a job that waits: what is left of it, and its place in the order of
// arrivals.
type queued struct {
	number int
	left   float64
}

// running is a job in a slot.
type running struct {
	queued
	began     float64
	ran       float64 // seconds of this run
	sprinting bool
	spent     bool // its sprint ended with the account
	helps     int  // the class above it that it sprints for; 0: none
}

type play struct {
	engine Engine
	jobs   []Job
	warm   int

	now     float64
	next    int // the next job to come
	waiting [][]queued
	slots   []running
	level   float64 // joules in the account

	responses    [][]float64
	runs         []float64
	busy, wasted float64
	sprinted     float64
	joules       float64

	state   approximation.State
	share   float64               // that is left out now
	asked   float64               // when the controller is to be asked next
	met     approximation.History // of the highest class
	dropped float64
}

// step goes on to the next event; false when nothing is left.
func (p *play) step() bool {
	if p.next == len(p.jobs) && len(p.slots) == 0 {
		return false
	}
	p.advance(p.until())
	p.settle()
	p.control()
	for p.next < len(p.jobs) && p.jobs[p.next].At <= p.now {
		job := p.jobs[p.next]
		p.waiting[job.Class] = append(p.waiting[job.Class], queued{p.next, job.Seconds})
		p.next++
		p.evict(job.Class)
	}
	p.start()
	p.help()
	return true
}

// sprint is that of a running job's class; without speed where there is none.
func (p *play) sprint(r running) approximation.Sprint {
	if len(p.engine.Sprints) == 0 {
		return approximation.Sprint{}
	}
	return p.engine.Sprints[p.jobs[r.number].Class]
}

// active is the sprint that speeds a running job up now, its own or that of one that
// waits; false where none does.
func (p *play) active(r running) (approximation.Sprint, bool) {
	switch {
	case r.sprinting:
		return p.sprint(r), true
	case r.helps > 0:
		return p.engine.Sprints[r.helps], true
	}
	return approximation.Sprint{Speed: 1}, false
}

func (p *play) speed(r running) float64 {
	sprint, _ := p.active(r)
	return sprint.Speed
}

// drain is what the account loses a second: negative while it is filled up.
func (p *play) drain() float64 {
	drain := -p.engine.Account.Watts
	for _, r := range p.slots {
		sprint, _ := p.active(r)
		drain += sprint.Watts
	}
	return drain
}

// until is how long nothing happens but what goes on.
func (p *play) until() float64 {
	span := math.Inf(1)
	if p.next < len(p.jobs) {
		span = p.jobs[p.next].At - p.now
	}
	for _, r := range p.slots {
		span = min(span, r.left/p.speed(r))
		if s := p.sprint(r); s.Speed > 1 && !r.sprinting && !r.spent && r.ran < s.TimeoutSeconds {
			span = min(span, s.TimeoutSeconds-r.ran)
		}
	}
	if drain := p.drain(); drain > 0 && !math.IsInf(p.level, 1) {
		span = min(span, p.level/drain)
	}
	if p.engine.Control != nil {
		span = min(span, p.asked-p.now)
	}
	return max(0, span)
}

// advance lets so much time pass.
func (p *play) advance(span float64) {
	p.level = min(p.engine.Account.Joules, p.level-p.drain()*span)
	p.now += span
	p.joules += float64(p.engine.Slots-len(p.slots))*p.engine.IdleWatts*span + float64(len(p.slots))*p.engine.BusyWatts*span
	for i := range p.slots {
		r := &p.slots[i]
		r.left -= p.speed(*r) * span
		r.ran += span
		p.busy += span
		if sprint, fast := p.active(*r); fast {
			p.sprinted += span
			p.joules += sprint.Watts * span
		}
	}
}

// tiny is what rounding leaves of a job or an account.
const tiny = 1e-9

// tail is the share of responses that [Outcome] names as the tail.
const tail = 0.95

// settle ends what is done, and begins and ends sprints.
func (p *play) settle() {
	p.slots = slices.DeleteFunc(p.slots, func(r running) bool {
		job := p.jobs[r.number]
		if r.left > tiny*(1+job.Seconds) {
			return false
		}
		if r.number >= p.warm {
			p.responses[job.Class] = append(p.responses[job.Class], p.now-job.At)
			p.runs[job.Class] += r.ran
		}
		if p.engine.Control != nil && job.Class == len(p.waiting)-1 {
			p.met.Add(approximation.Run{Began: r.began, Waited: r.began - job.At, Seconds: max(r.ran, tiny)})
		}
		return true
	})
	empty := p.level <= tiny*(1+p.engine.Account.Watts)
	for i := range p.slots {
		r := &p.slots[i]
		s := p.sprint(*r)
		switch {
		case r.sprinting && empty && p.drain() > 0:
			r.sprinting, r.spent = false, true
		case !r.sprinting && !r.spent && s.Speed > 1 && r.ran >= s.TimeoutSeconds-tiny && !empty:
			r.sprinting = true
		}
	}
}

// evict ends a running job of the lowest class below this one, the newest of
// them, if no slot is free for the job that came.
func (p *play) evict(class int) {
	if p.engine.Policy == NonPreemptive || len(p.slots) < p.engine.Slots {
		return
	}
	victim := -1
	for i, r := range p.slots {
		of := p.jobs[r.number].Class
		if of < class && (victim < 0 || of < p.jobs[p.slots[victim].number].Class || of == p.jobs[p.slots[victim].number].Class && r.number > p.slots[victim].number) {
			victim = i
		}
	}
	if victim < 0 {
		return
	}
	r := p.slots[victim]
	job := p.jobs[r.number]
	if p.engine.Policy == Evicting {
		p.wasted += r.ran
		r.left = job.Seconds
	}
	p.slots = slices.Delete(p.slots, victim, victim+1)
	p.waiting[job.Class] = append(p.waiting[job.Class], r.queued)
	slices.SortStableFunc(p.waiting[job.Class], func(a, b queued) int { return cmp.Compare(a.number, b.number) })
	p.start()
}

// start fills the free slots: the highest class first, there the oldest job.
func (p *play) start() {
	for class := len(p.waiting) - 1; class >= 0; class-- {
		for len(p.waiting[class]) > 0 && len(p.slots) < p.engine.Slots {
			r := running{queued: p.waiting[class][0], began: p.now}
			p.waiting[class] = p.waiting[class][1:]
			if class < len(p.waiting)-1 {
				r.left *= 1 - p.share
				p.dropped += p.share
			}
			if s := p.sprint(r); s.Speed > 1 && s.TimeoutSeconds <= 0 && p.level > tiny*(1+p.engine.Account.Watts) {
				r.sprinting = true
			}
			p.slots = append(p.slots, r)
		}
	}
}

// help has running jobs sprint for those that wait.
func (p *play) help() {
	if !p.engine.Helps || len(p.engine.Sprints) == 0 {
		return
	}
	for i := range p.slots {
		p.slots[i].helps = 0
	}
	if p.level <= tiny*(1+p.engine.Account.Watts) {
		return
	}
	for class := len(p.waiting) - 1; class > 0; class-- {
		if p.engine.Sprints[class].Speed <= 1 {
			continue
		}
		for range p.waiting[class] {
			least := -1
			for i, r := range p.slots {
				if p.jobs[r.number].Class < class && !r.sprinting && r.helps == 0 && (least < 0 || r.left < p.slots[least].left) {
					least = i
				}
			}
			if least < 0 {
				break
			}
			p.slots[least].helps = class
		}
	}
}

func (p *play) outcome() Played {
	played := Played{Classes: make([]Outcome, len(p.responses)), Busy: p.busy, Sprinted: p.sprinted, Joules: p.joules}
	if p.busy > 0 {
		played.Wasted = p.wasted / p.busy
	}
	if len(p.jobs) > 0 {
		played.Seconds = p.now - p.jobs[0].At
	}
	below := 0
	for _, job := range p.jobs {
		if job.Class < len(p.waiting)-1 {
			below++
		}
	}
	played.Dropped = p.dropped / float64(max(1, below))
	for k, list := range p.responses {
		slices.Sort(list)
		o := Outcome{Jobs: len(list)}
		for _, one := range list {
			o.Mean += one / float64(len(list))
		}
		if len(list) > 0 {
			o.Tail = list[min(len(list)-1, int(tail*float64(len(list))))]
			o.Run = p.runs[k] / float64(len(list))
		}
		played.Classes[k] = o
	}
	return played
}
