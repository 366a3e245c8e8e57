package pool

import "fmt"

const gibibyte = 1 << 30

// Unfit says why no worker could run a trial with the need even if it ran
// nothing else, with the study's field, its value and what the largest has;
// empty: some could. Without any worker it says so.
func Unfit(need Need, members []Member) string {
	if len(members) == 0 {
		return "no worker is connected"
	}
	var gpus, cores, memory Member
	for i, member := range members {
		room := empty(member)
		if room.holds(need) {
			return ""
		}
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
	case need.GPUs > empty(gpus).MachineGPUs:
		return fmt.Sprintf("resources.gpus is %d, and no connected worker has more than %d GPUs (%s): ask for fewer, or connect a larger machine", need.GPUs, empty(gpus).MachineGPUs, gpus.Registration.Name)
	case need.KeptCores && need.Cores > empty(cores).Machine:
		return fmt.Sprintf("resources.cores is %d, and no connected worker has more than %d (%s): ask for fewer, or connect a larger machine", need.Cores, empty(cores).Machine, cores.Registration.Name)
	case need.KeptMemory && most.MachineBytes >= 0 && need.MemoryBytes > most.MachineBytes:
		return fmt.Sprintf("resources.memory_gib is %.4g, and no connected worker has more than %.4g for trials (%s, of whose memory a tenth stays free): ask for less, or connect a larger machine",
			float64(need.MemoryBytes)/gibibyte, float64(most.MachineBytes)/gibibyte, memory.Registration.Name)
	}
	return fmt.Sprintf("no connected worker has all of it at once: resources asks for %d GPUs, %d cores and %.4g GiB; the most GPUs are on %s, the most cores on %s and the most memory on %s: ask for less, or connect a larger machine",
		need.GPUs, need.Cores, float64(need.MemoryBytes)/gibibyte, gpus.Registration.Name, cores.Registration.Name, memory.Registration.Name)
}
