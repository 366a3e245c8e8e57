package pool

import "math"

// Amount is what trials have of the pool together, or what there is of it.
type Amount struct {
	Trials int
	// GPUs counts a share of one as its fraction.
	GPUs        float64
	Cores       int
	MemoryBytes int64
}

// Plus adds what others have.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.Trials + b.Trials, a.GPUs + b.GPUs, a.Cores + b.Cores, a.MemoryBytes + b.MemoryBytes}
}

// DominantShare is the largest part that the amount is of any resource of the
// pool: of its GPUs, its cores or its memory (Ghodsi et al., Dominant Resource
// Fairness, NSDI 2011, section 4). Each user's is kept equal to the others', so
// that one whose trials take GPUs and one whose trials take cores may both have
// most of what they need.
func (a Amount) DominantShare(pool Amount) float64 {
	share := 0.0
	for _, part := range [][2]float64{
		{a.GPUs, pool.GPUs}, {float64(a.Cores), float64(pool.Cores)}, {float64(a.MemoryBytes), float64(pool.MemoryBytes)},
	} {
		if part[1] > 0 {
			share = max(share, part[0]/part[1])
		}
	}
	return share
}

// Weighted divides a dominant share by its user's weight: one of weight 2 is
// served as if it had half of what it has (section 4.3, weighted DRF). A weight
// that is not above 0 counts as 1.
func Weighted(share, weight float64) float64 {
	if !(weight > 0) || math.IsInf(weight, 1) {
		return share
	}
	return share / weight
}

// Holdings are what the pool has and what each owner's trials have of it, those
// among them that are being decided.
type Holdings struct {
	Pool    Amount
	ByOwner map[string]Amount
	// FreeGPUs is how many GPUs of all workers no trial has.
	FreeGPUs int
	// GPUsOf is how many GPUs the trials of each study have, by its id, shares as
	// their fractions.
	GPUsOf map[string]float64
}

// Amount is what the lease has, the cores only where they are known.
func (l Lease) Amount() Amount {
	return Amount{Trials: 1, GPUs: l.HeldGPUs(), Cores: l.Cores, MemoryBytes: l.MemoryBytes}
}

// HeldGPUs is how many GPUs the lease counts as: a share is its fraction.
func (l Lease) HeldGPUs() float64 {
	if l.GPUShare != nil {
		return l.GPUShare.Fraction
	}
	return float64(len(l.GPUs))
}

// Hold adds up what the usable workers have, and who has how much, trials that are
// kept for a worker included.
func Hold(registry *Registry, leases *Leases, usable func(Member) bool) Holdings {
	held := Holdings{ByOwner: make(map[string]Amount), GPUsOf: make(map[string]float64)}
	for _, member := range registry.byID {
		if !usable(*member) {
			continue
		}
		room := empty(*member)
		held.Pool = held.Pool.Plus(Amount{Trials: room.Slots, GPUs: float64(room.MachineGPUs), Cores: room.Machine, MemoryBytes: max(0, room.MachineBytes)})
	}
	held.FreeGPUs = int(held.Pool.GPUs)
	type gpu struct {
		worker string
		place  int
	}
	taken := map[gpu]bool{}
	count := func(lease Lease, kept bool) {
		amount := Amount{Trials: 1, GPUs: lease.HeldGPUs(), Cores: max(1, lease.Cores), MemoryBytes: lease.MemoryBytes}
		if member, known := registry.byID[lease.Worker]; known {
			amount.Cores = empty(*member).occupied(lease)
			if len(lease.GPUs) > 0 && usable(*member) {
				for _, place := range lease.GPUs {
					// The places of one that is kept are those of the worker that it comes from.
					if one := (gpu{lease.Worker, place}); kept || !taken[one] {
						taken[one] = true
						held.FreeGPUs--
					}
				}
			}
		}
		held.ByOwner[lease.Owner] = held.ByOwner[lease.Owner].Plus(amount)
		held.GPUsOf[lease.Study] += lease.HeldGPUs()
	}
	for _, lease := range leases.byTrial {
		count(lease, false)
	}
	for _, lease := range leases.pending {
		count(lease, false)
	}
	for _, lease := range leases.elsewhere() {
		count(lease, true)
	}
	return held
}
