// Package policies has the policies that replays compare: what schedulers do that
// know nothing of energy ([FirstFit], [Spread], [Anywhere], [Fair]), the score of
// HEATS ([Heats]), and several jobs on a GPU by their predicted use ([Packed]) or
// after they were watched alone ([Watched]).
package policies

import (
	"math/rand/v2"

	"github.com/tandem-tune/tandem/bench/pool/replay"
)

// FirstFit takes the first machine, in the order of the cluster, that has room.
func FirstFit() replay.Policy { return replay.Policy{Name: "first-fit", Chooser: firstFit{}} }

// firstFit leaves one machine out, that with the place before besides; none for 0.
type firstFit struct{ besides int }

func (f firstFit) Choose(state *replay.State, job *replay.Waiting) (replay.Spot, bool) {
	first := -1
	for _, room := range state.Rooms(job) {
		for _, at := range room.Machines {
			if at+1 == f.besides {
				continue
			}
			if first < 0 || at < first {
				first = at
			}
			break
		}
	}
	return replay.Spot{Machine: first}, first >= 0
}

// Fair takes the first machine that has room, and gives users their turns as the
// server does, by their dominant shares.
func Fair() replay.Policy { return replay.Policy{Name: "fair", Chooser: firstFit{}, Turns: true} }

// Spread takes the machine that is left with the largest share free, the mean
// over cores, GPUs and memory; of equal ones any. That is what Kubernetes does by
// default (NodeResourcesFit by LeastAllocated, LeastRequestedPriority when the
// thesis compared HEATS with it), with GPUs counted as one of the resources.
func Spread(seed uint64) replay.Policy {
	return replay.Policy{Name: "spread", Chooser: spread{dice(seed)}}
}

type spread struct{ random *rand.Rand }

func dice(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 8)) //nolint:gosec // what is drawn has to repeat
}

func (s spread) Choose(state *replay.State, job *replay.Waiting) (replay.Spot, bool) {
	var best []*replay.Group
	most := -1.0
	for _, room := range state.Rooms(job) {
		share := left(room, job)
		if share > most {
			best, most = best[:0], share
		}
		if share == most {
			best = append(best, room)
		}
	}
	return anyOf(best, s.random)
}

// left is the share of the machines' resources that would be free beside the job.
func left(room *replay.Group, job *replay.Waiting) float64 {
	sum, kinds := 0.0, 0.0
	add := func(free, need, capacity float64) {
		if capacity > 0 {
			sum += (free - need) / capacity
			kinds++
		}
	}
	has := room.Type.Capacity
	add(float64(room.Free.Cores), float64(job.Needs.Cores), float64(has.Cores))
	add(float64(room.Free.GPUs), float64(job.Needs.GPUs), float64(has.GPUs))
	add(float64(room.Free.MemoryBytes), float64(job.Needs.MemoryBytes), float64(has.MemoryBytes))
	return sum / max(1, kinds)
}

// Anywhere takes any machine that has room, and users take turns: so works a
// server whose free workers ask for a trial, without placement, when many ask at
// the same time.
func Anywhere(seed uint64) replay.Policy {
	return replay.Policy{Name: "anywhere", Chooser: anywhere{dice(seed)}, Turns: true}
}

type anywhere struct{ random *rand.Rand }

func (a anywhere) Choose(state *replay.State, job *replay.Waiting) (replay.Spot, bool) {
	return anyOf(state.Rooms(job), a.random)
}

// anyOf is one of all machines of the groups.
func anyOf(groups []*replay.Group, random *rand.Rand) (replay.Spot, bool) {
	count := 0
	for _, one := range groups {
		count += len(one.Machines)
	}
	if count == 0 {
		return replay.Spot{}, false
	}
	drawn := random.IntN(count)
	for _, one := range groups {
		if drawn < len(one.Machines) {
			return replay.Spot{Machine: one.Machines[drawn]}, true
		}
		drawn -= len(one.Machines)
	}
	return replay.Spot{}, false
}
