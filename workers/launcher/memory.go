package launcher

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
)

// Memory is what a launcher must not forget when its process ends: what it ordered, which
// shapes are on hold, and what was used of the bounds. It is written before an order is
// placed, so that none is placed twice.
type Memory struct {
	At     time.Time          `json:"at"` // the last look
	Shapes map[string]*record `json:"shapes"`
	// Launches are the workers that were ordered, by what they register with.
	Launches map[string]*launched `json:"launches"`
	Ends     []crew.LaunchEnd     `json:"ends"` // the newest first
	// Over are launches that the server has not been told the end of.
	Over []string `json:"over"`
}

// NewMemory remembers nothing.
func NewMemory() *Memory {
	return &Memory{Shapes: map[string]*record{}, Launches: map[string]*launched{}}
}

// launched is what was seen of one worker.
type launched struct {
	Job     Job       `json:"job"` // as it was listed last
	Ordered time.Time `json:"ordered,omitzero"`
	// Accepted says that the engine took the order, Listed that it has named the job.
	Accepted bool `json:"accepted,omitempty"`
	Listed   bool `json:"listed,omitempty"`
	// Seen is when it was listed last, or else ordered; Missed how often it was not since.
	Seen       time.Time `json:"seen"`
	Missed     int       `json:"missed,omitempty"`
	Started    time.Time `json:"started,omitzero"`
	Registered time.Time `json:"registered,omitzero"`
	Worked     bool      `json:"worked,omitempty"` // a trial was seen on it
	// TakenBack says that it was cancelled as nobody wanted it.
	TakenBack bool `json:"taken_back,omitempty"`
	// Over says that it has ended for good, whatever the engine says later.
	Over bool `json:"over,omitempty"`
}

// record is what was seen of one shape.
type record struct {
	Wanted   int             `json:"wanted,omitempty"`   // the last time
	Withheld int             `json:"withheld,omitempty"` // that would be wanted but for the hold
	Surplus  int             `json:"surplus,omitempty"`  // how often in a row there were too many
	Barren   int             `json:"barren,omitempty"`   // how many in a row brought no trial
	Pause    time.Duration   `json:"pause,omitempty"`
	Until    time.Time       `json:"until,omitzero"` // it is on hold
	Why      string          `json:"why,omitempty"`
	Started  []time.Time     `json:"started,omitempty"`
	Day      string          `json:"day,omitempty"`
	GPUHours float64         `json:"gpu_hours,omitempty"`
	Waits    []time.Duration `json:"waits,omitempty"` // of the last workers between order and start
}

const (
	// forgets is at how many looks in a row an engine may leave a job out, for patience
	// at least: some list what was submitted only a moment later.
	forgets  = 2
	patience = 30 * time.Second
	// remembered is how long a worker that has ended is known: an engine may list it again.
	remembered = time.Hour
	// mostEnds and mostWaits bound what is kept of the past, mostOver what one report tells.
	mostEnds, mostWaits, mostOver = 50, 50, 1000
)

func (m *Memory) record(shape string) *record {
	r := m.Shapes[shape]
	if r == nil {
		r = &record{}
		m.Shapes[shape] = r
	}
	return r
}

// supply is what there is of a shape.
type supply struct {
	alive, free        int
	contested          bool     // others may just be about to take what waits
	pending, undecided []string // ids of those that wait, and of those that have not registered
	unlisted           int      // that were ordered and that the engine does not list yet
	running            int
}

