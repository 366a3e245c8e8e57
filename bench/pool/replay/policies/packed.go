package policies

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/tandem-tune/tandem/bench/pool/packed"
	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/workers/placement"
)

// Packed puts several jobs of one GPU each on a GPU by what they are told to use
// of it, with packing's code: the proactive scheduler of Yeung et al., with what
// they predict as the jobs' Told. Those that need the most of a GPU go first.
// What was passed by too many that came later goes first, and a GPU (or a machine, for
// what cannot share) is kept for it. Memory is looked at where the types of machines say how much their GPUs have.
func Packed(settings packed.Settings) replay.Policy {
	passes := func(gpus, jobs int) int {
		settings.MostJobs = jobs
		return settings.Passes(gpus)
	}
	return replay.Policy{Name: "packed", Chooser: packing{settings}, Shares: true, Order: ByUtilizationFirst, MostPassed: passes}
}

// ByUtilizationFirst is the order of priorities, then of what is told of the
// utilization, the highest first.
func ByUtilizationFirst(a, b *replay.Waiting) int {
	if c := replay.ByPriority(a, b); c != 0 {
		return c
	}
	return cmp.Compare(b.Claim().Utilization, a.Claim().Utilization)
}

// LongestFirst is the policy with another order: that of priorities, then of the
// lengths that the trace has, the longest first (Graham, Bounds on multiprocessing timing
// anomalies, SIAM Journal on Applied Mathematics 17(2), 1969). What ends last is short
// then, so that no GPU waits for a long job that began late: all is done sooner, and
// the jobs wait longer in the mean, as the short ones are last.
func LongestFirst(policy replay.Policy) replay.Policy {
	policy.Name += ", longest first"
	policy.Order = func(a, b *replay.Waiting) int {
		if c := replay.ByPriority(a, b); c != 0 {
			return c
		}
		return cmp.Compare(b.Length(), a.Length())
	}
	return policy
}

// observedSeconds is how long a reactive scheduler watches a job alone before it
// shares a GPU (section 6).
const observedSeconds = 60.0

// Watched is their reactive scheduler: each job has a GPU to itself first, and
// what it uses is known when it has run for observedSeconds. Then it may
// move to where it fits beside others that were watched, for the cost of a move,
// while jobs wait for a GPU.
func Watched(settings packed.Settings) replay.Policy {
	return replay.Policy{Name: "watched", Chooser: firstFit{}, Shares: true, Mover: merger{settings}, Every: observedSeconds}
}

type packing struct{ settings packed.Settings }

func (p packing) Choose(state *replay.State, job *replay.Waiting) (replay.Spot, bool) {
	overdue := state.Overdue()
	cleared, whose := state.Cleared(overdue)
	if whose == job {
		cleared = -1
	}
	if !job.Shares() {
		return firstFit{besides: cleared + 1}.Choose(state, job)
	}
	var gpus shelf
	for at := range state.Machines() {
		needs := job.Needs
		needs.GPUs = 0
		if at != cleared && state.Awake(at) && state.Free(at).Holds(needs) && job.RunsOn(state.Type(at)) {
			gpus.add(state, at, (*replay.Job).Claim, nil)
		}
	}
	settings := p.settings
	settings.MostJobs = state.JobsPerGPU()
	settings.MostPassed = state.MostPassed()
	waiting := []packed.Job{waitingJob(state, job)}
	for _, one := range overdue {
		if one != job && one.Shares() {
			waiting = append(waiting, waitingJob(state, one))
		}
	}
	for _, one := range packed.Proactive(waiting, gpus.gpus, settings) {
		if one.Job == job.Name {
			return gpus.spot(one.GPU), true
		}
	}
	return replay.Spot{}, false
}

// waitingJob is a job that waits as packing sees it.
func waitingJob(state *replay.State, job *replay.Waiting) packed.Job {
	one := packable(job.Job, job.Claim())
	one.Passed = state.Passed(job)
	return one
}

// packable is a job as packing sees it. Where memory is not looked at it is told
// that the job needs next to none.
func packable(job *replay.Job, claim replay.Claim) packed.Job {
	return packed.Job{Name: job.Name, Utilization: claim.Utilization, MemoryBytes: max(1, claim.GPUMemoryBytes)}
}

