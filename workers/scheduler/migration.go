package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

const (
	// rescheduleEvery is how often the machines of running trials are reconsidered
	// (x in Rocha, section 3.2).
	rescheduleEvery = 15 * time.Second
	// mostMigrations is how often one trial migrates at most.
	mostMigrations = 3
)

// Reschedule decides, if that is due, which running trials migrate to a machine that
// waits (Rocha, algorithm 3) and which exchange places. They do so at the end of an
// epoch, by their checkpoint.
func (s *Scheduler) Reschedule(ctx context.Context) ([]allocator.Migration, []Exchange) {
	if !s.rescheduleDue() {
		return nil, nil
	}
	leases := s.allocator.Prune()
	if len(leases) == 0 {
		return nil, nil
	}
	stands := s.allocator.Stands("", access.Caller{})
	waits := map[string]bool{}
	for _, one := range stands {
		waits[one.Worker] = true
	}
	hosts := slices.DeleteFunc(s.allocator.Hosts(leases), func(one allocator.Stand) bool { return waits[one.Worker] })
	if len(Types(slices.Concat(stands, hosts))) < 2 {
		return nil, nil
	}
	return s.decideMigrations(ctx, leases, stands, hosts)
}

// rescheduleDue reports whether running trials are to be reconsidered now.
func (s *Scheduler) rescheduleDue() bool {
	now := s.now()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if now.Sub(s.rescheduled) < rescheduleEvery {
		return false
	}
	s.rescheduled = now
	return true
}

func (s *Scheduler) decideMigrations(ctx context.Context, leases []pool.Lease, stands, hosts []allocator.Stand) (migrations []allocator.Migration, exchanges []Exchange) {
	all := slices.Concat(stands, hosts)
	free, promised := s.promised(stands)
	var pending []placement.Task
	offered, _ := s.offers(ctx, stands)
	for i, one := range offered {
		pending = append(pending, free.task(&one, strconv.Itoa(i)))
	}
	machines, byName := make([]placement.Machine, len(all)), map[string]allocator.Stand{}
	for i, one := range all {
		byName[one.Worker] = one
		machines[i] = placement.Machine{Name: one.Worker, Type: one.Machine}
		if i < len(stands) {
			machines[i].Free = placement.Resources{Cores: max(0, one.Trials-promised[one.Worker]), GPUs: len(free[i].GPUs)}
		}
	}
	q := s.question(stands, Types(all))
	q.all = all
	var running []placement.Running
	movers := movers{}
	for _, lease := range leases {
		if one, movable := s.movable(ctx, lease, q); movable {
			one.Task = free.task(&one.offer, one.Name)
			running = append(running, one.Running)
			movers[one.Name] = one
		}
	}
	for _, one := range placement.Reschedule(running, pending, machines, movers, placement.Settings{}) {
		mover := movers[one.Task]
		decided := mover.migration(one, mover.offer.needs[byName[one.To].Room.Machine], byName, "moves")
		decided.Record.Why += fmt.Sprintf(": score %.2f against %.2f at H=%g", one.There, one.Here, mover.offer.energy)
		migrations = append(migrations, decided)
		delete(movers, one.Task)
	}
	return migrations, movers.exchanges(running, machines, byName)
}

// promised is what is free of the workers in addition to the trials that are on their
// way to them, and how many of these there are to each.
func (s *Scheduler) promised(stands []allocator.Stand) (free rooms, trials map[string]int) {
	free, trials = roomsOf(stands), map[string]int{}
	promises := s.allocator.Promises()
	for at, stand := range stands {
		for _, need := range promises[stand.Worker] {
			free[at] = free[at].With(need)
			trials[stand.Worker]++
		}
	}
	return free, trials
}

// mover is a running trial that could go on elsewhere.
type mover struct {
	placement.Running
	lease pool.Lease
	offer offer
	// epochs is what all its epochs should take on each type. epoch is what one takes
	// where it is, in seconds.
	epochs map[string]costmodel.Estimate
	epoch  float64
	// eligible says of all workers whether it may run there, if that ran nothing.
	eligible []bool
}

// movers are those by their trials.
type movers map[string]mover

// Predict is the estimate that the mover has.
func (m movers) Predict(machine string, task placement.Task) (placement.Prediction, bool) {
	one := m[task.Name].epochs[machine]
	return one.Prediction, one.Known()
}

