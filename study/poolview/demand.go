package poolview

import (
	"context"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

// Demand is what trials take and wait for at the moment, by owner, and the workers that
// could run them. It asks the store for nothing, so that it can be taken often.
//
// What trials take is what is out on leases. What waits are the trials that a study
// could start now: those of its queue, and those that its search would begin, up to
// what its file, its budgets and its owner's quota leave. Where a study does not bound
// how many run at once, it waits for its queue, and for as much of the rest as there is
// a place for; for one trial at least. A trial
// that no worker could ever run is not waited for: the study says so.
func (s *Views) Demand() demand.Look {
	all := s.of.Allocator.Snapshot()
	return demand.Sum(s.wanted(all), scheduler.Hosts(all), accounts(all))
}

// accounts are those of the owners with a quota.
func accounts(all allocator.Snapshot) map[string]demand.Account {
	accounts := make(map[string]demand.Account, len(all.Rules.Quotas))
	for owner, quota := range all.Rules.Quotas {
		accounts[owner] = demand.Account{Quota: quota, Held: all.Held.ByOwner[owner], Spent: all.Rules.SpentBy(all.Now, owner)}
	}
	return accounts
}

// Wanted is what the studies that the caller sees would start now if there were workers
// for it, whatever workers there are.
func (s *Views) Wanted(ctx context.Context) (crew.PoolWanted, error) {
	all, caller := s.of.Allocator.Snapshot(), access.CallerOf(ctx)
	quotas := accounts(all)
	answer := crew.PoolWanted{Studies: []crew.WantedStudy{}, Workers: []crew.LaunchedWorker{}}
	if caller.Sight == access.Own {
		answer.User = caller.Owner
	}
	for r := range s.of.Sessions.Each() {
		if err := ctx.Err(); err != nil {
			return answer, err
		}
		one := r.Demand()
		trials := one.Ready + one.More
		if trials == 0 || r.Stale || !caller.Sees(r.ID, r.Owner()) {
			continue
		}
		ask := r.Ask(nil)
		if ask.Policy != "" {
			continue // no launcher starts confidential machines
		}
		need := ask.Need(1)
		if account, has := quotas[r.Owner()]; has {
			trials = min(trials, account.Quota.More(account.Held, account.Spent, need))
		}
		want := crew.WantedStudy{Study: registry.NameFor(r.Study, caller), StudyID: r.ID, Trials: max(0, trials), GPUs: need.GPUs, Selector: ask.Wants}
		if need.GPUShare != nil {
			want.GPUs = 1
		}
		if len(ask.Recipients) > 0 {
			want.Recipient = ask.Recipients[0]
		}
		if need.KeptCores {
			want.Cores = need.Cores
		}
		if need.KeptMemory {
			want.MemoryBytes = need.MemoryBytes
		}
		answer.Studies = append(answer.Studies, want)
	}
	slices.SortFunc(answer.Studies, func(a, b crew.WantedStudy) int { return strings.Compare(a.StudyID, b.StudyID) })
	for _, one := range all.Workers {
		slots, launch := 0, one.Registration.Launch
		if one.Alive && one.Drain == nil {
			slots = one.Registration.Slots
		}
		user, ofUser := access.UserOf(one.Holder)
		switch {
		case launch != "" && caller.Holds(one.Holder):
			answer.Workers = append(answer.Workers, crew.LaunchedWorker{ID: one.Registration.ID, Launch: launch, Trials: len(one.Trials), Slots: slots})
		case !ofUser || caller.Sight == access.All || user == caller.Owner:
			answer.Free += max(0, slots-len(one.Trials))
		}
	}
	return answer, nil
}

// wanted is what all studies take and could start now.
func (s *Views) wanted(all allocator.Snapshot) []demand.Ask {
	var asks []demand.Ask
	for r := range s.of.Sessions.Each() {
		one := r.Demand()
		if one.Ready > 0 {
			ask := r.Ask(nil)
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
func (s *Views) Census() Census {
	census := Census{
		Studies: map[protocol.StudyStatus]int{protocol.StudyRunning: 0, protocol.StudyPaused: 0},
		Ended:   make(map[protocol.StudyStatus]int),
		Trials:  make(map[trial.State]int),
	}
	ended := s.of.Sessions.Ended()
	for _, status := range []protocol.StudyStatus{protocol.StudyCompleted, protocol.StudyStopped, protocol.StudyFailed} {
		census.Ended[status] = ended[status]
	}
	for _, state := range trial.States() {
		census.Trials[state] = 0
	}
	for r := range s.of.Sessions.Each() {
		if !r.Study.Status.Over() {
			census.Studies[r.Study.Status]++
			for _, t := range r.Trials {
				census.Trials[t.State]++
			}
		}
	}
	census.Leases = len(s.of.Allocator.Leases())
	for _, worker := range s.of.Allocator.Snapshot().Workers {
		if !worker.Alive {
			census.Silent++
			continue
		}
		census.Alive++
		census.Slots += worker.Registration.Slots
	}
	return census
}
