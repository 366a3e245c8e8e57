package study

import (
	"cmp"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Demand is what trials take and wait for at the moment, by owner, and the workers that
// could run them. It asks the store for nothing, so that it can be taken often.
//
// What trials take is what is out on leases. What waits are the queued trials of
// running studies, and one more for each running study whose search would begin
// another trial: how many a search could use at once is not known, and a study
// that nothing runs yet must be seen. A study's bound on trials at once bounds both.
func (s *Service) Demand() demand.Look {
	look := demand.Look{Owners: make(map[string]demand.Want)}
	for _, r := range s.loaded() {
		r.mutex.Lock()
		if want := r.want(); want.Total() > 0 {
			look.Owners[r.owner] = look.Owners[r.owner].Plus(want)
		}
		r.mutex.Unlock()
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	look.Hosts = s.hosts()
	return look
}

// hosts are the workers, and those that are away and that advice drained, or took
// back so that somebody wakes them. The pool's lock is held.
func (s *Service) hosts() []demand.Host {
	now := s.options.Now()
	var hosts []demand.Host
	here := make(map[drainKey]bool)
	for _, member := range s.workers.Members() {
		hosts = append(hosts, s.host(member, now))
		here[drainKey{member.Registration.Name, member.Holder}] = true
	}
	away := func(key drainKey, capacity float64, drained time.Time) {
		if advised := !drained.IsZero(); !here[key] {
			hosts = append(hosts, demand.Host{ID: key.Name, Name: key.Name, Holder: key.Holder, Capacity: capacity, Silent: true, Draining: advised, Advised: advised, Drained: drained})
		}
	}
	for key, drain := range s.rules.drains {
		if drain.Advised {
			away(key, drain.Capacity, drain.Since)
		}
	}
	last := make(map[drainKey]demand.Change)
	for _, one := range s.rules.changes {
		if !one.Pretended {
			last[drainKey{one.Worker, one.Holder}] = one
		}
	}
	for key, one := range last {
		if _, drained := s.rules.drains[key]; !drained && one.Action == demand.Wake && one.Asleep && now.Sub(one.At) < forgetWorkersAfter {
			away(key, one.Capacity, time.Time{})
		}
	}
	slices.SortStableFunc(hosts, func(a, b demand.Host) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return hosts
}

// want is what the trials of a study take and wait for.
func (r *runtime) want() demand.Want {
	want := demand.Want{}
	if r.study.Status.Over() && r.held == 0 {
		return want
	}
	if each, constant := r.places(); constant {
		want.Running = float64(r.held) * each
	} else {
		for _, t := range r.trials {
			if t.State.Held() {
				want.Running += placesOf(t)
			}
		}
	}
	if r.study.Status != protocol.StudyRunning || len(r.study.Definition.Command) == 0 || r.broken != nil {
		return want
	}
	each, _ := r.places()
	waiting := len(r.queue)
	if waiting == 0 && r.mayStart() {
		waiting = 1
	}
	if most := r.study.Definition.Parallel; most > 0 {
		waiting = min(waiting, max(0, most-r.held)) // more would not run at once
	}
	want.Waiting = float64(waiting) * each
	return want
}

// places is how many GPUs each trial of the study takes: at least one, which
// stands for a slot where there are none, or which part of one. It is no constant
// where they are tuned or shared.
func (r *runtime) places() (each float64, constant bool) {
	if r.study.Definition.SharesGPUs() {
		return max(leastPlace, r.typicalFraction()), false
	}
	least, most := r.gpus()
	return float64(max(1, least)), least == most
}

// leastPlace is the smallest part of a GPU that a trial counts as.
const leastPlace = 0.01

// placesOf is how many GPUs the trial runs with, at least one, or which part of
// one.
func placesOf(t trial.Trial) float64 {
	if t.GPUShare != nil {
		return max(leastPlace, t.GPUShare.Fraction)
	}
	return float64(max(1, len(t.GPUs)))
}

// host is a worker as far as its room goes. The pool's lock is held.
//
// An elastic worker without GPUs has room for what it runs and, unless a trial
// was ready that it had no room for, for one more.
func (s *Service) host(member pool.Member, now time.Time) demand.Host {
	registration, held := member.Registration, s.leases.HeldBy(member.Registration.ID)
	host := demand.Host{
		ID: registration.ID, Name: registration.Name, Holder: member.Holder, Trials: len(held), Silent: now.Sub(member.LastSeen) >= s.leaseTerm(),
		Capacity: float64(max(1, registration.Slots)),
	}
	if drain := s.drainOf(member); drain != nil {
		host.Draining, host.Advised = true, drain.Advised
		if drain.Advised {
			host.Drained = drain.Since
		}
	}
	switch {
	case len(registration.Machine.GPUs) > 0:
		host.Capacity, host.GPUs = float64(len(registration.Machine.GPUs)), true
	case registration.Elastic && member.Short:
		host.Capacity = float64(max(1, len(held)))
	case registration.Elastic:
		host.Capacity = float64(min(len(held)+1, max(1, registration.Slots)))
	}
	return host
}
