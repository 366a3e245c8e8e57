package launcher

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"
)

const (
	// fruitless is how many workers in a row may end without a trial until no more
	// of their shape are started for a while: firstPause, then twice as long.
	fruitless                = 3
	firstPause, longestPause = time.Minute, time.Hour
	// steady is how many times in a row there must be too many jobs until some are
	// taken back, while studies still want some.
	steady = 3
)

// Planner decides what to order. It is not safe for concurrent use.
type Planner struct {
	// Shapes are those of [Sorted].
	Shapes []Shape
	// Idle is after how long without a trial a worker leaves.
	Idle time.Duration

	last    time.Time
	known   map[string]*history // by the job's id
	records map[string]*record  // by the shape's name
}

// history is what was seen of one job.
type history struct {
	registered time.Time
	worked     bool // a trial was seen on it
	over       bool
}

// record is what was seen of one shape.
type record struct {
	wanted   int // the last time
	surplus  int // how often in a row there were too many
	barren   int // how many ended in a row without a trial
	pause    time.Duration
	until    time.Time // it is on hold
	why      string
	started  []time.Time
	day      string
	gpuHours float64
}

// supply is what there is of a shape.
type supply struct {
	alive, free        int
	contested          bool     // others may just be about to take what waits
	pending, undecided []string // ids of those that wait, and of those that have not registered
	running            int
}

// Plan says what to do now. It is called every few seconds.
func (p *Planner) Plan(now time.Time, seen Seen) Plan {
	first := p.known == nil
	if first {
		p.known, p.records = map[string]*history{}, map[string]*record{}
		for _, shape := range p.Shapes {
			p.records[shape.Name] = &record{}
		}
	}
	have, others := p.look(now, seen, first)
	var plan Plan
	wanted := p.assign(now, seen.Wants, &plan)
	for _, shape := range p.Shapes {
		have[shape.Name].contested = others > 0 && !first
		p.decide(now, shape, wanted[shape.Name], have[shape.Name], &plan)
	}
	p.last = now
	return plan
}

// look notes what became of the jobs. Others is how many slots of workers are free that
// this launcher did not start.
func (p *Planner) look(now time.Time, seen Seen, first bool) (have map[string]*supply, others int) {
	workers := map[string]Worker{}
	for _, one := range seen.Workers {
		workers[one.Launch] = one
	}
	have = map[string]*supply{}
	for _, shape := range p.Shapes {
		have[shape.Name] = &supply{}
	}
	own, listed := map[string]bool{}, map[string]bool{}
	for _, job := range seen.Jobs {
		of := have[job.Shape]
		if of == nil || listed[job.ID] { // an engine may list one twice
			continue
		}
		listed[job.ID], own[job.Launch] = true, true
		h := p.known[job.ID]
		if h == nil {
			h = &history{over: first && job.State == Ended}
			p.known[job.ID] = h
		}
		if worker, registered := workers[job.Launch]; registered {
			if h.registered.IsZero() {
				h.registered = now
			}
			h.worked = h.worked || worker.Trials > 0
			if job.State == Running {
				of.free += max(0, worker.Slots-worker.Trials)
			}
		}
		p.count(now, job, h, of)
	}
	for id, h := range p.known {
		if !listed[id] && h.over {
			delete(p.known, id)
		}
	}
	for _, one := range seen.Workers {
		if !own[one.Launch] {
			others += max(0, one.Slots-one.Trials)
		}
	}
	for _, shape := range p.Shapes {
		p.records[shape.Name].spend(now, p.last, float64(have[shape.Name].running*shape.GPUs))
	}
	return have, others
}

// count adds a job to what there is of its shape.
func (p *Planner) count(now time.Time, job Job, h *history, of *supply) {
	r := p.records[job.Shape]
	if h.worked {
		r.barren, r.pause = 0, 0
	}
	switch job.State {
	case Ended:
		if !h.over {
			h.over = true
			p.ended(now, job, h, r)
		}
		return
	case Pending:
		of.pending = append(of.pending, job.ID)
	case Running:
		of.running++
		if h.registered.IsZero() {
			of.undecided = append(of.undecided, job.ID)
		}
	case Leaving:
		of.running++
	}
	of.alive++
}