// movable is a running trial that could go on elsewhere, as what it would be there,
// with what all its epochs should take on each type; false for one that has no fresh
// checkpoint, has migrated often enough, is about to, or is trained for an amount of time
// or energy. Where it goes it may have what it gives back.
func (s *Scheduler) movable(ctx context.Context, lease pool.Lease, q question) (one mover, movable bool) {
	if s.allocator.Migrating(lease.Trial) != "" {
		return mover{}, false
	}
	number, _ := lease.Trial.Number()
	s.studies.View(ctx, lease.Study, func(of Study) {
		if !of.Trains || number >= len(of.Trials) {
			return
		}
		t := of.Trials[number]
		if t.LeaseEpoch != lease.Epoch || t.State != trial.Running || t.Budget.Measured() || t.MeasuredAt(t.Rung) ||
			len(t.Migrations) >= mostMigrations || t.Checkpoint == nil || t.Checkpoint.Rung != t.Rung || t.LastEpoch-t.Checkpoint.Epoch > 1 {
			return
		}
		one, movable = s.moverOf(of, t, lease, q), true
	})
	return one, movable
}

func (s *Scheduler) moverOf(of Study, t trial.Trial, lease pool.Lease, q question) mover {
	costs := of.Costs()
	epochs := costs.Each(costs.Encode(t.Configuration), t.Budget.DataFraction, q.types)
	worker, _, _ := s.allocator.Worker(lease.Worker)
	here := epochs[worker.Type]
	for machine, one := range epochs {
		one.Seconds *= float64(t.Budget.Epochs)
		one.Joules *= float64(t.Budget.Epochs)
		epochs[machine] = one
	}
	may, needs := s.mayRun(of, &t, q.Field, lease.Amount())
	return mover{placement.Running{
		Task: placement.Task{Name: string(t.ID)}, Machine: lease.Worker,
		Remaining: float64(t.Budget.Epochs-t.LastEpoch) / float64(t.Budget.Epochs), Move: costs.Moving(t, here),
	}, lease, of.offered(may, needs, q.Stands), epochs, here.Seconds, s.allocator.MayGo(of.Ask(nil), q.all, lease.Amount())}
}

// migration is the mover's to another machine, where it needs so much, with the reason:
// it moves, or changes places.
func (m mover) migration(decided placement.Migration, need pool.Need, byName map[string]allocator.Stand, moves string) allocator.Migration {
	from, to := byName[decided.From], byName[decided.To]
	record := trial.Migration{
		LeaseEpoch: m.lease.Epoch, From: from.Host, FromType: from.Machine, To: to.Host, ToType: to.Machine,
		Stays: *estimateOf(decided.Stays), Goes: *estimateOf(decided.Goes), Here: trial.Float(decided.Here), There: trial.Float(decided.There),
	}
	record.Why = fmt.Sprintf("%s from %s (%s) to %s (%s): what is left should take %s there with the move, and %s here (an estimate)",
		moves, from.Host, from.Machine, to.Host, to.Machine, amountsOf(record.Goes), amountsOf(record.Stays))
	return allocator.Migration{Trial: m.lease.Trial, Lease: m.lease.Epoch, Worker: decided.To, Need: need, Record: record}
}

// Exchange is two running trials that exchange places, the one with the longer epochs
// first. Wait is how long that may take at most.
type Exchange struct {
	Both [2]allocator.Migration
	Wait time.Duration
}

// exchanges are those of the movers.
func (m movers) exchanges(running []placement.Running, machines []placement.Machine, byName map[string]allocator.Stand) (decided []Exchange) {
	var staying []placement.Running
	for _, task := range running {
		one, stays := m[task.Name]
		if !stays || one.lease.GPUShare != nil {
			continue
		}
		task.Task = placement.Task{
			Name: task.Name, Energy: one.offer.energy, Suits: func(machine int) bool { return one.eligible[machine] },
			Needs: placement.Resources{Cores: one.lease.Cores, GPUs: len(one.lease.GPUs), MemoryBytes: askedMemory(one.lease)},
		}
		task.Owner = one.lease.Owner
		task.Move.Seconds += one.epoch // until the other one has come to the end of its own
		staying = append(staying, task)
	}
	for _, one := range placement.Exchanges(staying, machines, m, placement.Settings{}) {
		first, second := one.First, one.Second
		if m[first.Task].epoch < m[second.Task].epoch {
			first, second = second, first
		}
		decided = append(decided, Exchange{
			[2]allocator.Migration{m[first.Task].exchange(first, byName), m[second.Task].exchange(second, byName)},
			time.Duration(1.5*m[second.Task].epoch*float64(time.Second)) + allocator.HoldSpan,
		})
	}
	return decided
}

// askedMemory is what the study asked for.
func askedMemory(lease pool.Lease) int64 {
	if lease.KeptMemory {
		return lease.MemoryBytes
	}
	return 0
}

// exchange is the mover's part of it.
func (m mover) exchange(decided placement.Migration, byName map[string]allocator.Stand) allocator.Migration {
	one := m.migration(decided, m.lease.Needs(), byName, "changes places with another trial,")
	one.From = decided.From
	one.Record.Why += fmt.Sprintf("; H=%g", m.offer.energy)
	return one
}
