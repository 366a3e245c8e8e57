package pool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/selector"
)

const gibibyte = 1 << 30

// Unsuited says why none of the workers is one that is wanted, with the study's field,
// its value and what they have; empty: some are, or there is none.
func Unsuited(wanted selector.Selector, members []Member) string {
	if len(members) == 0 || slices.ContainsFunc(members, func(m Member) bool { return m.Suits(wanted) }) {
		return ""
	}
	var machines []named
	keeps, kept := map[string][]string{}, []string(nil)
	for _, member := range members {
		if machine, taint, tolerated := wanted.Tolerated(member.machine()); tolerated {
			machines = append(machines, named{machine, member.Registration.Name})
		} else {
			keeps[taint], kept = append(keeps[taint], member.Registration.Name), append(kept, member.Registration.Name)
		}
	}
	if len(machines) == 0 {
		taint := slices.Sorted(maps.Keys(keeps))[0]
		return fmt.Sprintf("resources.tolerates does not name %s, a taint that keeps trials from %s, and each other worker has such a taint too: add tolerates: [%s], or connect a worker without taints", taint, few(keeps[taint]), taint)
	}
	taints := ""
	if len(kept) > 0 {
		taints = "; not counting those whose taints resources.tolerates does not name: " + few(kept)
	}
	var have []string
	for _, part := range wanted.Split() {
		var with []string
		for _, one := range machines {
			if part.Suits(one.Machine) {
				with = append(with, one.name)
			}
		}
		if len(with) == 0 {
			field, value, _ := strings.Cut(part.String(), " ")
			return fmt.Sprintf("resources.%s is %s, and no connected worker has that (%s%s): ask for what one has, or connect such a worker", field, value, others(part, machines), taints)
		}
		have = append(have, part.String()+" has "+few(with))
	}
	return fmt.Sprintf("resources asks for %s, and no connected worker has all of it (%s%s): ask for less, or connect such a worker", wanted, strings.Join(have, "; "), taints)
}

// named is a worker's machine.
type named struct {
	selector.Machine
	name string
}

// others says what the workers have instead of the part.
func others(part selector.Selector, machines []named) string {
	var kinds, said []string
	by := map[string][]string{}
	for _, one := range machines {
		has := part.Has(one.Machine)
		if len(by[has]) == 0 {
			kinds = append(kinds, has)
		}
		by[has] = append(by[has], one.name)
	}
	for _, has := range kinds[:min(len(kinds), shownOf)] {
		said = append(said, few(by[has])+": "+has)
	}
	if len(kinds) > shownOf {
		said = append(said, "others: something else")
	}
	return strings.Join(said, "; ")
}

// shownOf is how many of a kind a reason names.
const shownOf = 3

func few(names []string) string {
	if more := len(names) - shownOf; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shownOf], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Unfit says why no worker could run a trial with the need even if it ran
// nothing else, with the study's field, its value and what the largest has;
// empty: some could. There is at least one member.
func Unfit(need Need, members []Member) string {
	var gpus, cores, memory Member
	var widest widestGPU
	for i, member := range members {
		room := empty(member)
		if room.holds(need) && room.fitsShare(need.GPUShare) {
			return ""
		}
		widest = widest.or(member)
		if i == 0 || room.MachineGPUs > len(gpus.Registration.Machine.GPUs) {
			gpus = member
		}
		if i == 0 || room.Machine > empty(cores).Machine {
			cores = member
		}
		if i == 0 || room.MachineBytes > empty(memory).MachineBytes {
			memory = member
		}
	}
	switch most := empty(memory); {
	case need.GPUShare != nil && empty(gpus).MachineGPUs == 0:
		return "resources.gpu_share asks for a part of a GPU, and no connected worker has a GPU: connect one that has, or leave gpu_share out"
	case need.GPUShare != nil && widest.lacks(*need.GPUShare):
		return fmt.Sprintf("resources.gpu_share: its next trial should hold %.3g GiB of one GPU's memory (an estimate: %s), and the largest GPU of the connected workers has %.3g GiB (%s on %s): connect a worker with a larger one, or let trials take less, for example by smaller batches",
			float64(need.GPUShare.MemoryBytes)/gibibyte, need.GPUShare.Basis, float64(widest.bytes)/gibibyte, widest.name, widest.worker)
	case need.GPUs > empty(gpus).MachineGPUs:
		return fmt.Sprintf("resources.gpus is %d, and no connected worker has more than %d GPUs (%s): ask for fewer, or connect a larger machine", need.GPUs, empty(gpus).MachineGPUs, gpus.Registration.Name)
	case need.KeptCores && need.Cores > empty(cores).Machine:
		return fmt.Sprintf("resources.cores is %d, and no connected worker has more than %d (%s): ask for fewer, or connect a larger machine", need.Cores, empty(cores).Machine, cores.Registration.Name)
	case need.KeptMemory && most.MachineBytes >= 0 && need.MemoryBytes > most.MachineBytes:
		return fmt.Sprintf("resources.memory_gib is %.4g, and no connected worker has more than %.4g for trials (%s, of whose memory a tenth stays free): ask for less, or connect a larger machine",
			float64(need.MemoryBytes)/gibibyte, float64(most.MachineBytes)/gibibyte, memory.Registration.Name)
	}
	return fmt.Sprintf("no connected worker has all of it at once: resources asks for %s, %d cores and %.4g GiB; the most GPUs are on %s, the most cores on %s and the most memory on %s: ask for less, or connect a larger machine",
		need.shownGPUs(), need.Cores, float64(need.MemoryBytes)/gibibyte, gpus.Registration.Name, cores.Registration.Name, memory.Registration.Name)
}

// shownGPUs says what it needs of GPUs.
func (n Need) shownGPUs() string {
	switch {
	case n.GPUShare != nil && n.GPUShare.MemoryBytes > 0:
		return fmt.Sprintf("a part of a GPU with %.3g GiB (an estimate)", float64(n.GPUShare.MemoryBytes)/gibibyte)
	case n.GPUShare != nil:
		return "a part of a GPU"
	}
	return fmt.Sprintf("%d GPUs", n.GPUs)
}

// widestGPU is the GPU with the most memory, and where it is.
type widestGPU struct {
	bytes        int64
	name, worker string
	// untold says that there is one whose memory nobody knows: whatever it is, a trial
	// that runs there alone may try.
	untold bool
}

// or is the widest of it and those of the worker.
func (w widestGPU) or(member Member) widestGPU {
	room := empty(member)
	for place, name := range member.Registration.Machine.GPUs {
		switch bytes := room.GPUBytes(place); {
		case bytes == 0:
			w.untold = true
		case bytes > w.bytes:
			w.bytes, w.name, w.worker = bytes, name, member.Registration.Name
		}
	}
	return w
}

// lacks reports whether no GPU has the memory that the share needs.
func (w widestGPU) lacks(share GPUShare) bool { return !w.untold && share.MemoryBytes > w.bytes }
