package pool

import "slices"

// Need is what one trial has of one machine for itself: all of it at once, or
// the trial does not start (a gang, where it is several GPUs).
type Need struct {
	// GPUs is how many whole GPUs.
	GPUs int
	// GPUShare is what it should take of one GPU beside others, instead of whole
	// ones; nil: it takes none, or GPUs.
	GPUShare *GPUShare
	// Cores is how many cores it keeps busy; 0: all of the machine.
	Cores int
	// MemoryBytes is how much memory it needs; 0: not known.
	MemoryBytes int64
	// KeptCores and KeptMemory say that its study asked for that. Else it is what
	// trials of the study were seen to use, and no machine is too small for it.
	KeptCores, KeptMemory bool
}

// Asked reports whether the study asked for any of it.
func (n Need) Asked() bool { return n.GPUs > 0 || n.GPUShare != nil || n.KeptCores || n.KeptMemory }

// Room is what a worker has left for another trial, and what it has in all.
//
// An elastic worker runs as many trials as its cores and its memory have room
// for, which is measured: how many cores a trial keeps busy follows from the
// configuration that was found to be its best, and its memory is what trials of
// its study were seen to use. A worker that is not elastic says itself how many
// it runs, and asks for no more; only what studies ask for is counted there.
type Room struct {
	Elastic bool
	// Machine is how many cores the worker has, Cores how many of them no trial
	// keeps busy: negative when there are more trials than it has room for.
	Machine, Cores int
	// MemoryBytes is what no trial is known to use, MachineBytes what trials may
	// use in all; negative where the worker did not say how much it has.
	MemoryBytes, MachineBytes int64
	// GPUs are those that no trial has, by their place in the machine's list, in
	// order, and Shared those on which trials have shares; MachineGPUs is how many
	// there are.
	GPUs        []int
	Shared      []SharedGPU
	MachineGPUs int
	gpuBytes    []int64
	// Trials is how many it runs, Slots how many it may.
	Trials, Slots int
}

// memoryKept is the part of a machine's memory that trials together leave free.
const memoryKept = 0.1

// RoomOf is the room a worker has beside the leases it holds.
func RoomOf(member Member, held []Lease) Room {
	room := empty(member)
	room.Cores -= member.Reserved
	room.Trials = len(held)
	for _, lease := range held {
		room.Cores -= room.occupied(lease)
		if room.MachineBytes > 0 && (room.Elastic || lease.KeptMemory) {
			room.MemoryBytes = max(0, room.MemoryBytes-lease.MemoryBytes)
		}
		room.GPUs = slices.DeleteFunc(room.GPUs, func(gpu int) bool { return slices.Contains(lease.GPUs, gpu) })
		if lease.GPUShare != nil && len(lease.GPUs) > 0 {
			room.join(lease.GPUs[0], lease.Trial, *lease.GPUShare)
		}
	}
	return room
}

// empty is the room that a worker has when it runs nothing.
func empty(member Member) Room {
	machine := member.Registration.Machine
	room := Room{
		Elastic: member.Registration.Elastic, Machine: max(1, machine.Cores), Cores: max(1, machine.Cores),
		MemoryBytes: -1, MachineBytes: -1, MachineGPUs: len(machine.GPUs), gpuBytes: machine.GPUMemoryBytes, Slots: max(1, member.Registration.Slots),
	}
	if bytes := machine.MemoryBytes; bytes > 0 {
		if machine.MemoryLimitBytes > 0 {
			bytes = min(bytes, machine.MemoryLimitBytes)
		}
		room.MachineBytes = int64((1 - memoryKept) * float64(bytes))
		room.MemoryBytes = room.MachineBytes
	}
	for gpu := range machine.GPUs {
		room.GPUs = append(room.GPUs, gpu)
	}
	return room
}

// occupied is how many cores of the machine the lease takes.
func (r Room) occupied(lease Lease) int {
	switch {
	case !r.Elastic && !lease.KeptCores:
		return r.Share()
	}
	return r.cores(lease.Cores, lease.GPUShare)
}

// Fits reports whether a trial with the need can start now. A machine that runs
// nothing takes every trial whose study does not ask for more than it has.
func (r Room) Fits(need Need) bool {
	switch {
	case need.GPUs > len(r.GPUs) || !r.holds(need) || !r.fitsShare(need.GPUShare):
		return false
	case r.Trials == 0:
		return true
	case !r.Elastic:
		return (!need.KeptCores || need.Cores <= r.Cores) && (!need.KeptMemory || r.MemoryBytes < 0 || need.MemoryBytes <= r.MemoryBytes)
	}
	return r.Trials < r.Slots && r.cores(need.Cores, need.GPUShare) <= r.Cores && (r.MemoryBytes < 0 || need.MemoryBytes <= r.MemoryBytes)
}

// Load is the largest part that trials have of any that the worker has: of its slots,
// its cores, its memory and its GPUs. It is 0 for one that runs nothing.
func (r Room) Load() float64 {
	load := max(float64(r.Trials)/float64(r.Slots), 1-float64(r.Cores)/float64(r.Machine))
	if r.MachineBytes > 0 {
		load = max(load, 1-float64(r.MemoryBytes)/float64(r.MachineBytes))
	}
	if r.MachineGPUs > 0 {
		load = max(load, 1-float64(len(r.GPUs))/float64(r.MachineGPUs))
	}
	return load
}

// Takes is what a trial with the need has of the worker.
func (r Room) Takes(need Need) Amount {
	return Amount{Trials: 1, GPUs: need.HeldGPUs(), Cores: r.occupied(need.lease()), MemoryBytes: need.MemoryBytes}
}

// With is the room beside one more trial with the need, which fits.
func (r Room) With(need Need) Room {
	r.Trials++
	r.Cores -= r.occupied(need.lease())
	if r.MachineBytes > 0 && (r.Elastic || need.KeptMemory) {
		r.MemoryBytes = max(0, r.MemoryBytes-need.MemoryBytes)
	}
	r.GPUs = r.GPUs[min(need.GPUs, len(r.GPUs)):]
	if need.GPUShare != nil {
		if place, taken, joins, fits := r.GPUFor(*need.GPUShare); fits {
			if !joins {
				r.GPUs = slices.DeleteFunc(slices.Clone(r.GPUs), func(gpu int) bool { return gpu == place })
			}
			r.join(place, "", taken)
		}
	}
	return r
}

// fitsShare reports whether some GPU has room for the share; nil takes none.
func (r Room) fitsShare(share *GPUShare) bool {
	if share == nil {
		return true
	}
	_, _, _, fits := r.GPUFor(*share)
	return fits
}

// lease is what the need takes, as a lease has it.
func (n Need) lease() Lease {
	return Lease{Cores: n.Cores, KeptCores: n.KeptCores, GPUShare: n.GPUShare}
}

// HeldGPUs is how many GPUs it counts as: a share is its fraction.
func (n Need) HeldGPUs() float64 {
	if n.GPUShare != nil {
		return n.GPUShare.Fraction
	}
	return float64(n.GPUs)
}

// holds reports whether the machine has in all what the study asked for.
func (r Room) holds(need Need) bool {
	return need.GPUs <= r.MachineGPUs && (need.GPUShare == nil || r.MachineGPUs > 0) && (!need.KeptCores || need.Cores <= r.Machine) &&
		(!need.KeptMemory || r.MachineBytes < 0 || need.MemoryBytes <= r.MachineBytes)
}

// Share is how many cores a trial may count on where the worker divides them by
// itself.
func (r Room) Share() int { return max(1, r.Machine/r.Slots) }
