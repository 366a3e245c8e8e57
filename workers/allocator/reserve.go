package allocator

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/waitqueue"
)

// Next stands for a trial that the search has not begun yet.
const Next = -1

// Request is what a worker could have of a study.
type Request struct {
	Ask
	Worker string
	// Parallel bounds how many trials of the study run at once, unless it is 0; Running
	// is how many do.
	Parallel, Running int
	// Queue has the numbers of its queued trials, the first to go first.
	Queue []int
	// Failed are the failed starts of those that failed to start lately, by number, and
	// Hosts the machines on which trials of the study have run.
	Failed map[int][]trial.FailedStart
	Hosts  []string
	// Sharers are the queued trials that could have a part of a GPU now, and Fresh is one
	// that the search has not begun yet, where the study shares GPUs.
	Sharers []Sharer
	Fresh   Sharer
	// Meant is the queued trial that is meant for the worker, or Next.
	Meant int
	// MostGPUs is how many GPUs its trial takes at most.
	MostGPUs int
	// Seek says that a worker may be cleared for it, Chosen that it was chosen among
	// workers of several types.
	Seek, Chosen bool
	// Alone says that it was chosen when nobody waited with a machine of another type.
	Alone bool
}

// Sharer is a trial that could have a part of a GPU.
type Sharer struct {
	Number int
	Share  pool.GPUShare
}

// Held are queued trials that are held for a worker, by number; an empty one stands for
// any but the one that asks.
type Held map[int]string

// Besides is how many are held for other workers than this one.
func (h Held) Besides(worker string) int {
	count := 0
	for _, one := range h {
		if one != worker {
			count++
		}
	}
	return count
}

// First is the queue, with those in front that are held for a worker.
func (h Held) First(queue []int) []int {
	if len(h) == 0 {
		return queue
	}
	rank := func(number int) int {
		if _, held := h[number]; held {
			return 0
		}
		return 1
	}
	sorted := slices.Clone(queue)
	slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted
}

// Part is the part of a GPU that is kept for a trial which is being chosen.
type Part struct {
	// Number is that of the queued trial that it is for, or Next.
	Number int
	Place  int
	Share  pool.GPUShare
	Room   pool.Room
}

// Site is a worker's machine as it is for one of its trials.
type Site struct {
	Machine string // its type
	Host    string // its name
	Name    string // of the worker
	Room    pool.Room
	// Cores is how many the trial may use, Wanted says that another trial would take those
	// it leaves: one was ready and had no room, or the study would begin another.
	Cores  int
	Wanted bool
	Knobs  []string // that its agent can set
	// Threads is how many threads the worker's own environment gives its commands; 0
	// where it does not say.
	Threads int
}

// site is the worker's machine for the trial; for a new trial the id is empty.
func (s *state) site(worker string, id trial.ID) Site {
	member, _ := s.workers.Member(worker)
	held := s.leases.Of(worker)
	if !member.Registration.Elastic { // its calls are heard at once
		held = append(held, s.leases.Deciding(worker)...)
	}
	room := pool.RoomOf(member, held)
	cores := room.Cores
	if !room.Elastic {
		cores = room.Share()
	} else if own := slices.IndexFunc(held, func(l pool.Lease) bool { return l.Trial == id }); own >= 0 {
		cores = min(room.Machine, cores+room.CoresOf(held[own].Needs()))
	}
	machine := member.Registration.Machine
	return Site{Machine: member.Type, Host: cmp.Or(machine.Host, member.Registration.Name), Name: member.Registration.Name, Room: room, Cores: max(1, cores), Wanted: member.Short, Knobs: machine.Knobs, Threads: machine.Threads}
}

// SiteOf looks at a worker's machine as it is for the trial.
func (a *Allocator) SiteOf(worker string, id trial.ID) Site {
	defer a.locked()()
	return a.site(worker, id)
}

// Reservation is what is kept of a worker for a trial that is being chosen, until it is
// confirmed or cancelled.
type Reservation struct {
	Site
	// GPUs are those kept for the trial, Part a part of one instead; nil for none.
	GPUs []int
	Part *Part
	// Held are the queued trials that are held for workers, or left to others.
	Held Held
	// Skipped is the type of machine of the worker that was first skipped for a trial of
	// the study; empty if there was none.
	Skipped string

	state         *state
	study, worker string
	ticket        int
	first         *waitqueue.FirstSkipped
	ended         bool
}

