package profiler

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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
	m := machineOf(newHost(""), coreNumbers())
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
func machineOf(h host, cores []int) Machine {
	m := Machine{CPUModel: cpuModel(h), Cores: len(cores), Governor: governor(h, cores)}
	limited := limitsOf(h)
	if limited.cores > 0 && limited.cores < float64(m.Cores) {
		m.CPUQuota, m.Cores = limited.cores, int(math.Ceil(limited.cores))
	}
	if total, _, err := memory(h); err == nil {
		m.MemoryBytes = total
		if limited.memory > 0 && limited.memory < total {
			m.MemoryBytes, m.MemoryLimitBytes = limited.memory, limited.memory
		}
	}
	return m
}

// governor is that of the cores.
func governor(h host, cores []int) string {
	found := ""
	for _, core := range cores {
		one, err := h.text(filepath.Join("sys/devices/system/cpu", "cpu"+strconv.Itoa(core), "cpufreq/scaling_governor"))
		switch {
		case err != nil:
			return ""
		case found == "":
			found = one
		case found != one:
			return "mixed"
		}
	}
	return found
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

// allowedCores is how many logical cores this process may run on.
func allowedCores() int { return len(coreNumbers()) }

// coreNumbers are the logical cores that this process may run on.
func coreNumbers() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cores []int
	for core, left := 0, set.Count(); left > 0; core++ {
		if set.IsSet(core) {
			cores = append(cores, core)
			left--
		}
	}
	return cores
}

// cpuModel is the first model name of /proc/cpuinfo; empty on processors that
// give none, such as many ARM ones.
func cpuModel(h host) string {
	content, err := h.text("proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(content, "\n") {
		name, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// memory is the machine's memory and what of it is available, in bytes.
func memory(h host) (total, available int64, err error) {
	content, err := h.text("proc/meminfo")
	if err != nil {
		return 0, 0, err
	}
	values := map[string]int64{}
	for line := range strings.SplitSeq(content, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[2] != "kB" {
			continue
		}
		if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			values[strings.TrimSuffix(fields[0], ":")] = kib << 10
		}
	}
	if values["MemTotal"] == 0 {
		return 0, 0, fmt.Errorf("no MemTotal in /proc/meminfo")
	}
	return values["MemTotal"], values["MemAvailable"], nil
}
