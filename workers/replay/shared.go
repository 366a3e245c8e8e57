package replay

import "slices"

// Shared puts several jobs on a GPU as long as what is told of their utilization
// adds up to no more than the limit (1 is all of the time), and their memory
// fits: where the most is in use already, by best fit. Together with the order
// [ByUtilizationFirst] that is first-fit decreasing as Yeung et al. have it
// (section 6), with what they predict as the jobs' Told.
func Shared(limit float64) Policy {
	return Policy{Name: "shared", Chooser: shared{limit: limit}, Shares: true, Order: ByUtilizationFirst}
}

// ByUtilizationFirst is the order of priorities, then of what is told of the
// utilization, the highest first.
func ByUtilizationFirst(a, b *Waiting) int {
	if c := ByPriority(a, b); c != 0 {
		return c
	}
	switch x, y := a.Claim().Utilization, b.Claim().Utilization; {
	case x > y:
		return -1
	case x < y:
		return 1
	}
	return 0
}

// Profiled is the reactive scheduler of Yeung et al.: nothing is known of a job
// until it has run by itself for a minute, or as many seconds as are said; then
// its true utilization is, and it may be moved to where it fits beside others,
// for the cost of a move, while others wait for a GPU.
func Profiled(limit, seconds float64) Policy {
	return Policy{Name: "profiled", Chooser: firstFit{}, Shares: true, Mover: merger{limit, seconds}, Every: seconds}
}

type shared struct {
	limit float64
}

func (s shared) Choose(state *State, job *Waiting) (Spot, bool) {
	if job.Needs.GPUs == 0 || job.Alone {
		return firstFit{}.Choose(state, job)
	}
	claim := func(one *Job) Claim { return one.Claim() }
	if spot, found := fitBeside(state, job.Job, s.limit, claim, nil); found {
		return spot, true
	}
	return firstFit{}.Choose(state, job)
}

// fitBeside is the spot on GPUs that others are on, the fullest ones, where the
// job fits too; not beside the jobs that except says.
func fitBeside(state *State, job *Job, limit float64, claim func(*Job) Claim, except func(*Running) bool) (Spot, bool) {
	best, fullest := Spot{}, -1.0
	for at := range state.Machines() {
		needs := job.Needs
		needs.GPUs = 0
		if state.hosts[at].jobs == 0 || !state.Awake(at) || !state.Free(at).Holds(needs) || !job.runsOn(state.Type(at)) {
			continue
		}
		spot, use, found := besideOn(state, at, job, sharing{limit, claim, except})
		if found && use > fullest {
			best, fullest = spot, use
		}
	}
	return best, fullest >= 0
}

// sharing is what may be on a GPU together.
type sharing struct {
	limit  float64
	claim  func(*Job) Claim
	except func(*Running) bool
}

// besideOn is the spot on the GPUs of one machine, and how much they are used
// already.
func besideOn(state *State, at int, job *Job, rule sharing) (spot Spot, use float64, found bool) {
	type candidate struct {
		gpu int
		use float64
	}
	var list []candidate
	own := rule.claim(job)
	memory := state.Type(at).GPUMemoryBytes
	for gpu := range state.GPUs(at) {
		beside := state.On(at, gpu)
		if len(beside) == 0 || len(beside) >= state.most {
			continue
		}
		sum := Claim{}
		barred := false
		for _, one := range beside {
			said := rule.claim(one.Job)
			sum.Utilization += said.Utilization
			sum.GPUMemoryBytes += said.GPUMemoryBytes
			barred = barred || one.from.Alone || !one.Working() || rule.except != nil && rule.except(one)
		}
		if !barred && sum.Utilization+own.Utilization <= rule.limit && (memory == 0 || sum.GPUMemoryBytes+own.GPUMemoryBytes <= memory) {
			list = append(list, candidate{gpu, sum.Utilization})
		}
	}
	if len(list) < job.Needs.GPUs {
		return Spot{}, 0, false
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		switch {
		case a.use > b.use:
			return -1
		case a.use < b.use:
			return 1
		}
		return 0
	})
	spot.Machine = at
	for _, one := range list[:job.Needs.GPUs] {
		spot.GPUs = append(spot.GPUs, one.gpu)
		use += one.use / float64(job.Needs.GPUs)
	}
	return spot, use, true
}

// merger moves jobs that were watched together.
type merger struct {
	limit, seconds float64
}

// Moves takes one job for each that waits off its GPUs, to others that were
// watched for long enough.
func (m merger) Moves(state *State) []Move {
	if state.WaitingJobs() == 0 {
		return nil
	}
	known := func(one *Running) bool { return one.shared || state.Now()-one.from.first >= m.seconds }
	claim := func(one *Job) Claim { return Claim{one.Utilization, one.GPUMemoryBytes} }
	for _, one := range state.Running() {
		alone := !slices.ContainsFunc(one.GPUs, func(gpu int) bool { return len(state.On(one.Machine, gpu)) > 1 })
		if len(one.GPUs) == 0 || !alone || !one.Working() || !known(one) || one.from.Alone {
			continue
		}
		spot, found := fitBeside(state, one.Job, m.limit, claim, func(other *Running) bool { return other == one || !known(other) })
		if found {
			// One at a time: what it changes has to be seen by the next.
			return []Move{{Job: one, To: spot}}
		}
	}
	return nil
}
