// Package poolview shows the pool: its workers, what runs on them and why, what studies
// want of them, and how much there is to do. It changes nothing and asks the store for
// nothing, but what a cost model needs.
package poolview

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

const (
	// mostMigrationsShown is how many moves are listed.
	mostMigrationsShown = 100
)

// Options are what the views are made of.
type Options struct {
	Sessions  *registry.Registry
	Allocator *allocator.Allocator
	Scheduler *scheduler.Scheduler
	GPUs      *gpushare.Model
}

// Views show the pool. They change nothing.
type Views struct{ of Options }

// New returns the views.
func New(of Options) *Views { return &Views{of} }

// Pool says who runs where and why: the workers, and what the caller's studies run
// on them, have ready, predict and moved.
func (s *Views) Pool(ctx context.Context) (protocol.Pool, error) {
	caller := access.CallerOf(ctx)
	machines, leased := s.poolMachines()
	var types []string
	for _, one := range machines {
		if one.Alive && !slices.Contains(types, one.Type) {
			types = append(types, one.Type)
		}
	}
	slices.Sort(types)
	answer := protocol.Pool{Machines: machines, Models: []protocol.PoolModel{}, GPUModels: s.of.GPUs.Summary(), Migrations: []protocol.PoolMigration{}}
	probes := s.of.Allocator.Probes()
	known := costmodel.TypesOf(types, probes.Known, probes.Changes)
	running := map[string][]protocol.PoolRun{}
	for r := range s.of.Sessions.Each() {
		if err := ctx.Err(); err != nil {
			return protocol.Pool{}, err
		}
		if caller.Sees(r.ID, r.Owner()) {
			s.lookIn(ctx, r, known, &answer, leases{leased, running})
		}
	}
	for i, one := range answer.Machines {
		answer.Machines[i].Busy = s.runsUnseen(one.ID, caller)
		answer.Machines[i].Running = append(one.Running, running[one.ID]...)
		slices.SortFunc(answer.Machines[i].Running, func(a, b protocol.PoolRun) int { return strings.Compare(string(a.Trial), string(b.Trial)) })
	}
	answer.Waiting = s.of.Scheduler.Waiting(ctx, caller, types)
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
func (s *Views) runsUnseen(worker string, caller access.Caller) bool {
	_, held, _ := s.of.Allocator.Worker(worker)
	return slices.ContainsFunc(held, func(one pool.Lease) bool { return !s.of.Sessions.SeenBy(caller, one.Study) })
}

// leases are the trials that have one, and what is shown of them, by worker. A trial gets
// its lease once that is durable, so none is shown before.
type leases struct {
	has     map[trial.ID]bool
	running map[string][]protocol.PoolRun
}

// poolMachines are the workers, without what they run, and the trials that are leased.
func (s *Views) poolMachines() (machines []protocol.PoolMachine, leased map[trial.ID]bool) {
	machines, leased = []protocol.PoolMachine{}, map[trial.ID]bool{}
	all := s.of.Allocator.Snapshot()
	for _, worker := range all.Workers {
		registration := worker.Registration
		one := protocol.PoolMachine{
			Build: registration.Program, ID: registration.ID, Name: registration.Name, Host: registration.Machine.Host, Type: worker.Type,
			Alive: worker.Alive, Slots: registration.Slots, Elastic: registration.Elastic, Drained: worker.Drain != nil, Waiting: worker.Calls,
			Reserved: pool.ReservedFor(all.Rules.Reservations, registration.Name, all.Now), Probes: len(registration.Probes), Running: []protocol.PoolRun{},
		}
		machines = append(machines, one)
		for _, id := range worker.Trials {
			leased[id] = true
		}
	}
	return machines, leased
}

// lookIn adds what one study runs, predicts and moved. One that is over, or is not
// in memory, adds nothing. The study is locked.
func (s *Views) lookIn(ctx context.Context, r *session.Session, types costmodel.Types, answer *protocol.Pool, shown leases) {
	if r.Stale || r.Study.Status.Over() {
		return
	}
	name := registry.NameFor(r.Study, access.CallerOf(ctx))
	for i := range r.Trials {
		t := &r.Trials[i]
		if t.State.Held() && shown.has[t.ID] {
			shown.running[t.Worker] = append(shown.running[t.Worker], protocol.PoolRun{
				Trial: t.ID, Study: name, StudyID: r.ID, Number: t.Number, Rung: t.Rung, LastEpoch: t.LastEpoch, Epochs: t.Budget.Epochs,
				Placement: t.Placement, Moves: s.of.Allocator.Migrating(t.ID), GPU: s.poolGPU(ctx, r, *t),
			})
		}
		if t.Placement != nil {
			answer.Placed++
		}
		answer.Saved = answer.Saved.Plus(t.PlacementSaved)
		for _, one := range t.Migrations {
			answer.Migrations = append(answer.Migrations, protocol.PoolMigration{Study: name, StudyID: r.ID, Number: t.Number, Migration: one})
		}
	}
	for _, one := range r.Costs(ctx).Summary(r.Ladder[0].Budget.DataFraction, types) {
		one.Study, one.StudyID = name, r.ID
		answer.Models = append(answer.Models, one)
	}
}

// poolGPU is what a running trial has of its machine's GPUs, as the caller sees
// it; nil for none. The study's lock is held.
func (s *Views) poolGPU(ctx context.Context, r *session.Session, t trial.Trial) *protocol.PoolGPU {
	if len(t.GPUs) == 0 {
		return nil
	}
	one := &protocol.PoolGPU{Places: t.GPUs, Share: t.GPUShare, Use: r.GPUStudy().Observed(t)}
	for _, id := range s.of.Allocator.Sharers(t.ID) {
		if study, _ := registry.StudyOf(id); s.of.Sessions.SeenBy(access.CallerOf(ctx), study) {
			one.Beside = append(one.Beside, id)
		} else {
			one.Others++
		}
	}
	return one
}
