// Package scheduler decides what should run where: it answers from values, and owns no
// worker and no study.
package scheduler

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/rules"
)

// awayFits reports whether a worker that is away, of which no more is known than how it
// was drained by advice, could run the study.
func awayFits(ask allocator.Ask, name rules.WorkerName, capacity float64) bool {
	user, ofUser := access.UserOf(name.Holder)
	return capacity >= float64(ask.Need(1).GPUs) && (!ofUser || user == ask.Owner)
}

// Runnable reports whether a worker that is known could run a trial of the study if it
// ran nothing else; also while none is known at all.
func Runnable(p allocator.Snapshot, ask allocator.Ask) bool {
	if len(p.Workers) == 0 || slices.ContainsFunc(p.Workers, func(one allocator.Standing) bool { return ask.Fits(one.Member) }) {
		return true
	}
	for name, drain := range p.Rules.Drains {
		if drain.Advised && awayFits(ask, name, drain.Capacity) && !slices.ContainsFunc(p.Workers, func(one allocator.Standing) bool { return name == rules.NameOf(one.Member) }) {
			return true
		}
	}
	return false
}

// Hosts are the workers, and those that are away and that advice drained, or took
// back so that somebody wakes them.
func Hosts(p allocator.Snapshot) []demand.Host {
	var hosts []demand.Host
	for _, worker := range p.Workers {
		one := demand.HostOf(worker.Member, len(worker.Trials), !worker.Alive)
		if drain := worker.Drain; drain != nil {
			one.Draining, one.Advised = true, drain.Advised
			if drain.Advised {
				one.Drained = drain.Since
			}
		}
		hosts = append(hosts, one)
	}
	drains := make(map[demand.Workers]demand.Drained, len(p.Rules.Drains))
	for name, drain := range p.Rules.Drains {
		drains[demand.Workers(name)] = demand.Drained{Since: drain.Since, Advised: drain.Advised, Capacity: drain.Capacity}
	}
	return demand.WithAbsent(hosts, drains, p.Rules.Changes, p.Now, allocator.ForgetWorkersAfter)
}

// Sought is the one worker that takes trials and is eligible for the study: without
// it, it would be sought at once. Where several are, there is none. Where none is, it is
// whom the study waits for, if it waits, that advice drained: one that is heard of
// before one that sleeps.
func Sought(p allocator.Snapshot, ask allocator.Ask, waits bool) (name rules.WorkerName, some bool) {
	need := ask.Need(1)
	const awake = -1 // before all that are drained
	here, best := make(map[rules.WorkerName]bool), math.MaxInt
	offer := func(one rules.WorkerName, rank int) {
		if rank < best || rank == best && one.Entry() < name.Entry() {
			name, best, some = one, rank, true
		}
	}
	for _, worker := range p.Workers {
		one := rules.NameOf(worker.Member)
		here[one] = true
		if !ask.Eligible(worker.Member) || !pool.RoomOf(worker.Member, nil).Fits(need) {
			continue
		}
		switch drain := worker.Drain; {
		case drain == nil && worker.Alive && best == awake && name != one:
			return rules.WorkerName{}, false
		case drain == nil && worker.Alive:
			name, best, some = one, awake, true
		case drain != nil && drain.Advised && worker.Alive:
			offer(one, 0)
		case drain != nil && drain.Advised:
			offer(one, 1)
		}
	}
	for one, drain := range p.Rules.Drains { // of those that said goodbye no more is known
		if drain.Advised && !here[one] && awayFits(ask, one, drain.Capacity) {
			offer(one, 2)
		}
	}
	if best != awake && !waits {
		return rules.WorkerName{}, false
	}
	return name, some
}

// Slots is how many trials the workers run at once that were heard of, at least one:
// elastic ones as many as there was room for.
func Slots(p allocator.Snapshot) int {
	slots := 0
	for _, worker := range p.Workers {
		switch {
		case !worker.Alive:
		case worker.Registration.Elastic:
			slots += max(1, len(worker.Trials))
		default:
			slots += max(1, worker.Registration.Slots)
		}
	}
	return max(1, slots)
}

// Sprints is what all workers that were heard of have left for sprints.
func Sprints(p allocator.Snapshot) (sum protocol.SprintAccount) {
	for _, worker := range p.Workers {
		if account := worker.Sprint; account != nil && worker.Alive {
			sum.Joules, sum.Of, sum.Watts = sum.Joules+account.Joules, sum.Of+account.Of, sum.Watts+account.Watts
			sum.ExtraWatts = max(sum.ExtraWatts, account.ExtraWatts) // of one trial, at most
		}
	}
	return sum
}
