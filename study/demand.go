package study

import (
	"math"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/rules"
	"github.com/tandem-tune/tandem/workers/scheduler"
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
	all := s.allocator.Snapshot()
	accounts := make(map[string]demand.Account, len(all.Rules.Quotas))
	for owner, quota := range all.Rules.Quotas {
		accounts[owner] = demand.Account{Quota: quota, Held: all.Held.ByOwner[owner], Spent: all.Rules.SpentBy(all.Now, owner)}
	}
	return demand.Sum(s.wanted(all), scheduler.Hosts(all), accounts)
}

// wanted is what all studies take and could start now.
func (s *Service) wanted(all allocator.Snapshot) []demand.Ask {
	var asks []demand.Ask
	for r := range s.each() {
		one := r.wants()
		if one.Ready > 0 {
			ask := s.ask(r, nil)
			if one.Need = ask.Need(1); !scheduler.Runnable(all, ask) {
				one.Ready, one.More = 0, 0
			}
		}
		if one.Running > 0 || one.Ready > 0 {
			asks = append(asks, one)
		}
	}
	return asks
}

// wants is what the study takes and could start now, whatever workers there are.
func (r *session) wants() demand.Ask {
	one := demand.Ask{Owner: r.owner, Study: r.id, Priority: r.study.Definition.Priority}
	if r.study.Status.Over() && r.held == 0 {
		return one
	}
	each, constant := r.places()
	one.Each = each
	if constant {
		one.Running = float64(r.held) * each
	} else {
		for _, t := range r.trials {
			if t.State.Held() {
				one.Running += placesOf(t)
			}
		}
	}
	if r.study.Status != protocol.StudyRunning || len(r.study.Definition.Command) == 0 || r.broken != nil {
		return one
	}
	all := len(r.queue) + r.fresh()
	if most := r.study.Definition.Parallel; most > 0 {
		one.Ready = min(all, max(0, most-r.held)) // more would not run at once
		return one
	}
	one.Ready = max(len(r.queue), min(1, all))
	one.More = all - one.Ready
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

// Situation is what a [demand.Scaler] decides about, but for what is wanted: the
// workers, which of those that were drained by advice trials wait for, which of the
// others a study cannot do without, and what was done before.
func (s *Service) Situation() demand.Situation {
	all := s.allocator.Snapshot()
	situation := demand.Situation{Hosts: scheduler.Hosts(all), Past: all.Rules.Changes}
	sought := make(map[rules.WorkerName]bool)
	for r := range s.each() {
		want := r.wants()
		if r.stale || want.Running == 0 && want.Ready == 0 {
			continue
		}
		if worker, some := scheduler.Sought(all, s.ask(r, nil), want.Ready > 0 && !r.full(0)); some {
			sought[worker] = true
		}
	}
	for i, one := range situation.Hosts {
		situation.Hosts[i].Sought = sought[rules.WorkerName{Name: one.Name, Holder: one.Holder}]
	}
	return situation
}

// Census counts what the server has to do at one moment.
type Census struct {
	// Studies counts those that are not over, by status.
	Studies map[protocol.StudyStatus]int
	// Ended counts those that have ended since the service was started, by how they did.
	Ended map[protocol.StudyStatus]int
	// Trials counts the trials of those that are not over, by state; every state is present.
	Trials map[trial.State]int
	// Alive counts the workers that were heard of within the term of a lease,
	// Silent the others that are still remembered. Slots is how many trials the
	// living ones offer to run at once, Leases how many trials are out.
	Alive, Silent, Slots, Leases int
}

// Census counts what is in memory: it asks the store for nothing, so that it
// can be taken often.
func (s *Service) Census() Census {
	census := Census{
		Studies: map[protocol.StudyStatus]int{protocol.StudyRunning: 0, protocol.StudyPaused: 0},
		Ended:   make(map[protocol.StudyStatus]int),
		Trials:  make(map[trial.State]int),
	}
	s.mutex.Lock()
	for _, status := range []protocol.StudyStatus{protocol.StudyCompleted, protocol.StudyStopped, protocol.StudyFailed} {
		census.Ended[status] = s.ended[status]
	}
	s.mutex.Unlock()
	for _, state := range trial.States() {
		census.Trials[state] = 0
	}
	for r := range s.each() {
		if !r.study.Status.Over() {
			census.Studies[r.study.Status]++
			for _, t := range r.trials {
				census.Trials[t.State]++
			}
		}
	}
	census.Leases = len(s.allocator.Leases())
	for _, worker := range s.allocator.Snapshot().Workers {
		if !worker.Alive {
			census.Silent++
			continue
		}
		census.Alive++
		census.Slots += worker.Registration.Slots
	}
	return census
}
