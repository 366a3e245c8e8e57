package replay

import (
	"cmp"
	"slices"
)

// turnTo puts idle machines to sleep, or wakes some up, until as many GPUs are
// awake as are wanted, or just more. Those that draw the most idle go to sleep
// first, and wake up last. Where machines have no GPUs, each counts for one.
func (e *engine) turnTo(wanted int) {
	there := 0
	var idle, away []int
	for at := range e.hosts {
		switch one := &e.hosts[at]; {
		case one.power == asleep:
			away = append(away, at)
		case one.power == awake && one.jobs == 0:
			idle = append(idle, at)
			there += one.size()
		default:
			there += one.size()
		}
	}
	hungry := func(a, b int) int {
		return cmp.Or(cmp.Compare(e.Type(b).IdleWatts, e.Type(a).IdleWatts), cmp.Compare(b, a))
	}
	slices.SortFunc(idle, hungry)
	for _, at := range idle {
		if there-e.hosts[at].size() >= wanted {
			there -= e.hosts[at].size()
			e.sleep(at)
		}
	}
	slices.SortFunc(away, func(a, b int) int { return hungry(b, a) })
	for _, at := range away {
		if there < wanted {
			there += e.hosts[at].size()
			e.rouse(at)
		}
	}
}

// size is what a machine counts for.
func (h *host) size() int { return max(1, len(h.gpus)) }

func (e *engine) sleep(at int) {
	e.leave(at)
	e.hosts[at].power = asleep
	e.account.turn(e.Type(at), awake, asleep)
}

func (e *engine) rouse(at int) {
	e.hosts[at].power = waking
	e.account.turn(e.Type(at), asleep, waking)
	e.push(event{at: e.now + e.Type(at).WakeSeconds, what: wakes, place: at})
}

// wake wakes sleeping machines up that a waiting job has room on, unless as many
// GPUs wake up already as are waited for.
func (e *engine) wake(job *Waiting) {
	if e.policy.Knob == nil {
		return
	}
	coming := 0
	for at := range e.hosts {
		if e.hosts[at].power == waking {
			coming += e.hosts[at].size()
		}
	}
	for at := range e.hosts {
		if coming >= max(e.waiting.gpus, e.waiting.count) {
			return
		}
		if one := &e.hosts[at]; one.power == asleep && one.free.Holds(job.Needs) && job.RunsOn(e.Type(at)) {
			coming += one.size()
			e.rouse(at)
		}
	}
}
