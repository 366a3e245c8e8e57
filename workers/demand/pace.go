package demand

import "time"

// Pace keeps whoever acts on advice from doing so too often: what is wanted
// changes every minute, and waking and sleeping take minutes and cost energy.
type Pace struct {
	// Steady is how many times in a row a host must be advised to drain, or to
	// sleep, before it is. Waking does not wait: trials do.
	Steady int
	// Pause is how long a host that was woken is left alone, and one that was
	// drained or put to sleep is not drained or put to sleep again.
	Pause time.Duration

	advised map[string]int
	acted   map[string]act
}

// act is the last thing that was done with a host.
type act struct {
	at     time.Time
	action Action
}

// Machines stands for machines that no host is known of.
const Machines = ""

// Due are those of the steps that are to be done at the time, and counts them as
// done. Missing is how many GPUs no known host has; more reports whether machines
// for them are to be started.
func (p *Pace) Due(now time.Time, steps []Step, missing float64) (due []Step, more bool) {
	if p.advised == nil {
		p.advised = make(map[string]int)
	}
	known := map[string]bool{Machines: true}
	for _, step := range steps {
		id, rests := step.Host.ID, step.Action == Drain || step.Action == Sleep
		known[id] = true
		if rests {
			p.advised[id]++
		} else {
			delete(p.advised, id)
		}
		if step.Action == Keep || rests && p.advised[id] < p.Steady || !p.rested(id, step.Action, now) {
			continue
		}
		p.Acted(id, step.Action, now)
		delete(p.advised, id)
		due = append(due, step)
	}
	for id := range p.advised {
		if !known[id] {
			delete(p.advised, id)
		}
	}
	for id, last := range p.acted {
		if !known[id] && now.Sub(last.at) >= p.Pause {
			delete(p.acted, id)
		}
	}
	if missing > 0 && p.rested(Machines, Wake, now) {
		p.Acted(Machines, Wake, now)
		more = true
	}
	return due, more
}

// Acted notes what was last done with a host.
func (p *Pace) Acted(id string, action Action, at time.Time) {
	if p.acted == nil {
		p.acted = make(map[string]act)
	}
	p.acted[id] = act{at, action}
}

// rested reports whether a host may be changed again. What was put to sleep is woken
// whenever it is wanted.
func (p *Pace) rested(id string, action Action, now time.Time) bool {
	last, acted := p.acted[id]
	return !acted || now.Sub(last.at) >= p.Pause || action == Wake && last.action != Wake || action == Sleep && last.action == Drain
}
