package demand

import "github.com/tandem-tune/tandem/workers/pool"

// HostOf is a worker that runs so many trials.
//
// An elastic worker without GPUs has room for its trials and, unless a trial was ready
// that it had no room for, for one more.
func HostOf(member pool.Member, trials int, silent bool) Host {
	registration := member.Registration
	host := Host{ID: registration.ID, Name: registration.Name, Trials: trials, Silent: silent, Capacity: float64(max(1, registration.Slots))}
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