// Denied is why nothing was reserved.
type Denied struct {
	// Short says that only room is lacking, OverQuota that the owner's quota is used up,
	// and Sought that a worker to be cleared was looked for.
	Short, OverQuota, Sought bool
	// Joined says that somebody with a machine of another type waits by now.
	Joined bool
	Reason string
}

// Reserve keeps room on the worker for a trial of the study, so that nobody else takes
// it before the trial is chosen. There is no reservation where it is denied.
func (a *Allocator) Reserve(q Request) (*Reservation, Denied) {
	defer a.locked()()
	held := a.heldFor(q.Study, q.Queue)
	if q.Parallel > 0 && q.Running+held.Besides(q.Worker) >= q.Parallel {
		return nil, Denied{Reason: "its study runs as many trials as it may"}
	}
	member, _ := a.workers.Member(q.Worker)
	if q.Alone && a.queue.Several(member.Registration.Machine.Type()) {
		return nil, Denied{Joined: true, Reason: "the machines that wait have changed"}
	}
	if !q.Eligible(member) {
		a.gangs.Lost(q.Study, q.Worker)
		return nil, Denied{Reason: "it is not eligible"}
	}
	held = a.withLeft(q, member, held)
	site := a.site(q.Worker, "")
	need := q.Need(site.Room.Machine)
	sharers := sharersOn(q, member, held)
	no := a.denied(q.Ask, member, need, a.heldAmount(q.Study, q.Worker))
	var part *Part
	fits := false
	switch {
	case len(sharers) > 0 && (no.Reason == "" || no.Cause == protocol.WaitReserved): // a part may join those on GPUs that are not idle
		part = a.partFor(q.Ask, member, site.Room, sharers)
		fits = part != nil
	case no.Reason == "":
		fits = site.Room.Fits(need)
	}
	switch {
	case fits && a.yields(q.Ask, member):
		return nil, Denied{Reason: "another worker that waits carries less"}
	case fits:
	case no.Reason != "":
		a.gangs.Lost(q.Study, q.Worker)
		if no.Cause == protocol.WaitQuota {
			a.gangs.Gone(q.Study) // no machine is cleared for what may not start
		}
		return nil, Denied{Reason: no.Reason, OverQuota: no.Cause == protocol.WaitQuota}
	default:
		return nil, Denied{Short: true, Sought: q.Seek && a.seekRoom(q.Ask, member)}
	}
	one := &Reservation{Site: site, Part: part, Held: held, state: a.state, study: q.Study, worker: q.Worker}
	if one.GPUs = site.Room.GPUs[:min(q.MostGPUs, len(site.Room.GPUs))]; part != nil {
		one.GPUs, need.GPUShare = []int{part.Place}, &part.Share
	}
	one.ticket = a.leases.Pend(pool.Lease{
		Study: q.Study, Owner: q.Owner, Priority: q.Priority, Worker: q.Worker,
		Cores: need.Cores, MemoryBytes: need.MemoryBytes, KeptCores: need.KeptCores, KeptMemory: need.KeptMemory, GPUs: one.GPUs, GPUShare: need.GPUShare,
	})
	a.workers.Reserve(q.Worker, max(0, site.Room.Cores))
	if q.Chosen {
		one.takeSkipped()
	}
	return one, Denied{}
}

// takeSkipped takes away who was first skipped for a trial of the study, until the
// reservation is cancelled.
func (r *Reservation) takeSkipped() {
	r.first = r.state.queue.TakeFirst(r.study)
	if r.first != nil && r.state.now().Sub(r.first.At) <= waitqueue.Patience {
		r.Skipped = r.first.Machine
	}
}

// Confirmed is what follows from a lease.
type Confirmed struct {
	// Worker is the one that has it, Leases are all that it has.
	Worker pool.Member
	Leases []pool.Lease
	// Released says that a trial was held for the worker and is not any more, so that
	// who waits may have it.
	Released bool
}

