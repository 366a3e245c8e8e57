package study

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

const (
	// mostWaiting is how many trials of a study are listed as waiting.
	mostWaiting = 20
	// mostMigrationsShown is how many moves are listed.
	mostMigrationsShown = 100
)

// Pool says who runs where and why: the workers, and what the caller's studies run
// on them, have ready, predict and moved.
func (s *Service) Pool(ctx context.Context) (protocol.Pool, error) {
	caller := callerOf(ctx)
	machines := s.poolMachines()
	var types []string
	for _, one := range machines {
		if one.Alive && !slices.Contains(types, one.Type) {
			types = append(types, one.Type)
		}
	}
	slices.Sort(types)
	answer := protocol.Pool{Machines: machines, Waiting: []protocol.PoolTask{}, Models: []protocol.PoolModel{}, GPUModels: s.gpus.Summary(), Migrations: []protocol.PoolMigration{}, Autoscale: s.autoscale(caller)}
	stands := s.allocator.Stands("", Caller{})
	q := question{Field: scheduler.FieldOf(stands), types: types, probes: s.allocator.Probes(), most: mostWaiting, explain: true, caller: caller}
	running := map[string][]protocol.PoolRun{}
	for _, r := range s.loaded() {
		if err := ctx.Err(); err != nil {
			return protocol.Pool{}, err
		}
		if caller.Sees(r.id, r.owner) {
			s.lookIn(ctx, r, q, &answer, running)
		}
	}
	for i, one := range answer.Machines {
		answer.Machines[i].Busy = s.runsUnseen(one.ID, caller)
		answer.Machines[i].Running = append(one.Running, running[one.ID]...)
		slices.SortFunc(answer.Machines[i].Running, func(a, b protocol.PoolRun) int { return strings.Compare(string(a.Trial), string(b.Trial)) })
	}
	answer.Waiting = s.waiting(ctx, caller, q)
	slices.SortFunc(answer.Models, func(a, b protocol.PoolModel) int {
		return cmp.Or(strings.Compare(a.Study, b.Study), strings.Compare(a.StudyID, b.StudyID), strings.Compare(a.Machine, b.Machine))
	})
	slices.SortFunc(answer.Migrations, func(a, b protocol.PoolMigration) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.StudyID, b.StudyID), a.Number-b.Number)
	})
	answer.Migrations = answer.Migrations[:min(len(answer.Migrations), mostMigrationsShown)]
	return answer, nil
}

// runsUnseen reports whether the worker runs a trial of a study that the caller does
// not see.
func (s *Service) runsUnseen(worker string, caller Caller) bool {
	_, held, _ := s.allocator.Worker(worker)
	return slices.ContainsFunc(held, func(one pool.Lease) bool { return !s.seenBy(caller, one.Study) })
}

// poolMachines are the workers, without what they run.
func (s *Service) poolMachines() []protocol.PoolMachine {
	machines, all := []protocol.PoolMachine{}, s.allocator.Snapshot()
	for _, worker := range all.Workers {
		registration := worker.Registration
		one := protocol.PoolMachine{
			ID: registration.ID, Name: registration.Name, Host: registration.Machine.Host, Type: worker.Type,
			Alive: worker.Alive, Slots: registration.Slots, Elastic: registration.Elastic, Drained: worker.Drain != nil, Waiting: worker.Calls,
			Reserved: pool.ReservedFor(all.Rules.Reservations, registration.Name, all.Now), Probes: len(registration.Probes), Running: []protocol.PoolRun{},
		}
		if worker.Drain != nil {
			one.Advised = worker.Drain.Advised
		}
		machines = append(machines, one)
	}
	return machines
}

// lookIn adds what one study runs, predicts and moved. One that is over, or is not
// in memory, adds nothing.
func (s *Service) lookIn(ctx context.Context, r *session, q question, answer *protocol.Pool, running map[string][]protocol.PoolRun) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.stale || r.study.Status.Over() {
		return
	}
	name := called(r.study, q.caller)
	for i := range r.trials {
		t := &r.trials[i]
		if t.State.Held() {
			running[t.Worker] = append(running[t.Worker], protocol.PoolRun{
				Trial: t.ID, Study: name, StudyID: r.id, Number: t.Number, Rung: t.Rung, LastEpoch: t.LastEpoch, Epochs: t.Budget.Epochs,
				Placement: t.Placement, Moves: s.allocator.Migrating(t.ID), GPU: s.poolGPU(ctx, r, *t),
			})
		}
		if t.Placement != nil {
			answer.Placed++
		}
		answer.Saved = answer.Saved.Plus(t.PlacementSaved)
		for _, one := range t.Migrations {
			answer.Migrations = append(answer.Migrations, protocol.PoolMigration{Study: name, StudyID: r.id, Number: t.Number, Migration: one})
		}
	}
	known := s.outlook(ctx, r)
	for _, machine := range q.types {
		one := protocol.PoolModel{Study: name, StudyID: r.id, Machine: machine}
		seen := known.epoch(known.typical, r.ladder[0].Budget.DataFraction, machine, q.probes.Known)
		one.Basis, one.Estimated = seen.basis, seen.estimated
		if accuracy, some := known.models.Accuracy(machine); some {
			one.Epochs, one.Learned = accuracy.Observations, accuracy.Learned
			if accuracy.Judged > 0 {
				one.SecondsError = new(trial.Float(accuracy.Seconds))
			}
			if accuracy.Metered > 0 {
				one.JoulesError = new(trial.Float(accuracy.Joules))
			}
		}
		answer.Models = append(answer.Models, one)
	}
}

// waiting is what the caller's studies have ready, in the pool's order.
func (s *Service) waiting(ctx context.Context, caller Caller, q question) []protocol.PoolTask {
	candidates := s.candidates(caller, s.allocator.Shares())
	tasks := []protocol.PoolTask{}
	for _, candidate := range candidates {
		offers := s.offersOf(ctx, candidate.Study, q)
		for i, one := range offers {
			if one.number == next && i > 0 && offers[i-1].number == next {
				tasks[len(tasks)-1].New++
				continue
			}
			task := protocol.PoolTask{Study: one.title, StudyID: one.study, Priority: candidate.Priority, Energy: one.energy, Why: one.waits(q)}
			if one.number == next {
				task.New = 1
			} else {
				task.Number = new(one.number)
			}
			task.Options = optionsOf(one, q)
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// waits says why an offer waits: as its study does, where that has a reason.
func (o offer) waits(q question) string {
	switch {
	case o.kept != "":
		return fmt.Sprintf("it moved, and is kept for %s", o.kept)
	case slices.Contains(o.suits, true):
		return "a worker that waits gets it now"
	case len(o.against) > 0:
		reasons := make([]string, len(o.against))
		for i, one := range o.against {
			reasons[i] = one.Reason
		}
		return strings.Join(reasons, "; ")
	case len(q.Stands) == 0:
		return "no worker has room for another trial now"
	default:
		return "no worker that waits may run it and has room for it"
	}
}

// optionsOf are the connected types of machine for an offer, the best one first.
func optionsOf(one offer, q question) []trial.PlacementOption {
	options := make([]trial.PlacementOption, len(q.types))
	for i, machine := range q.types {
		options[i].Machine = machine
		for at, stand := range q.Stands {
			if stand.Machine == machine && one.suits[at] {
				options[i].Waiting++
			}
		}
	}
	list, _ := scored(options, one.energy, func(machine string) sight { return one.epochs[machine] })
	return list
}
