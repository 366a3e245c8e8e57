package demand

import "time"

// Pace keeps whoever acts on advice from doing so too often: what is wanted
// changes every minute, and waking and sleeping take minutes and cost energy.
type Pace struct {
	// Steady is how many times in a row a host must be advised to drain before it
	// is. Waking does not wait: trials do.
	Steady int
	// Pause is how long a host is left alone after it was woken or drained.
	Pause time.Duration

	drains map[string]int
	acted  map[string]time.Time
}

// Machines stands for machines that no host is known of.
const Machines = ""

// Due are those of the steps that are to be done at the time, and counts them as
// done. Missing is how many GPUs no known host has; more reports whether machines
// for them are to be started.
func (p *Pace) Due(now time.Time, steps []Step, missing float64) (due []Step, more bool) {
	if p.drains == nil {
		p.drains, p.acted = make(map[string]int), make(map[string]time.Time)
	}
	known := map[string]bool{Machines: true}
	for _, step := range steps {
		id := step.Host.ID
		known[id] = true
		if step.Action != Drain {
			delete(p.drains, id)
		} else {
			p.drains[id]++
		}
		if step.Action == Keep || step.Action == Drain && p.drains[id] < p.Steady || !p.rested(id, now) {
			continue
		}
		p.acted[id] = now
		delete(p.drains, id)
		due = append(due, step)
	}
	for id := range p.drains {
		if !known[id] {
			delete(p.drains, id)
		}
	}
	for id, at := range p.acted {
		if !known[id] && now.Sub(at) >= p.Pause {
			delete(p.acted, id)
		}
	}
	if missing > 0 && p.rested(Machines, now) {
		p.acted[Machines] = now
		more = true
	}
	return due, more
}

func (p *Pace) rested(id string, now time.Time) bool {
	at, acted := p.acted[id]
	return !acted || now.Sub(at) >= p.Pause
}