// look notes what became of the jobs. Others is how many slots of workers are free that
// this launcher did not start, strays are jobs that can bring nothing any more.
func (p *Planner) look(now time.Time, seen Seen, first bool) (have map[string]*supply, others int, strays []string) {
	workers, listed, have := map[string]Worker{}, map[string]bool{}, map[string]*supply{}
	for _, one := range seen.Workers {
		workers[one.Launch] = one
		if p.Memory.Launches[one.Launch] == nil && !slices.ContainsFunc(seen.Jobs, func(job Job) bool { return job.Launch == one.Launch }) {
			others += max(0, one.Slots-one.Trials)
		}
	}
	for _, shape := range p.Shapes {
		have[shape.Name] = &supply{}
	}
	of := func(shape string) *supply {
		if have[shape] == nil {
			have[shape] = &supply{} // one that is not in the file any more
		}
		return have[shape]
	}
	for _, job := range seen.Jobs {
		if !launchName.MatchString(job.Launch) {
			continue // the server would refuse it, so it is none of ours
		}
		h := p.Memory.Launches[job.Launch]
		if h == nil {
			h = &launched{Job: job, Accepted: true, Over: first && job.State == Ended}
			p.Memory.Launches[job.Launch] = h
		}
		if twice := h.Listed && h.Job.ID != job.ID; twice || h.Over {
			if job.State == Pending || job.State == Running {
				strays = append(strays, job.ID) // the token of its launch is used, or has ended
			}
			if !twice {
				h.Seen = now
			}
			continue
		}
		if listed[job.Launch] {
			continue // an engine may list one twice
		}
		listed[job.Launch] = true
		h.Job, h.Listed, h.Seen, h.Missed = job, true, now, 0
		p.follow(now, h, workers, of(job.Shape))
	}
	for _, launch := range slices.Sorted(maps.Keys(p.Memory.Launches)) {
		if h := p.Memory.Launches[launch]; !listed[launch] {
			p.miss(now, h, workers, of(h.Job.Shape))
		}
	}
	for _, shape := range p.Shapes {
		p.Memory.record(shape.Name).spend(now, p.Memory.At, float64(have[shape.Name].running*shape.GPUs))
	}
	return have, others, strays
}

// follow notes what a job does, and adds it to what there is of its shape.
func (p *Planner) follow(now time.Time, h *launched, workers map[string]Worker, of *supply) {
	r := p.Memory.record(h.Job.Shape)
	if worker, registered := workers[h.Job.Launch]; registered {
		if h.Registered.IsZero() {
			h.Registered = now
		}
		h.Worked = h.Worked || worker.Trials > 0
		if h.Job.State == Pending {
			h.Job.State = Running // its engine has yet to say so: a pod's kubelet tells it later
		}
		if h.Job.State == Running {
			of.free += max(0, worker.Slots-worker.Trials)
		}
	}
	if h.Job.State != Pending && h.Started.IsZero() {
		h.Started = now
		if !h.Ordered.IsZero() && h.Job.State == Running {
			r.Waits = append(r.Waits, now.Sub(h.Ordered))
			r.Waits = r.Waits[max(0, len(r.Waits)-mostWaits):]
		}
	}
	if h.Worked {
		r.Barren, r.Pause = 0, 0
	}
	switch h.Job.State {
	case Ended:
		p.ended(now, h)
		return
	case Pending:
		of.pending = append(of.pending, h.Job.ID)
	case Running:
		of.running++
		if h.Registered.IsZero() {
			of.undecided = append(of.undecided, h.Job.ID)
		}
	case Leaving:
		of.running++
	}
	of.alive++
}

// miss notes that a job is not listed. For a while that says nothing, and nothing at all
// while its worker is heard of.
func (p *Planner) miss(now time.Time, h *launched, workers map[string]Worker, of *supply) {
	if h.Over {
		if now.Sub(h.Seen) > remembered {
			delete(p.Memory.Launches, h.Job.Launch)
		}
		return
	}
	if _, heard := workers[h.Job.Launch]; heard {
		h.Job.State, h.Missed, h.Seen = Running, 0, now
		p.follow(now, h, workers, of)
		return
	}
	if h.TakenBack { // some engines list nothing that never began
		h.Job.State, h.Job.Cause, h.Job.Why = Ended, protocol.Cancelled, protocol.Cancelled.Words()
		p.ended(now, h)
		return
	}
	if h.Missed++; h.Missed < forgets || now.Sub(h.Seen) < patience {
		of.alive++
		if h.Registered.IsZero() {
			of.unlisted++
		}
		if h.Job.State != Pending {
			of.running++
		}
		return
	}
	switch {
	case !h.Accepted: // the order was refused, or never placed
		h.Over = true
		p.Memory.Over = append(p.Memory.Over, h.Job.Launch)
		return
	case !h.Listed:
		h.Job.Why = "the engine took the order and never listed the job"
	case h.Registered.IsZero():
		h.Job.Why = "the engine does not know the job any more, and its worker never registered"
	default:
		h.Job.Why = "the engine does not know the job any more, and its worker is gone"
	}
	h.Job.State = Ended
	p.ended(now, h)
}

