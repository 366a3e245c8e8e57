package scheduler

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

// worthWaiting is by how much another machine's score must be better for a worker
// to be made to wait: predictions are not so exact.
const worthWaiting = 0.05

// plan is which worker should run what, of those who wait now.
type plan struct {
	stands []allocator.Stand // by their workers
	offers []offer
	// ofStudy has the places of each study's offers, in their order, for all studies
	// that could have had some.
	ofStudy map[string][]int
}

// planFor places what studies have ready on the workers that wait and the one that
// asks (Rocha, algorithm 2); nil where all of them are of one type, so that there
// is nothing to choose.
func (s *Scheduler) planFor(ctx context.Context, caller access.Caller, worker string, candidates []pool.Candidate, arrival allocator.Arrival) *plan {
	changed := s.studies.Changes()
	if !arrival.Several {
		return nil
	}
	if !arrival.Waits {
		return s.newPlan(ctx, caller, worker)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	// Who has left since is found to be gone; who came asks by itself. A study may have
	// work again before that is told.
	if s.changed != changed || s.plan == nil || !s.plan.has(worker) || !s.plan.covers(candidates) {
		s.plan, s.changed = s.newPlan(ctx, access.Caller{}, ""), changed
	}
	return s.plan
}

// newPlan plans for the workers that wait and, unless it is empty, the caller's that asks.
func (s *Scheduler) newPlan(ctx context.Context, caller access.Caller, asker string) *plan {
	stands := s.allocator.Stands(asker, caller)
	if len(Types(stands)) < 2 {
		return nil
	}
	offers, asked := s.offers(ctx, stands)
	place(offers, stands)
	made := &plan{stands, offers, make(map[string][]int, len(asked))}
	for study := range asked {
		made.ofStudy[study] = nil
	}
	for i := range made.offers {
		study := made.offers[i].study
		made.ofStudy[study] = append(made.ofStudy[study], i)
	}
	return made
}

// place gives the offers, in their order, to the workers that wait.
func place(offers []offer, stands []allocator.Stand) {
	machines := make([]placement.Machine, len(stands))
	for i, one := range stands {
		machines[i] = placement.Machine{Name: one.Worker, Type: one.Machine, Free: placement.Resources{Cores: one.Trials, GPUs: len(one.Room.GPUs)}}
	}
	rooms, tasks := roomsOf(stands), make([]placement.Task, len(offers))
	for i := range offers {
		one := &offers[i]
		tasks[i] = rooms.task(one, strconv.Itoa(i))
		takes := tasks[i].Placed
		tasks[i].Placed = func(at int) {
			takes(at)
			one.worker, one.machine = stands[at].Worker, stands[at].Machine
		}
	}
	placement.Place(tasks, machines, estimatesOf(offers))
}

// rooms is what is free of workers that wait, as offers take it up.
type rooms []pool.Room

func roomsOf(stands []allocator.Stand) rooms {
	free := make(rooms, len(stands))
	for i, one := range stands {
		free[i] = one.Room
	}
	return free
}

// task is the offer as the placement sees it: it takes one of the trials that its
// worker asks for, and GPUs; and cores and memory, by the pool's own rule.
func (free rooms) task(one *offer, name string) placement.Task {
	need := func(machine int) pool.Need { return one.needs[free[machine].Machine] }
	return placement.Task{
		Name: name, Needs: placement.Resources{Cores: 1, GPUs: one.need.GPUs}, Energy: one.energy, Spread: one.need.GPUShare == nil,
		Suits: func(machine int) bool {
			return machine < len(one.eligible) && one.eligible[machine] && free[machine].Fits(need(machine))
		},
		Placed: func(machine int) { free[machine] = free[machine].With(need(machine)) },
	}
}

// Choice is a study that a worker is to have a trial of.
type Choice struct {
	Study  string
	Number int // of the queued trial that is meant for it, or [allocator.Next]
	// Types are the types of machine that it was chosen among, each with how many
	// workers waited; nil where there was nothing to choose.
	Types []trial.PlacementOption
	// Better is the worker for which all that the study has is meant, and Machine the
	// type of the one that asks; both are empty where it may have it.
	Better, Machine string
	// Alone says that nobody waited with a machine of another type.
	Alone bool
}

// Choices are the studies that the worker should get a trial of, the best one first:
// what the plan has for it, then the others in the pool's order.
func (s *Scheduler) Choices(ctx context.Context, caller access.Caller, worker string, arrival allocator.Arrival) (list []Choice) {
	candidates := s.Candidates(caller, arrival.Shares)
	if len(candidates) == 0 {
		return nil
	}
	p := s.planFor(ctx, caller, worker, candidates, arrival)
	if p == nil {
		list = make([]Choice, 0, len(candidates))
		for _, candidate := range candidates {
			list = append(list, Choice{Study: candidate.Study, Number: allocator.Next, Alone: !arrival.Several})
		}
		return expectedFirst(list, candidates, arrival.Expected)
	}
	meant := map[string]bool{}
	for i := range p.offers {
		one := &p.offers[i]
		if one.worker == worker && !meant[one.study] {
			meant[one.study] = true
			list = append(list, Choice{Study: one.study, Number: one.number, Types: p.compared(one)})
		}
	}
	for _, candidate := range candidates {
		if meant[candidate.Study] {
			continue
		}
		added := Choice{Study: candidate.Study, Number: allocator.Next}
		if one, better := p.forOthers(candidate.Study, worker); one != nil {
			added.Types = p.compared(one)
			if better {
				added.Better, added.Machine = one.worker, p.stands[p.at(worker)].Machine
			}
		}
		list = append(list, added)
	}
	return expectedFirst(list, candidates, arrival.Expected)
}

// at is the place of the worker among those that the plan was made with; -1 if it was
// made without it.
func (p *plan) at(worker string) int {
	at, there := slices.BinarySearchFunc(p.stands, worker, func(one allocator.Stand, worker string) int { return strings.Compare(one.Worker, worker) })
	if !there {
		return -1
	}
	return at
}

// has reports whether the plan was made with the worker.
func (p *plan) has(worker string) bool { return p.at(worker) >= 0 }

// covers reports whether all candidates were asked for offers.
func (p *plan) covers(candidates []pool.Candidate) bool {
	return !slices.ContainsFunc(candidates, func(one pool.Candidate) bool { _, asked := p.ofStudy[one.Study]; return !asked })
}

// forOthers finds an offer of the study, and whether all that the worker could
// have of it are meant for others on which something better is known of them than
// on the worker's machine. A machine of which nothing is known is not made to
// wait: this is how it becomes known.
func (p *plan) forOthers(study, worker string) (found *offer, better bool) {
	at := p.at(worker)
	for _, i := range p.ofStudy[study] {
		one := &p.offers[i]
		if at < 0 || !one.eligible[at] {
			continue
		}
		found = one
		here, known := one.scores[p.stands[at].Machine]
		there, knownThere := one.scores[one.machine]
		if one.worker == "" || !known || !knownThere || there-here < worthWaiting {
			return one, false
		}
		better = true
	}
	return found, better
}

// compared are the types of machine that wait and on which the offer could run.
func (p *plan) compared(one *offer) []trial.PlacementOption {
	var options []trial.PlacementOption
	for i, stand := range p.stands {
		if !one.open[i] {
			continue
		}
		at := slices.IndexFunc(options, func(o trial.PlacementOption) bool { return o.Machine == stand.Machine })
		if at < 0 {
			at = len(options)
			options = append(options, trial.PlacementOption{Machine: stand.Machine})
		}
		options[at].Waiting++
	}
	if len(options) < 2 {
		return nil
	}
	return options
}

// expectedFirst puts studies with a trial that is held for the worker before all of
// their priority or a lower one: it has left another place for this one.
func expectedFirst(list []Choice, candidates []pool.Candidate, expected []string) []Choice {
	if len(expected) == 0 {
		return list
	}
	priority := make(map[string]int, len(candidates))
	for _, one := range candidates {
		priority[one.Study] = one.Priority
	}
	for _, study := range slices.Backward(expected) {
		at := slices.IndexFunc(list, func(one Choice) bool { return one.Study == study })
		if at < 0 {
			continue
		}
		one := list[at]
		one.Better, one.Machine = "", ""
		list = slices.Delete(list, at, at+1)
		before := slices.IndexFunc(list, func(other Choice) bool { return priority[other.Study] <= priority[study] })
		if before < 0 {
			before = len(list)
		}
		list = slices.Insert(list, before, one)
	}
	return list
}
