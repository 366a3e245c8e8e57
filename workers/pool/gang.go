package pool

import (
	"cmp"
	"slices"
	"time"
)

// Gang is a study whose next trial needs more of one machine than is free on any.
type Gang struct {
	Study    string
	Priority int
	Need     Need
	// Since is when it was first found to wait.
	Since time.Time
	// Passed counts the trials of others that have started since on machines that
	// it could have had.
	Passed int
	// Worker is the id of the worker that is kept for it; empty: none is yet.
	Worker string
}

// Gangs are the studies that wait so. Only the oldest of the highest priority is
// let pass by a bounded number of trials, and then one machine is kept for it:
// nothing of its priority or a lower one starts there until it does. So a large
// trial waits for the trials that run on one machine, and for no more; and small
// ones go on everywhere else (the reservation of backfilling schedulers, Lifka,
// The ANL/IBM SP scheduling system, JSSPP 1995, with a bound on how many may
// pass in place of run times, which nobody knows here). The zero value is empty
// and ready.
type Gangs struct {
	waiting []Gang // in order
}

// Option is a worker that a gang could run on if others made way.
type Option struct {
	Worker, Name string
	// FreeGPUs and FreeCores are what no trial has there.
	FreeGPUs, FreeCores int
}

// passes is how many trials may pass a gang before a machine is kept for it.
func passes(need Need) int { return 2 * max(1, need.GPUs) }

// Wait notes that the study's next trial found no room, and what could make room.
func (g *Gangs) Wait(gang Gang, options []Option) {
	at := slices.IndexFunc(g.waiting, func(one Gang) bool { return one.Study == gang.Study })
	if at < 0 {
		g.waiting = append(g.waiting, gang)
	} else {
		kept := g.waiting[at]
		gang.Since, gang.Passed, gang.Worker = kept.Since, kept.Passed, kept.Worker
		g.waiting[at] = gang
	}
	g.sort()
	first := &g.waiting[0]
	if first.Study != gang.Study || first.Passed < passes(first.Need) {
		return
	}
	for i := range g.waiting[1:] { // one machine at a time is kept
		g.waiting[i+1].Worker = ""
	}
	if !slices.ContainsFunc(options, func(one Option) bool { return one.Worker == first.Worker }) {
		first.Worker = best(options)
	}
}

// Restate notes the study's priority, if it waits.
func (g *Gangs) Restate(study string, priority int) {
	for i := range g.waiting {
		if g.waiting[i].Study == study {
			g.waiting[i].Priority = priority
		}
	}
	g.sort()
}

func (g *Gangs) sort() {
	slices.SortStableFunc(g.waiting, func(a, b Gang) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since))
	})
}

// best is the worker with the most that is free; empty without options.
func best(options []Option) string {
	if len(options) == 0 {
		return ""
	}
	return slices.MinFunc(options, func(a, b Option) int {
		return cmp.Or(cmp.Compare(b.FreeGPUs, a.FreeGPUs), cmp.Compare(b.FreeCores, a.FreeCores), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Worker, b.Worker))
	}).Worker
}

// Gone forgets the study: its trial has started, or it has none that waits for room.
func (g *Gangs) Gone(study string) {
	g.waiting = slices.DeleteFunc(g.waiting, func(one Gang) bool { return one.Study == study })
}

// Lost notes that the study may not run on the worker after all: it is kept for
// it no more.
func (g *Gangs) Lost(study, worker string) {
	for i, one := range g.waiting {
		if one.Study == study && one.Worker == worker {
			g.waiting[i].Worker = ""
		}
	}
}

// Keep forgets the studies that have no work any more.
func (g *Gangs) Keep(works func(study string) bool) {
	g.waiting = slices.DeleteFunc(g.waiting, func(one Gang) bool { return !works(one.Study) })
}

// Empty reports whether nothing waits.
func (g *Gangs) Empty() bool { return len(g.waiting) == 0 }

// Pass notes that a trial of the study has started on the machine.
func (g *Gangs) Pass(study string, priority int, machine Member) {
	if len(g.waiting) == 0 {
		return
	}
	if first := &g.waiting[0]; first.Study != study && priority <= first.Priority && empty(machine).Fits(first.Need) {
		first.Passed++
	}
}

// Keeps returns the gang that the worker is kept for, if that is not for this
// study and comes before it.
func (g *Gangs) Keeps(worker, study string, priority int) (Gang, bool) {
	if len(g.waiting) == 0 {
		return Gang{}, false
	}
	first := g.waiting[0]
	return first, first.Worker == worker && first.Study != study && priority <= first.Priority
}

// Cleared is the worker that is kept for the first of them; empty: none is.
func (g *Gangs) Cleared() string {
	if len(g.waiting) == 0 {
		return ""
	}
	return g.waiting[0].Worker
}

// Waiting returns the gang of the study, if it waits.
func (g *Gangs) Waiting(study string) (Gang, bool) {
	for _, one := range g.waiting {
		if one.Study == study {
			return one, true
		}
	}
	return Gang{}, false
}
