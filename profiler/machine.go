package profiler

import (
	"github.com/tandem-tune/tandem/profiler/proc"
	"math"
)

// Machine is what there is to say of the machine in a line, and of what this
// process may use of it.
type Machine struct {
	CPUModel string
	// Cores is how many logical cores this process may keep busy: those it may
	// run on, or as many as its control group has time for where these are fewer.
	Cores int
	// CPUQuota is how many cores' worth of time the control group may have; 0
	// where that is as much as the cores have.
	CPUQuota float64
	// MemoryBytes is what this process may use.
	MemoryBytes int64
	// MemoryLimitBytes is the control group's limit; 0 where the machine has less.
	MemoryLimitBytes int64
	// Governor chooses the frequency of the cores, "mixed" where they have
	// several; empty where the kernel does not control it.
	Governor string
	GPUs     []string
	// GPUMemoryBytes is how much memory each of them has; 0 where the driver does
	// not tell.
	GPUMemoryBytes []int64
	// GPUPowerCapWatts is the least power limit of the GPUs; 0 where none is below
	// its default, and where the driver does not tell.
	GPUPowerCapWatts float64
}

// ThisMachine describes the machine this process runs on; what cannot be told is
// left empty.
func ThisMachine() Machine {
	m := machineOf(proc.NewHost(""), proc.CoreNumbers())
	if gpu, err := openGPUs(); err == nil {
		m.GPUs, m.GPUPowerCapWatts = models(gpu), gpuPowerCap(gpu)
		for device := range m.GPUs {
			m.GPUMemoryBytes = append(m.GPUMemoryBytes, gpuMemoryBytes(gpu, device))
		}
		gpu.close()
	}
	return m
}

// machineOf is what the kernel's files say, for a process on these cores.
func machineOf(h proc.Host, cores []int) Machine {
	m := Machine{CPUModel: proc.CPUModel(h), Cores: len(cores), Governor: proc.Governor(h, cores)}
	limited := proc.LimitsOf(h)
	if limited.Cores > 0 && limited.Cores < float64(m.Cores) {
		m.CPUQuota, m.Cores = limited.Cores, int(math.Ceil(limited.Cores))
	}
	if total, _, err := proc.Memory(h); err == nil {
		m.MemoryBytes = total
		if limited.Memory > 0 && limited.Memory < total {
			m.MemoryBytes, m.MemoryLimitBytes = limited.Memory, limited.Memory
		}
	}
	return m
}

// powerLimited is a gpuReader that tells the power limits, in milliwatts.
type powerLimited interface {
	powerLimit(device int) (uint, error)
	defaultPowerLimit(device int) (uint, error)
}

// gpuPowerCap is the least power limit of the GPUs that is below the default, in
// watts.
func gpuPowerCap(gpus gpuReader) float64 {
	limited, tells := gpus.(powerLimited)
	if !tells {
		return 0
	}
	watts := 0.0
	for device := range gpus.devices() {
		limit, err := limited.powerLimit(device)
		usual, usualErr := limited.defaultPowerLimit(device)
		if err != nil || usualErr != nil || limit >= usual {
			continue
		}
		if one := float64(limit) / 1000; watts == 0 || one < watts {
			watts = one
		}
	}
	return watts
}
