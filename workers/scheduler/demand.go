// Package scheduler decides what should run where: it answers from values, and owns no
// worker and no study.
package scheduler

import (
	"slices"

	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/demand"
)

// Runnable reports whether a worker that is known could run a trial of the study if it
// ran nothing else; also while none is known at all.
func Runnable(p allocator.Snapshot, ask allocator.Ask) bool {
	return len(p.Workers) == 0 || slices.ContainsFunc(p.Workers, func(one allocator.Standing) bool { return ask.Fits(one.Member) })
}

// Hosts are the workers.
func Hosts(p allocator.Snapshot) []demand.Host {
	hosts := make([]demand.Host, 0, len(p.Workers))
	for _, worker := range p.Workers {
		one := demand.HostOf(worker.Member, len(worker.Trials), !worker.Alive)
		one.Draining = worker.Drain != nil
		hosts = append(hosts, one)
	}
	return hosts
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