// takeBack notes which jobs are cancelled.
func (m *Memory) takeBack(ids []string) {
	for _, h := range m.Launches {
		h.TakenBack = h.TakenBack || h.Listed && slices.Contains(ids, h.Job.ID)
	}
}

// ended judges a worker that is over. One that was preempted, cancelled, or has not been
// idle for its time says nothing against its shape.
func (p *Planner) ended(now time.Time, h *launched) {
	h.Over = true
	job := h.Job
	end := crew.LaunchEnd{At: now, Shape: job.Shape, Launch: job.Launch, Job: job.ID, Node: job.Node, Cause: job.Cause, Why: job.Why, Worked: h.Worked}
	if !h.Started.IsZero() {
		end.Seconds = now.Sub(h.Started).Seconds()
	}
	p.Memory.note(end)
	p.Memory.Over = append(p.Memory.Over, job.Launch)
	waited := !h.Registered.IsZero() && now.Sub(h.Registered) >= p.Idle
	vanished := job.Cause == "" && h.Registered.IsZero()
	if h.Worked || job.Blameless() || !job.Failed() && !waited && !vanished {
		return
	}
	p.Memory.record(job.Shape).blame(now, job.Why)
}

// blame notes that an order brought no trial: after some in a row no more are placed for
// a while.
func (r *record) blame(now time.Time, why string) {
	r.Barren++
	r.Why = clip(why, 1024)
	if r.Barren = min(r.Barren, fruitless); r.Barren == fruitless && !now.Before(r.Until) { // others may have been under way
		r.Pause = min(max(firstPause, 2*r.Pause), longestPause)
		r.Until, r.Barren = now.Add(r.Pause), fruitless-1 // the next one alone decides
	}
}

// note keeps how something ended.
func (m *Memory) note(end crew.LaunchEnd) {
	end.Job, end.Node, end.Why = clip(end.Job, 128), clip(end.Node, 256), clip(end.Why, 512)
	m.Ends = slices.Insert(m.Ends, 0, end)
	m.Ends = m.Ends[:min(len(m.Ends), mostEnds)]
}

// clip keeps what the server takes of a text.
func clip(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

// spend charges the time since the last plan.
func (r *record) spend(now, last time.Time, gpus float64) {
	if day := now.UTC().Format(time.DateOnly); day != r.Day {
		r.Day, r.GPUHours = day, 0
	}
	if !last.IsZero() {
		r.GPUHours += gpus * now.Sub(last).Hours()
	}
	for len(r.Started) > 0 && now.Sub(r.Started[0]) >= time.Hour {
		r.Started = r.Started[1:]
	}
}

// Answered notes what the engine said to an order of [Planner.Plan]. What it refused may
// have been taken in part.
func (p *Planner) Answered(now time.Time, order Order, refused error) {
	if refused != nil {
		why := refused.Error()
		p.Memory.note(crew.LaunchEnd{At: now, Shape: order.Shape.Name, Launch: order.ID, Why: "the engine refused the order: " + why})
		p.Memory.record(order.Shape.Name).blame(now, why)
		return
	}
	for i := range order.Count {
		p.Memory.Launches[order.Launch(i)].Accepted = true
	}
}

// TryAgain ends the hold of a shape: one worker alone is started then, and decides.
func (p *Planner) TryAgain(now time.Time, shape string) {
	if r := p.Memory.Shapes[shape]; r != nil && now.Before(r.Until) {
		r.Until = now
	}
}

// Told notes that the server knows that the launches are over.
func (p *Planner) Told(over []string) {
	p.Memory.Over = slices.DeleteFunc(p.Memory.Over, func(launch string) bool { return slices.Contains(over, launch) })
}

// Ended returns the job of a launch that has ended for good.
func (p *Planner) Ended(launch string) (job Job, ended bool) {
	if h := p.Memory.Launches[launch]; h != nil && h.Over {
		return h.Job, true
	}
	return job, false
}

// unnamed is what is said of a worker that was ordered and that the engine does not list.
const unnamed = "was asked for, and the engine does not list it yet"

// ordered notes the workers of an order that is about to be placed.
func (m *Memory) ordered(now time.Time, order Order) {
	for i := range order.Count {
		job := Job{Launch: order.Launch(i), Shape: order.Shape.Name, State: Pending, Why: unnamed}
		m.Launches[job.Launch] = &launched{Job: job, Ordered: now, Seen: now}
	}
}
