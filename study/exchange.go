package study

import (
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

// mover is a running trial that could go on elsewhere.
type mover struct {
	placement.Running
	lease  pool.Lease
	offer  offer
	sights map[string]sight
	// epoch is what one takes where it is, in seconds.
	epoch float64
	// there says of all workers whether it may run there, if that ran nothing.
	there []bool
}

// decideExchanges has trials change places that stay where they are otherwise.
func (s *Service) decideExchanges(movers []mover, machines []placement.Machine, known outlooks, byName map[string]allocator.Stand) {
	var running []placement.Running
	by := map[string]mover{}
	for _, one := range movers {
		if s.allocator.Migrating(one.lease.Trial) != "" || one.lease.GPUShare != nil {
			continue
		}
		task := one.Running
		task.Task = placement.Task{
			Name: one.Name, Energy: one.offer.energy, Suits: func(machine int) bool { return one.there[machine] },
			Needs: placement.Resources{Cores: one.lease.Cores, GPUs: len(one.lease.GPUs), MemoryBytes: keptMemory(one.lease)},
		}
		task.Owner = one.lease.Owner
		task.Move.Seconds += one.epoch // until the other one has come to the end of its own
		running = append(running, task)
		by[one.Name] = one
	}
	for _, one := range placement.Exchanges(running, machines, known, placement.Settings{}) {
		first, second := one.First, one.Second
		if by[first.Task].epoch < by[second.Task].epoch {
			first, second = second, first
		}
		s.toExchange([2]placement.Migration{first, second}, [2]mover{by[first.Task], by[second.Task]}, byName)
	}
}

// keptMemory is what the study asked for.
func keptMemory(lease pool.Lease) int64 {
	if lease.KeptMemory {
		return lease.MemoryBytes
	}
	return 0
}

// toExchange notes that two trials are to change places, the one with the longer epochs
// first, if each has room where the other one is.
func (s *Service) toExchange(goes [2]placement.Migration, movers [2]mover, byName map[string]allocator.Stand) {
	var both [2]allocator.Migration
	for i, m := range goes {
		lease, from, to := movers[i].lease, byName[m.From], byName[m.To]
		both[i] = allocator.Migration{Trial: lease.Trial, Lease: lease.Epoch, Worker: m.To, Need: lease.Needs(), From: m.From, Record: recordOf(lease, m, from, to)}
		both[i].Record.Why = fmt.Sprintf("changes places with another trial, from %s (%s) to %s (%s): what is left should take %s there with the move, and %s here (an estimate); H=%g",
			from.Host, from.Machine, to.Host, to.Machine, amountsOf(both[i].Record.Goes), amountsOf(both[i].Record.Stays), movers[i].offer.energy)
	}
	wait := time.Duration(1.5*movers[1].epoch*float64(time.Second)) + allocator.HoldSpan
	if !s.allocator.Exchange(both, wait) {
		return
	}
	for _, one := range both {
		s.options.Logger.Info("two trials are to change places", "trial", one.Trial, "why", one.Record.Why)
	}
}
