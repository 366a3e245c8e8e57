package pool

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare/packing"
)

// GPUShare is what a trial should take of one GPU that it may share with others.
type GPUShare struct {
	// Utilization is the share of the time in which it keeps the GPU busy, from 0
	// to 1; negative where that is not known: then it runs alone.
	Utilization float64
	// MemoryBytes is the most that it holds of the GPU's memory, and MemoryPart the
	// least that is kept for it, as a part of what the GPU has. A trial for which
	// both are 0 runs alone.
	MemoryBytes int64
	MemoryPart  float64
	// Fraction is how much of a GPU it counts as, from 0 to 1, for quotas and fair
	// shares.
	Fraction float64
	// Basis is why all that is expected, for people.
	Basis string
	// Joins says that it may only join others: idle GPUs are kept from it.
	Joins bool
	// Refuses says that it must not run beside a trial; nil refuses none.
	Refuses func(resident trial.ID) bool
	// Prefers says how good it is that it runs beside a trial; nil: all are as good.
	Prefers func(resident trial.ID) float64
}

// known reports whether enough is known of it to run beside others.
func (s GPUShare) known() bool {
	return s.Utilization >= 0 && s.Utilization <= 1 && (s.MemoryBytes > 0 || s.MemoryPart > 0)
}

// on is the share on a GPU with so much memory: all that is kept for it is in
// MemoryBytes.
func (s GPUShare) on(bytes int64) GPUShare {
	s.MemoryBytes = max(s.MemoryBytes, int64(math.Ceil(s.MemoryPart*float64(bytes))))
	s.MemoryPart = 0
	return s
}

// SharedGPU is a GPU on which trials have shares.
type SharedGPU struct {
	// Place is the GPU's in the machine's list.
	Place int
	// Trials are those that it runs, Utilization and MemoryBytes what they should
	// take together.
	Trials      []trial.ID
	Utilization float64
	MemoryBytes int64
	// Closed says that nothing may join them: of one of them nothing is known yet.
	Closed bool
}

// join adds a trial to the GPUs that are shared. A GPU of whose memory nothing is
// known is not shared.
func (r *Room) join(place int, id trial.ID, share GPUShare) {
	r.Shared = slices.Clone(r.Shared)
	at := slices.IndexFunc(r.Shared, func(gpu SharedGPU) bool { return gpu.Place == place })
	if at < 0 {
		at = len(r.Shared)
		r.Shared = append(r.Shared, SharedGPU{Place: place, Closed: r.GPUBytes(place) == 0})
	}
	gpu := &r.Shared[at]
	share = share.on(r.GPUBytes(place))
	gpu.Trials = append(slices.Clone(gpu.Trials), id)
	gpu.Utilization += max(0, share.Utilization)
	gpu.MemoryBytes += share.MemoryBytes
	gpu.Closed = gpu.Closed || !share.known()
}

// GPUFor is the GPU that a trial with the share gets, with what it takes there:
// an idle one, else the first on which it fits beside the trials that are there
// (packing.Place). joins says that others are there.
func (r Room) GPUFor(share GPUShare) (place int, taken GPUShare, joins, fits bool) {
	job := packing.Job{Utilization: share.Utilization, MemoryBytes: share.MemoryBytes}
	if job.MemoryBytes <= 0 && share.MemoryPart > 0 {
		job.MemoryBytes = 1 // what is kept for it is taken from what is free, below
	}
	settings := packing.Settings{}
	if share.Refuses != nil {
		settings.Refuses = func(resident string) bool { return share.Refuses(trial.ID(resident)) }
	}
	if share.Prefers != nil {
		settings.Prefers = func(resident string) float64 { return share.Prefers(trial.ID(resident)) }
	}
	gpus, places := r.packable(share, job.MemoryBytes)
	at, fits := packing.Place(job, gpus, settings)
	if !fits {
		return 0, share, false, false
	}
	place = places[at]
	return place, share.on(r.GPUBytes(place)), !slices.Contains(r.GPUs, place), true
}

// packable are the GPUs that no trial has for itself, as the packing sees them:
// of their memory that much is free for a job that says it needs so much.
func (r Room) packable(share GPUShare, says int64) (gpus []packing.GPU, places []int) {
	free := func(place int, taken int64) int64 {
		bytes := r.GPUBytes(place)
		if bytes == 0 {
			return math.MaxInt64
		}
		return bytes - taken - (share.on(bytes).MemoryBytes - min(says, share.on(bytes).MemoryBytes))
	}
	for _, place := range r.GPUs {
		if share.Joins {
			break
		}
		gpus, places = append(gpus, packing.GPU{FreeBytes: free(place, 0)}), append(places, place)
	}
	for _, one := range r.Shared {
		gpu := packing.GPU{Utilization: one.Utilization, FreeBytes: free(one.Place, one.MemoryBytes), Jobs: len(one.Trials), Closed: one.Closed}
		for _, id := range one.Trials {
			gpu.Residents = append(gpu.Residents, string(id))
		}
		gpus, places = append(gpus, gpu), append(places, one.Place)
	}
	return gpus, places
}

// sharerCores is how many cores a trial with a share of a GPU keeps busy, if its
// study does not say: an equal part of the machine for each that there may be.
func (r Room) sharerCores() int {
	return max(1, r.Machine/(packing.MostJobs*max(1, r.MachineGPUs)))
}

// cores is how many of the machine's cores a trial with the need keeps busy.
func (r Room) cores(cores int, share *GPUShare) int {
	switch {
	case cores > 0:
		return cores
	case share != nil:
		return r.sharerCores()
	default:
		return r.Machine
	}
}

// GPUBytes is the memory of the GPU at the place of the machine's list; 0 where
// that is not known.
func (r Room) GPUBytes(place int) int64 {
	if place < len(r.gpuBytes) {
		return max(0, r.gpuBytes[place])
	}
	return 0
}

// Residents are the trials that have shares of the GPU at the place.
func (r Room) Residents(place int) []trial.ID {
	for _, one := range r.Shared {
		if one.Place == place {
			return one.Trials
		}
	}
	return nil
}

// OnGPU is what the share takes of the GPU at the place.
func (r Room) OnGPU(place int, share GPUShare) GPUShare { return share.on(r.GPUBytes(place)) }

// CoresOf is how many of the machine's cores a trial with the need keeps busy,
// where it says none by itself too.
func (r Room) CoresOf(need Need) int { return r.cores(need.Cores, need.GPUShare) }

// Opens reports whether a trial with the need would take a part of a GPU that no trial
// has yet.
func (r Room) Opens(need Need) bool {
	if need.GPUShare == nil {
		return false
	}
	_, _, joins, fits := r.GPUFor(*need.GPUShare)
	return fits && !joins
}
