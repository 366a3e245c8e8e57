package demand

import (
	"cmp"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/workers/pool"
)

// Workers names the workers of one name and holder, which are drained together.
type Workers struct{ Name, Holder string }

// HostOf is a worker that runs so many trials.
//
// An elastic worker without GPUs has room for its trials and, unless a trial was ready
// that it had no room for, for one more.
func HostOf(member pool.Member, trials int, silent bool) Host {
	registration := member.Registration
	host := Host{ID: registration.ID, Name: registration.Name, Holder: member.Holder, Trials: trials, Silent: silent, Capacity: float64(max(1, registration.Slots))}
	switch {
	case len(registration.Machine.GPUs) > 0:
		host.Capacity, host.GPUs = float64(len(registration.Machine.GPUs)), true
	case registration.Elastic && member.Short:
		host.Capacity = float64(max(1, trials))
	case registration.Elastic:
		host.Capacity = float64(min(trials+1, max(1, registration.Slots)))
	}
	return host
}

// Drained is a drain of workers, by a person or by advice.
type Drained struct {
	Since time.Time
	// Advised says that it is by advice, and Capacity what they had then.
	Advised  bool
	Capacity float64
}

// WithAbsent adds to the hosts those that are away and that advice drained, or took
// back within the span so that somebody wakes them. The hosts come sorted by name.
func WithAbsent(hosts []Host, drains map[Workers]Drained, changes []Change, now time.Time, span time.Duration) []Host {
	here := make(map[Workers]bool)
	for _, one := range hosts {
		here[Workers{one.Name, one.Holder}] = true
	}
	add := func(key Workers, capacity float64, drained time.Time) {
		if draining := !drained.IsZero(); !here[key] {
			hosts = append(hosts, Host{ID: key.Name, Name: key.Name, Holder: key.Holder, Capacity: capacity, Silent: true, Draining: draining, Advised: draining, Drained: drained})
		}
	}
	for key, drain := range drains {
		if drain.Advised {
			add(key, drain.Capacity, drain.Since)
		}
	}
	last := make(map[Workers]Change)
	for _, one := range changes {
		if !one.Pretended {
			last[Workers{one.Worker, one.Holder}] = one
		}
	}
	for key, one := range last {
		if one.Action == Wake && one.Asleep && now.Sub(one.At) < span {
			if _, drained := drains[key]; !drained {
				add(key, one.Capacity, time.Time{})
			}
		}
	}
	slices.SortStableFunc(hosts, func(a, b Host) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return hosts
}

const (
	// mostChanges is how many changes are kept, and mostRemembered with the last ones of
	// other workers: whether their drains were taken back follows from that.
	mostChanges, mostRemembered = 200, 2000
)

// Remember returns the newest changes, and of those before them the last of each worker.
func Remember(changes []Change) []Change {
	type whose struct {
		Workers
		pretended bool
	}
	known := make(map[whose]bool)
	var list []Change
	for i, one := range slices.Backward(changes) {
		key := whose{Workers{one.Worker, one.Holder}, one.Pretended}
		if len(changes)-i <= mostChanges || !known[key] && len(list) < mostRemembered {
			list = append(list, one)
		}
		known[key] = true
	}
	slices.Reverse(list)
	return list
}