// ended judges a worker that is over. One that was preempted, cancelled, or has not been
// idle for its time says nothing against its shape.
func (p *Planner) ended(now time.Time, job Job, h *history, r *record) {
	waited := !h.registered.IsZero() && now.Sub(h.registered) >= p.Idle
	if h.worked || job.Blameless() || !job.Failed() && !waited {
		return
	}
	r.barren++
	r.why = job.Why
	if r.barren >= fruitless {
		r.pause = min(max(firstPause, 2*r.pause), longestPause)
		r.until, r.barren = now.Add(r.pause), fruitless-1 // the next one alone decides
	}
}

// spend charges the time since the last plan.
func (r *record) spend(now, last time.Time, gpus float64) {
	if day := now.UTC().Format(time.DateOnly); day != r.day {
		r.day, r.gpuHours = day, 0
	}
	if !last.IsZero() {
		r.gpuHours += gpus * now.Sub(last).Hours()
	}
	for len(r.started) > 0 && now.Sub(r.started[0]) >= time.Hour {
		r.started = r.started[1:]
	}
}

// assign gives each study's trials to the smallest shape that fits and is not on hold.
func (p *Planner) assign(now time.Time, wants []Want, plan *Plan) map[string]int {
	wanted := map[string]int{}
	for _, want := range wants {
		if want.Trials <= 0 {
			continue
		}
		fits, held := "", ""
		for _, shape := range p.Shapes {
			switch {
			case !shape.Fits(want):
			case now.Before(p.records[shape.Name].until):
				held = shape.Name
			case fits == "":
				fits = shape.Name
			}
		}
		switch {
		case fits != "":
			wanted[fits] += want.Trials
		case held != "":
			r := p.records[held]
			plan.note("%s waits: no more workers of the shape %s are started until %s, as the last %d ended without a trial: %s", want.Study, held, r.until.Local().Format(time.TimeOnly), fruitless, r.why)
		default:
			plan.note("%s waits: no shape has what its trials ask for (%d GPUs, %d cores, %g GiB): add one to the file of --shapes", want.Study, want.GPUs, want.Cores, want.MemoryGiB)
		}
	}
	return wanted
}

func (p *Plan) note(format string, arguments ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, arguments...))
}

// decide orders or takes back jobs of one shape. While others have free places, only
// what was wanted before as well is ordered: they may just be about to take the rest.
func (p *Planner) decide(now time.Time, shape Shape, wanted int, have *supply, plan *Plan) {
	r := p.records[shape.Name]
	asked := wanted
	if have.contested {
		asked = min(asked, r.wanted)
	}
	r.wanted = wanted
	coming := len(have.pending) + len(have.undecided)
	jobs := func(trials int) int { return (max(0, trials-have.free) + shape.Trials - 1) / shape.Trials }
	if surplus := coming - jobs(wanted); surplus > 0 {
		r.surplus++
		if wanted == 0 || r.surplus >= steady {
			plan.Cancel = append(plan.Cancel, newest(have.pending, have.undecided, surplus)...)
		}
		return
	}
	r.surplus = 0
	more := jobs(asked) - coming
	if more <= 0 || now.Before(r.until) {
		return
	}
	for _, bound := range []struct {
		left int
		why  string
	}{
		{shape.Most - have.alive, fmt.Sprintf("most is %d", shape.Most)},
		{shape.MostPending - len(have.pending), fmt.Sprintf("most_pending is %d", shape.MostPending)},
		{shape.MostAnHour - len(r.started), fmt.Sprintf("most_an_hour is %d", shape.MostAnHour)},
	} {
		if bound.left < more {
			more = max(0, bound.left)
			plan.note("%d trials wait for more workers of the shape %s: %s", wanted, shape.Name, bound.why)
		}
	}
	if shape.GPUHoursADay > 0 && r.gpuHours >= shape.GPUHoursADay {
		plan.note("no more workers of the shape %s are started today: they have used %.1f GPU-hours of %g (gpu_hours_a_day)", shape.Name, r.gpuHours, shape.GPUHoursADay)
		return
	}
	if r.barren >= fruitless-1 && r.pause > 0 {
		more = min(more, max(0, 1-coming)) // one alone, to see whether it is better now
	}
	if more = min(more, MostOfOrder); more == 0 {
		return
	}
	for range more {
		r.started = append(r.started, now)
	}
	plan.Orders = append(plan.Orders, Order{ID: strings.ToLower(rand.Text()[:10]), Shape: shape, Count: more})
}

// newest are the last of those that wait, and then of those that have not registered.
func newest(pending, undecided []string, count int) (ids []string) {
	for _, list := range [][]string{pending, undecided} {
		for i := len(list) - 1; i >= 0 && len(ids) < count; i-- {
			ids = append(ids, list[i])
		}
	}
	return ids
}
