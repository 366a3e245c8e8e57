package replay

import (
	"cmp"
	"slices"
)

// victims are jobs of lower priority whose end makes room for the job on one
// machine: where the least time is lost, those of the lowest priority and that
// began last first. Nil: there are none.
func (s *State) victims(job *Waiting) []*Running {
	byHost := map[int][]*Running{}
	for _, one := range s.live {
		if one.Priority < job.Priority {
			byHost[one.Machine] = append(byHost[one.Machine], one)
		}
	}
	var best []*Running
	least := 0.0
	for at := range s.hosts {
		list := byHost[at]
		if len(list) == 0 || !job.RunsOn(s.Type(at)) {
			continue
		}
		chosen, lost := s.sacrifice(at, list, job)
		if chosen != nil && (best == nil || lost < least) {
			best, least = chosen, lost
		}
	}
	return best
}

// sacrifice is which of the jobs on a machine make room for one that waits, and
// how many seconds they have run; nil where all of them together do not.
func (s *State) sacrifice(at int, list []*Running, job *Waiting) (chosen []*Running, seconds float64) {
	slices.SortFunc(list, func(a, b *Running) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(b.Began, a.Began), cmp.Compare(b.sequence, a.sequence))
	})
	free := s.hosts[at].free
	ended := map[int]int{} // jobs taken off a GPU
	for _, one := range list {
		if free.Holds(job.Needs) {
			break
		}
		chosen = append(chosen, one)
		seconds += s.now - one.Began
		free.Cores += one.Needs.Cores
		free.MemoryBytes += one.Needs.MemoryBytes
		for _, gpu := range one.GPUs {
			if ended[gpu]++; ended[gpu] == len(s.hosts[at].gpus[gpu]) {
				free.GPUs++
			}
		}
	}
	if !free.Holds(job.Needs) {
		return nil, 0
	}
	return chosen, seconds
}