// shelf is the GPUs that packing chooses from, each named by its place.
type shelf struct {
	gpus  []packed.GPU
	spots []replay.Spot
	free  map[int]placement.Resources // of the machines
}

// add puts the GPUs of a machine there. Nothing may join what closed says.
func (s *shelf) add(state *replay.State, at int, claim func(*replay.Job) replay.Claim, closed func(*replay.Running) bool) {
	if s.free == nil {
		s.free = map[int]placement.Resources{}
	}
	s.free[at] = state.Free(at)
	for gpu := range state.GPUs(at) {
		one := packed.GPU{Name: strconv.Itoa(len(s.gpus)), FreeBytes: state.Type(at).GPUMemoryBytes, MemoryBytes: state.Type(at).GPUMemoryBytes}
		if one.FreeBytes == 0 {
			one.FreeBytes = math.MaxInt64
		}
		for _, resident := range state.On(at, gpu) {
			use := packable(resident.Job, claim(resident.Job))
			one.Utilization += use.Utilization
			one.FreeBytes -= use.MemoryBytes
			one.Jobs++
			one.Residents = append(one.Residents, resident.Name)
			one.Closed = one.Closed || resident.KeepsAlone() || !resident.Working() || resident.Needs.GPUs > 1 || closed != nil && closed(resident)
		}
		s.gpus, s.spots = append(s.gpus, one), append(s.spots, replay.Spot{Machine: at, GPUs: []int{gpu}})
	}
}

func (s *shelf) spot(name string) replay.Spot {
	place, _ := strconv.Atoi(name) // add made it from a number
	return s.spots[place]
}

// merger moves jobs that were watched together.
type merger struct{ settings packed.Settings }

// Moves makes room for as many jobs as wait: it takes jobs that are alone and
// were watched, those that use the most of a GPU first, and puts them beside
// others where they fit.
func (m merger) Moves(state *replay.State) []replay.Move {
	unseen := func(one *replay.Running) bool { return state.Now()-one.FirstBegan() < observedSeconds }
	used := func(one *replay.Job) replay.Claim {
		return replay.Claim{Utilization: one.Utilization, GPUMemoryBytes: one.GPUMemoryBytes}
	}
	var seen []*replay.Running
	for _, one := range state.Running() {
		if one.Needs.GPUs == 1 && one.Working() && !one.KeepsAlone() && !unseen(one) && len(state.On(one.Machine, one.GPUs[0])) == 1 {
			seen = append(seen, one)
		}
	}
	slices.SortStableFunc(seen, func(a, b *replay.Running) int { return cmp.Compare(b.Utilization, a.Utilization) })
	var all shelf
	for at := range state.Machines() {
		if state.Awake(at) && state.Jobs(at) > 0 {
			all.add(state, at, used, unseen)
		}
	}
	settings := m.settings
	settings.MostJobs = state.JobsPerGPU()
	var moves []replay.Move
	for _, one := range seen {
		if len(moves) >= state.WaitingJobs() {
			break
		}
		if to, found := all.join(state, one, settings); found {
			moves = append(moves, replay.Move{Job: one, To: to})
		}
	}
	return moves
}

// join finds a place beside others for a job that is alone on its GPU, unless
// another was put there meanwhile, and notes it.
func (s *shelf) join(state *replay.State, one *replay.Running, settings packed.Settings) (replay.Spot, bool) {
	needs := one.Needs
	needs.GPUs = 0
	own := slices.IndexFunc(s.spots, func(spot replay.Spot) bool { return spot.Machine == one.Machine && spot.GPUs[0] == one.GPUs[0] })
	if s.gpus[own].Jobs > 1 {
		return replay.Spot{}, false
	}
	var others []packed.GPU
	for i, gpu := range s.gpus {
		at := s.spots[i].Machine
		room := at == one.Machine || s.free[at].Holds(needs)
		if i != own && gpu.Jobs > 0 && room && one.RunsOn(state.Type(at)) {
			others = append(others, gpu)
		}
	}
	use := packable(one.Job, replay.Claim{Utilization: one.Utilization, GPUMemoryBytes: one.GPUMemoryBytes})
	placed := packed.Proactive([]packed.Job{use}, others, settings)
	if len(placed) == 0 {
		return replay.Spot{}, false
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
