package replay

import (
	"math"
	"slices"
	"strconv"

	"github.com/tandem-tune/tandem/workers/gpushare/packing"
	"github.com/tandem-tune/tandem/workers/placement"
)

// Packed puts several jobs of one GPU each on a GPU by what they are told to use
// of it, with packing's code: the proactive scheduler of Yeung et al., with what
// they predict as the jobs' Told. Those that need the most of a GPU go first.
// What was passed by too many that came later goes first, and a GPU (or a machine, for
// what cannot share) is kept for it. Memory is looked at where the types of machines say how much their GPUs have.
func Packed(settings packing.Settings) Policy {
	passes := func(gpus, jobs int) int {
		settings.MostJobs = jobs
		return settings.Passes(gpus)
	}
	return Policy{Name: "packed", Chooser: packed{settings}, Shares: true, Order: ByUtilizationFirst, MostPassed: passes}
}

// ByUtilizationFirst is the order of priorities, then of what is told of the
// utilization, the highest first.
func ByUtilizationFirst(a, b *Waiting) int {
	if c := ByPriority(a, b); c != 0 {
		return c
	}
	return compareDown(a.Claim().Utilization, b.Claim().Utilization)
}

// LongestFirst is the policy with another order: that of priorities, then of the
// lengths that the trace has, the longest first (Graham, Bounds on multiprocessing timing
// anomalies, SIAM Journal on Applied Mathematics 17(2), 1969). What ends last is short
// then, so that no GPU waits for a long job that began late: all is done sooner, and
// the jobs wait longer in the mean, as the short ones are last.
func LongestFirst(policy Policy) Policy {
	policy.Name += ", longest first"
	policy.Order = func(a, b *Waiting) int {
		if c := ByPriority(a, b); c != 0 {
			return c
		}
		return compareDown(a.length(), b.length())
	}
	return policy
}

// Watched is their reactive scheduler: each job has a GPU to itself first, and
// what it uses is known when it has run for packing.ObservedSeconds. Then it may
// move to where it fits beside others that were watched, for the cost of a move,
// while jobs wait for a GPU.
func Watched(settings packing.Settings) Policy {
	return Policy{Name: "watched", Chooser: firstFit{}, Shares: true, Mover: merger{settings}, Every: packing.ObservedSeconds}
}

type packed struct{ settings packing.Settings }

func (p packed) Choose(state *State, job *Waiting) (Spot, bool) {
	overdue := state.overdue()
	cleared, whose := state.cleared(overdue)
	if whose == job {
		cleared = -1
	}
	if !job.shares() {
		return firstFit{besides: cleared + 1}.Choose(state, job)
	}
	var gpus shelf
	for at := range state.Machines() {
		needs := job.Needs
		needs.GPUs = 0
		if at != cleared && state.Awake(at) && state.Free(at).Holds(needs) && job.runsOn(state.Type(at)) {
			gpus.add(state, at, (*Job).Claim, nil)
		}
	}
	settings := p.settings
	settings.MostJobs = state.most
	settings.MostPassed = state.waiting.passes
	waiting := []packing.Job{state.packable(job)}
	for _, one := range overdue {
		if one != job && one.shares() {
			waiting = append(waiting, state.packable(one))
		}
	}
	for _, one := range packing.Proactive(waiting, gpus.gpus, settings) {
		if one.Job == job.Name {
			return gpus.spot(one.GPU), true
		}
	}
	return Spot{}, false
}

// packable is a job that waits as packing sees it.
func (s *State) packable(job *Waiting) packing.Job {
	one := packable(job.Job, job.Claim())
	one.Passed = s.waiting.passed(job)
	return one
}

// packable is a job as packing sees it. Where memory is not looked at it is told
// that the job needs next to none.
func packable(job *Job, claim Claim) packing.Job {
	return packing.Job{Name: job.Name, Utilization: claim.Utilization, MemoryBytes: max(1, claim.GPUMemoryBytes)}
}

// shelf is the GPUs that packing chooses from, each named by its place.
type shelf struct {
	gpus  []packing.GPU
	spots []Spot
	free  map[int]placement.Resources // of the machines
}

