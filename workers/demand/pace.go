package demand

import "time"

// Pace keeps whoever drains by advice from doing so too often: what is wanted
// changes every minute, and waking and sleeping take minutes and cost energy.
type Pace struct {
	// Steady is how many times in a row a host must be advised to drain before it is.
	Steady int
	// Pause is how long a host that was woken or drained is not drained again.
	Pause time.Duration

	advised map[string]int
	acted   map[string]time.Time
}

// Due are those of the steps that drain a host and are to be done at the time, and
// counts them as done.
func (p *Pace) Due(now time.Time, steps []Step) (due []Step) {
	advised, known := make(map[string]int), make(map[string]bool)
	for _, step := range steps {
		id := step.Host.ID
		known[id] = true
		if step.Action != Drain {
			continue
		}
		if advised[id] = p.advised[id] + 1; advised[id] < p.Steady || now.Sub(p.acted[id]) < p.Pause {
			continue
		}
		p.Acted(id, now)
		delete(advised, id)
		due = append(due, step)
	}
	p.advised = advised
	for id, last := range p.acted {
		if !known[id] && now.Sub(last) >= p.Pause {
			delete(p.acted, id)
		}
	}
	return due
}

// Acted notes when something was last done with a host.
func (p *Pace) Acted(id string, at time.Time) {
	if p.acted == nil {
		p.acted = make(map[string]time.Time)
	}
	p.acted[id] = at
}
