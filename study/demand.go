package study

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Demand is what trials take and wait for at the moment, by owner, and the workers that
// could run them. It asks the store for nothing, so that it can be taken often.
//
// What trials take is what is out on leases. What waits are the trials that a study
// could start now: those of its queue, and those that its search would begin, up to
// what its file, its budgets and its owner's quota leave. Where a study does not bound
// how many run at once, it waits for its queue, and for as much of the rest as there is
// a place for, workers that advice drained included; for one trial at least. A trial
// that no worker could ever run is not waited for: the study says so.
func (s *Service) Demand() demand.Look {
	asks := s.asks()
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	look := demand.Look{Owners: make(map[string]demand.Want), Hosts: s.hosts()}
	for _, one := range asks {
		if one.running > 0 {
			look.Owners[one.owner] = look.Owners[one.owner].Plus(demand.Want{Running: one.running})
		}
	}
	books, free := s.quotaBooks(), look.Reach()-look.Want().Total()
	for _, one := range asks {
		free -= s.await(&look, books, one, one.ready)
	}
	for _, one := range asks {
		if one.more > 0 && free >= one.each {
			free -= s.await(&look, books, one, min(one.more, int(free/one.each)))
		}
	}
	return look
}

// ask is what a study takes and could start now.
type ask struct {
	owner, study string
	priority     int
	// running is what its trials have, in GPUs or slots.
	running float64
	// ready is how many trials wait, whatever there is, and more how many beside them
	// take what is left. Each takes so many GPUs or slots.
	ready, more int
	each        float64
	need        pool.Need
}

// asks are those of all studies, those of the highest priority first.
func (s *Service) asks() []ask {
	var asks []ask
	for _, r := range s.loaded() {
		r.mutex.Lock()
		one := r.ask()
		if one.ready > 0 {
			s.poolMutex.Lock()
			if one.need = s.need(r, 1); !s.runnable(r) {
				one.ready, one.more = 0, 0
			}
			s.poolMutex.Unlock()
		}
		r.mutex.Unlock()
		if one.running > 0 || one.ready > 0 {
			asks = append(asks, one)
		}
	}
	slices.SortFunc(asks, func(a, b ask) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.study, b.study))
	})
	return asks
}

// await adds so many trials of the study to what its owner waits for, as far as the
// owner's quota lets them start. It returns what that is in GPUs or slots. The pool's
// lock is held.
func (s *Service) await(look *demand.Look, books map[string]pool.Amount, one ask, trials int) float64 {
	if quota, has := s.rules.quotas[one.owner]; has {
		trials = min(trials, quota.More(books[one.owner], s.spentBy(one.owner), one.need))
	}
	if trials <= 0 {
		return 0
	}
	books[one.owner] = books[one.owner].Plus(pool.Amount{Trials: trials, GPUs: float64(trials) * one.need.HeldGPUs()})
	waiting := float64(trials) * one.each
	look.Owners[one.owner] = look.Owners[one.owner].Plus(demand.Want{Waiting: waiting})
	return waiting
}

// quotaBooks are what the owners have that have a quota. The pool's lock is held.
func (s *Service) quotaBooks() map[string]pool.Amount {
	books := make(map[string]pool.Amount, len(s.rules.quotas))
	for owner := range s.rules.quotas {
		books[owner] = s.holdings().ByOwner[owner]
	}
	return books
}

// runnable reports whether a worker that is known could run a trial of the study if it
// ran nothing else; also while none is known at all. Of one that is away no more is
// known than its capacity. The pool's lock is held.
func (s *Service) runnable(r *session) bool {
	members, needs := s.workers.Members(), s.needs(r)
	for _, member := range members {
		if suited(r, member) && pool.RoomOf(member, nil).Fits(needs(max(1, member.Registration.Machine.Cores))) {
			return true
		}
	}
	for key, drain := range s.rules.drains {
		if user, ofUser := strings.CutPrefix(key.Holder, "user:"); drain.Advised && drain.Capacity >= float64(needs(1).GPUs) && (!ofUser || user == r.owner) &&
			!slices.ContainsFunc(members, func(m pool.Member) bool { return key == drainKey{m.Registration.Name, m.Holder} }) {
			return true
		}
	}
	return len(members) == 0
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

// ask is what the study takes and could start now, whatever workers there are.
func (r *session) ask() ask {
	one := ask{owner: r.owner, study: r.id, priority: r.study.Definition.Priority}
	if r.study.Status.Over() && r.held == 0 {
		return one
	}
	each, constant := r.places()
	one.each = each
	if constant {
		one.running = float64(r.held) * each
	} else {
		for _, t := range r.trials {
			if t.State.Held() {
				one.running += placesOf(t)
			}
		}
	}
	if r.study.Status != protocol.StudyRunning || len(r.study.Definition.Command) == 0 || r.broken != nil {
		return one
	}
	all := len(r.queue) + r.fresh()
	if most := r.study.Definition.Parallel; most > 0 {
		one.ready = min(all, max(0, most-r.held)) // more would not run at once
		return one
	}
	one.ready = max(len(r.queue), min(1, all))
	one.more = all - one.ready
	return one
}

// fresh is how many trials the study could start beside its queue, if a worker came
// for each now: those that its search would begin or send up, as far as its budgets
// pay for them, by what those before came to.
func (r *session) fresh() int {
	supply, can := r.method.(search.Supply)
	if r.waiting || !can {
		return 0
	}
	most := supply.Startable()
	if most == 0 || len(r.trials) == 0 {
		return most
	}
	for _, bound := range r.spending.Limits(r.study.Definition.Stop) {
		if each := bound.Used / float64(len(r.trials)); each > 0 && bound.Limit/each < maxStartable {
			most = min(most, max(1, int(math.Ceil((bound.Limit-bound.Used)/each))-len(r.queue)-r.held))
		}
	}
	return most
}

// places is how many GPUs each trial of the study takes: at least one, which
// stands for a slot where there are none, or which part of one. It is no constant
// where they are tuned or shared.
func (r *session) places() (each float64, constant bool) {
	if r.study.Definition.SharesGPUs() {
		return max(leastPlace, r.gpuStudy().Fraction()), false
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