// add puts the GPUs of a machine there. Nothing may join what closed says.
func (s *shelf) add(state *State, at int, claim func(*Job) Claim, closed func(*Running) bool) {
	if s.free == nil {
		s.free = map[int]placement.Resources{}
	}
	s.free[at] = state.Free(at)
	for gpu := range state.GPUs(at) {
		one := packing.GPU{Name: strconv.Itoa(len(s.gpus)), FreeBytes: state.Type(at).GPUMemoryBytes, MemoryBytes: state.Type(at).GPUMemoryBytes}
		if one.FreeBytes == 0 {
			one.FreeBytes = math.MaxInt64
		}
		for _, resident := range state.On(at, gpu) {
			use := packable(resident.Job, claim(resident.Job))
			one.Utilization += use.Utilization
			one.FreeBytes -= use.MemoryBytes
			one.Jobs++
			one.Residents = append(one.Residents, resident.Name)
			one.Closed = one.Closed || resident.from.Alone || !resident.Working() || resident.Needs.GPUs > 1 || closed != nil && closed(resident)
		}
		s.gpus, s.spots = append(s.gpus, one), append(s.spots, Spot{Machine: at, GPUs: []int{gpu}})
	}
}

func (s *shelf) spot(name string) Spot {
	place, _ := strconv.Atoi(name) // add made it from a number
	return s.spots[place]
}

// merger moves jobs that were watched together.
type merger struct{ settings packing.Settings }

// Moves makes room for as many jobs as wait: it takes jobs that are alone and
// were watched, those that use the most of a GPU first, and puts them beside
// others where they fit.
func (m merger) Moves(state *State) []Move {
	unseen := func(one *Running) bool { return state.Now()-one.from.first < packing.ObservedSeconds }
	used := func(one *Job) Claim { return Claim{one.Utilization, one.GPUMemoryBytes} }
	var seen []*Running
	for _, one := range state.Running() {
		if one.Needs.GPUs == 1 && one.Working() && !one.from.Alone && !unseen(one) && len(state.On(one.Machine, one.GPUs[0])) == 1 {
			seen = append(seen, one)
		}
	}
	slices.SortStableFunc(seen, func(a, b *Running) int { return compareDown(a.Utilization, b.Utilization) })
	var all shelf
	for at := range state.Machines() {
		if state.Awake(at) && state.hosts[at].jobs > 0 {
			all.add(state, at, used, unseen)
		}
	}
	settings := m.settings
	settings.MostJobs = state.most
	var moves []Move
	for _, one := range seen {
		if len(moves) >= state.WaitingJobs() {
			break
		}
		if to, found := all.join(state, one, settings); found {
			moves = append(moves, Move{Job: one, To: to})
		}
	}
	return moves
}

func compareDown(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// join finds a place beside others for a job that is alone on its GPU, unless
// another was put there meanwhile, and notes it.
func (s *shelf) join(state *State, one *Running, settings packing.Settings) (Spot, bool) {
	needs := one.Needs
	needs.GPUs = 0
	own := slices.IndexFunc(s.spots, func(spot Spot) bool { return spot.Machine == one.Machine && spot.GPUs[0] == one.GPUs[0] })
	if s.gpus[own].Jobs > 1 {
		return Spot{}, false
	}
	var others []packing.GPU
	for i, gpu := range s.gpus {
		at := s.spots[i].Machine
		room := at == one.Machine || s.free[at].Holds(needs)
		if i != own && gpu.Jobs > 0 && room && one.runsOn(state.Type(at)) {
			others = append(others, gpu)
		}
	}
	use := packable(one.Job, Claim{one.Utilization, one.GPUMemoryBytes})
	use.Seen = true
	placed := packing.Reactive([]packing.Job{use}, others, settings)
	if len(placed) == 0 {
		return Spot{}, false
	}
	to, _ := strconv.Atoi(placed[0].GPU)
	s.occupy(one.Machine, needs, -1)
	s.occupy(s.spots[to].Machine, needs, 1)
	s.gpus[to].Jobs++
	s.gpus[to].Utilization += use.Utilization
	s.gpus[to].FreeBytes -= use.MemoryBytes
	s.gpus[to].Residents = append(s.gpus[to].Residents, one.Name)
	s.gpus[own].Jobs, s.gpus[own].Closed = 0, true // it is for what waits
	return s.spots[to], true
}

// occupy takes cores and memory of a machine, or gives them back.
func (s *shelf) occupy(machine int, needs placement.Resources, sign int) {
	free := s.free[machine]
	free.Cores -= sign * needs.Cores
	free.MemoryBytes -= int64(sign) * needs.MemoryBytes
	s.free[machine] = free
}