// Confirm turns the reservation into the lease, which lives for a term.
func (r *Reservation) Confirm(lease pool.Lease) Confirmed {
	s := r.state
	defer s.locked()()
	r.end()
	lease.Deadline = lease.Granted.Add(s.term)
	s.leases.Grant(lease)
	released := s.served(lease)
	s.gangs.Gone(r.study)
	member, known := s.workers.Member(lease.Worker)
	if known {
		s.gangs.Pass(r.study, lease.Priority, member)
	}
	if s.slotHolds[lease.Worker].trial == lease.Trial {
		delete(s.slotHolds, lease.Worker)
	}
	return Confirmed{member, s.leases.Of(lease.Worker), released}
}

// Cancel gives back what was reserved, unless it was confirmed.
func (r *Reservation) Cancel() {
	if r.ended {
		return
	}
	defer r.state.locked()()
	r.end()
	if r.first != nil {
		r.state.queue.PutFirst(r.study, *r.first)
	}
}

func (r *Reservation) end() {
	r.ended = true
	r.state.leases.Settle(r.ticket)
	r.state.workers.Reserve(r.worker, 0)
}

// sharersOn are the trials of which the worker may have one, in the order in which it
// gets them: what is queued, and a new one only where nothing is that the worker
// could ever run. A trial that no GPU has room for keeps new ones from overtaking it,
// or it might wait for ever.
func sharersOn(q Request, member pool.Member, held Held) []Sharer {
	if !q.SharesGPUs {
		return nil
	}
	empty, runs := pool.RoomOf(member, nil), false
	var list []Sharer
	for _, one := range q.Sharers {
		where, moved := held[one.Number]
		if moved && where != q.Worker {
			continue
		}
		if _, _, _, fits := empty.GPUFor(one.Share); fits {
			runs = true
		}
		if moved || one.Number == q.Meant {
			list = slices.Insert(list, 0, one)
		} else {
			list = append(list, one)
		}
	}
	if !runs {
		list = append(list, q.Fresh)
	}
	return list
}

// partFor is the part of a GPU that the worker has for one of the sharers, the first
// that fits; nil for none.
func (s *state) partFor(ask Ask, member pool.Member, room pool.Room, sharers []Sharer) *Part {
	need, back := ask.Need(room.Machine), s.heldAmount(ask.Study, member.Registration.ID)
	for _, one := range sharers {
		for _, joins := range []bool{false, true} { // idle GPUs may be kept for others
			share := one.Share
			share.Joins = joins
			need.GPUShare = &share
			if !room.Fits(need) || s.denied(ask, member, need, back).Reason != "" {
				continue
			}
			place, taken, _, _ := room.GPUFor(share)
			taken.Joins = false
			return &Part{Number: one.Number, Place: place, Share: taken, Room: room}
		}
	}
	return nil
}

// withLeft adds to the trials that are held those that the worker leaves to others,
// since it failed to start them.
func (s *state) withLeft(q Request, member pool.Member, held Held) Held {
	left := Held(nil)
	for number, starts := range q.Failed {
		if _, moved := held[number]; moved || pool.Freshness(starts, pool.NodeOf(member)) >= s.freshest(q.Ask, starts, q.Hosts) {
			continue
		}
		if left == nil {
			left = make(Held)
			maps.Copy(left, held)
		}
		left[number] = ""
	}
	if left == nil {
		return held
	}
	return left
}

// Freshest is the best freshness of the workers that could try a trial now or when
// they are done with something else. A server that has just begun waits for those it
// has not heard of yet: hosts are the machines on which trials of the study have run.
func (a *Allocator) Freshest(ask Ask, starts []trial.FailedStart, hosts []string) int {
	defer a.locked()()
	return a.freshest(ask, starts, hosts)
}

func (s *state) freshest(ask Ask, starts []trial.FailedStart, hosts []string) int {
	if s.returns() && slices.ContainsFunc(hosts, func(host string) bool {
		return !slices.ContainsFunc(starts, func(one trial.FailedStart) bool { return one.Host == host })
	}) {
		return 2
	}
	need, most := ask.Need(1), 0
	for _, member := range s.workers.Members() {
		if fresh := pool.Freshness(starts, pool.NodeOf(member)); fresh <= most || !s.usable(member) || !ask.Eligible(member) || !pool.RoomOf(member, nil).Fits(need) || s.reservedFor(member, ask.asker(need)) != "" {
			continue
		} else if most = fresh; most == 2 {
			break
		}
	}
	return most
}
