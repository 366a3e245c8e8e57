package allocator

import (
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Placements say which workers could run what. They share the allocator's lock.
type Placements struct{ *state }

// Stand is a worker that could take a trial now.
type Stand struct {
	Worker, Host, Machine string // Machine is its type
	Caller                access.Caller
	// Trials is how many more it asks for.
	Trials int
	Room   pool.Room
	// Kind is the same for workers that no study tells apart; empty for one that may be
	// special to some study.
	Kind string
}

// Stands are the workers that wait and have room, and the one that asks, in the order
// of their ids.
func (p Placements) Stands(asker string, caller access.Caller) []Stand {
	defer p.locked()()
	stands, idle, empty := make([]Stand, 0, len(p.queue.Sorted())+1), p.leases.Idle(), map[string]pool.Room{}
	add := func(worker string, caller access.Caller, calls int) {
		member, known := p.workers.Find(worker)
		if !known {
			return
		}
		one := Stand{Worker: worker, Host: member.Registration.Name, Machine: member.Type, Caller: caller, Trials: calls}
		free := idle(worker) && member.Reserved == 0
		if room, seen := empty[member.Kind]; free && seen {
			one.Room = room
		} else if one.Room = p.site(worker, "").Room; free {
			empty[member.Kind] = one.Room
		}
		if one.Room.Elastic {
			one.Trials = min(calls, one.Room.Slots-one.Room.Trials)
		}
		if one.Trials > 0 {
			one.Kind = p.kindOf(member, one.Room, free)
			stands = append(stands, one)
		}
	}
	_, waits := p.queue.Waiter(asker)
	ask := asker != "" && !waits
	for _, worker := range p.queue.Sorted() {
		if ask && asker < worker {
			add(asker, caller, 1)
			ask = false
		}
		w, _ := p.queue.Waiter(worker)
		add(worker, w.Caller, w.Calls)
	}
	if ask {
		add(asker, caller, 1)
	}
	return stands
}

// kindOf is the worker's Kind, with the room that it has.
func (s *state) kindOf(member *pool.Member, room pool.Room, idle bool) string {
	id := member.Registration.ID
	if _, held := s.slotHolds[id]; held || len(member.Refuses)+len(member.Excluded) > 0 || member.Reserved != 0 || s.gangs.Cleared() == id {
		return ""
	}
	if _, claimed := s.leases.Claimed(id); claimed {
		return ""
	}
	if len(s.rules.Drains) > 0 && s.rules.DrainOf(*member) != nil {
		return ""
	}
	for _, one := range s.rules.Reservations {
		if one.Worker == member.Registration.Name {
			return ""
		}
	}
	kind := member.Kind
	if member.Only != "" {
		kind += "\x00only " + member.Only
	}
	if idle {
		return kind
	}
	for _, lease := range s.heldOf(id) {
		if lease.Leave != "" || lease.LeaveFor != (pool.Claim{}) || lease.GPUShare != nil {
			return ""
		}
	}
	text := append([]byte(kind), 0)
	for _, n := range append([]int{room.Trials, room.Cores, int(room.MemoryBytes)}, room.GPUs...) {
		text = append(strconv.AppendInt(text, int64(n), 10), ' ')
	}
	return string(text)
}

// MayRun says for each of the workers whether the study may run there and has room, if
// it gives so much back elsewhere.
func (p Placements) MayRun(ask Ask, stands []Stand, back pool.Amount) []bool {
	may := make([]bool, len(stands))
	defer p.locked()()
	for i := range stands {
		one := &stands[i]
		need := ask.Need(one.Room.Machine)
		member, _ := p.workers.Member(one.Worker)
		may[i] = one.Caller.Sees(ask.Study, ask.Owner) && ask.Eligible(member) && p.denied(ask, member, need, back).Reason == "" && one.Room.Fits(need)
	}
	return may
}

// MayGo says of each worker whether a trial of the study may run there, if that ran
// nothing and the trial gives back what it has.
func (p Placements) MayGo(ask Ask, workers []Stand, back pool.Amount) []bool {
	may := make([]bool, len(workers))
	defer p.locked()()
	for i, one := range workers {
		member, known := p.workers.Member(one.Worker)
		may[i] = known && ask.Fits(member) && p.denied(ask, member, ask.needOn(member), back).Reason == ""
	}
	return may
}

// Hosts are the workers of the leases.
func (p Placements) Hosts(leases []pool.Lease) (hosts []Stand) {
	defer p.locked()()
	known := map[string]bool{}
	for _, lease := range leases {
		if member, registered := p.workers.Member(lease.Worker); registered && !known[lease.Worker] {
			known[lease.Worker] = true
			hosts = append(hosts, Stand{Worker: lease.Worker, Host: member.Registration.Name, Machine: member.Registration.Machine.Type()})
		}
	}
	return hosts
}

// Probes are the workers' probes by type of machine, as of so many changes. They are
// not changed.
type Probes struct {
	Known   map[string][]placement.Probe
	Changes uint64
}

// Probes are those of all workers that are known: of the machines as they are, since
// what is set on a machine is a part of its type, or of settings of theirs where a
// worker ran no others.
func (p Placements) Probes() Probes {
	defer p.locked()()
	if changes := p.workers.Probed(); p.probed.Known == nil || p.probed.Changes != changes {
		p.probed = Probes{gatherProbes(&p.workers), changes}
	}
	return p.probed
}

func gatherProbes(workers *pool.Registry) map[string][]placement.Probe {
	plain, set := map[string][]placement.Probe{}, map[string][]placement.Probe{}
	for member := range workers.All() {
		machine := member.Type
		for _, one := range member.Registration.Probes {
			list := plain
			if one.Setting != "" {
				list = set
			}
			list[machine] = append(list[machine], placement.Probe{
				Workload: one.Workload, Setting: one.Setting, Took: placement.Prediction{Seconds: one.Seconds, Joules: one.Joules},
			})
		}
	}
	for machine, probes := range set {
		if len(plain[machine]) == 0 {
			plain[machine] = probes
		}
	}
	return plain
}

// Full are the workers that the study's next trial could be on, were it not for those
// that they have.
func (p Placements) Full(ask Ask) (workers []string) {
	defer p.locked()()
	if p.overQuota(ask.Owner, ask.Need(1), pool.Amount{}).Reason != "" {
		return nil
	}
	for _, member := range p.workers.Members() {
		need := ask.needOn(member)
		if !p.usable(member) || !ask.Fits(member) || p.denied(ask, member, need, pool.Amount{}).Reason != "" {
			continue
		}
		if !takesOne(p.roomOn(member), need) {
			workers = append(workers, member.Registration.ID)
		}
	}
	return workers
}

// preemptPause is how long a trial that made way is left in peace.
const preemptPause = 10 * time.Minute

// MakeWay asks the workers of the trials in the study's way to pause them, for the
// reason that own tells its owner and the administrators, and other everybody else. It
// returns those trials, and the workers of which the study may have what is left.
func (p Placements) MakeWay(ask Ask, now time.Time, own, other string) (asked []pool.Lease, may map[string]bool) {
	defer p.locked()()
	if !p.rules.MayPreempt(ask.Owner) || p.overQuota(ask.Owner, ask.Need(1), pool.Amount{}).Reason != "" {
		return nil, nil
	}
	may = map[string]bool{}
	var hosts []pool.Host
	for _, member := range p.workers.Members() {
		need := ask.needOn(member)
		if p.usable(member) && ask.Eligible(member) && p.denied(ask, member, need, pool.Amount{}).Reason == "" {
			may[member.Registration.ID] = true
			hosts = append(hosts, p.hostFor(ask, member, need))
		}
	}
	claim := pool.Claim{Study: ask.Study, Priority: ask.Priority}
	for _, victim := range pool.Victims(claim.Priority, ask.Need(1), hosts, now, preemptPause) {
		why := own
		if victim.Owner != "" && victim.Owner != ask.Owner {
			why = other
		}
		if p.leases.Ask(victim, claim, why, now) {
			asked = append(asked, victim)
		}
	}
	return asked, may
}

// hostFor is the worker with what it runs, for a trial of the study that needs so much:
// a GPU that others make way on is idle then, and may be reserved for somebody. With
// others on a shared one it may run all the same.
func (p Placements) hostFor(ask Ask, member pool.Member, need pool.Need) pool.Host {
	host := pool.Host{Member: member, Held: p.heldOf(member.Registration.ID)}
	if need.GPUShare == nil || len(p.rules.Reservations) == 0 {
		return host
	}
	joins, share := need, *need.GPUShare
	share.Joins, joins.GPUShare = true, &share
	host.Allows = func(left []pool.Lease) bool {
		room := pool.RoomOf(member, left)
		if !room.Opens(need) || room.Fits(joins) {
			return true
		}
		then := p.holdings()
		then.FreeGPUs += len(room.GPUs) - len(pool.RoomOf(member, host.Held).GPUs)
		return pool.KeepsGPUs(p.rules.Reservations, then, ask.asker(pool.Need{GPUs: 1}), p.now()) == ""
	}
	return host
}

// EndClaims ends the claims of studies that may not have what is left of a worker any
// more, and reports whether there was one.
func (p Placements) EndClaims(now time.Time, may map[string]map[string]bool) bool {
	defer p.locked()()
	return p.leases.Stand(now, func(study, worker string) bool { return may[study][worker] })
}
