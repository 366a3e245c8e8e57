package pool

// Room is what a worker has left for another trial, and what it has in all.
//
// An elastic worker runs as many trials as its cores and its memory have room
// for, which is measured: how many cores a trial keeps busy follows from the
// configuration that was found to be its best, and its memory is what trials of
// its study were seen to use. A worker that is not elastic says itself how many
// it runs, and asks for no more.
type Room struct {
	Elastic bool
	// Machine is how many cores the worker has, Cores how many of them no trial
	// keeps busy: negative when there are more trials than it has room for.
	Machine, Cores int
	// MemoryBytes is what no trial is known to use; negative where the worker
	// did not say how much it has.
	MemoryBytes int64
	// Trials is how many it runs, Slots how many it may.
	Trials, Slots int
}

// memoryKept is the part of a machine's memory that trials together leave free.
const memoryKept = 0.1

// RoomOf is the room a worker has beside the leases it holds.
func RoomOf(member Member, held []Lease) Room {
	machine := member.Registration.Machine
	room := Room{
		Elastic: member.Registration.Elastic, Machine: max(1, machine.Cores), Cores: max(1, machine.Cores),
		MemoryBytes: -1, Trials: len(held), Slots: max(1, member.Registration.Slots),
	}
	room.Cores -= member.Reserved
	used := int64(0)
	for _, lease := range held {
		cores := lease.Cores
		if cores == 0 {
			cores = room.Machine
		}
		room.Cores -= cores
		used += lease.MemoryBytes
	}
	if machine.MemoryBytes > 0 {
		room.MemoryBytes = max(0, int64((1-memoryKept)*float64(machine.MemoryBytes))-used)
	}
	return room
}

// Fits reports whether a trial that keeps so many cores busy (0: all of the
// machine) and needs so much memory (0: not known) can start now. A machine
// that runs nothing takes every trial.
func (r Room) Fits(cores int, memory int64) bool {
	if !r.Elastic || r.Trials == 0 {
		return true
	}
	if cores == 0 {
		cores = r.Machine
	}
	return r.Trials < r.Slots && cores <= r.Cores && (r.MemoryBytes < 0 || memory <= r.MemoryBytes)
}

// Share is how many cores a trial may count on where the worker divides them by
// itself.
func (r Room) Share() int { return max(1, r.Machine/r.Slots) }
