package protocol

import (
	"math"
	"strconv"
	"strings"
)

// Machine is what a worker says of the machine it runs on, and of what it may
// use of it.
type Machine struct {
	Host     string `json:"host" maxLength:"255" doc:"host name"`
	CPUModel string `json:"cpu_model,omitempty" maxLength:"255"`
	Cores    int    `json:"cores" minimum:"0" doc:"logical cores the worker may use"`
	// CPUQuota is how many cores' worth of time the worker's control group may
	// have, 0.4 for two fifths of one core; 0 where that is not limited. It is at
	// most Cores.
	CPUQuota float64 `json:"cpu_quota,omitempty" minimum:"0" maximum:"1000000" doc:"CPU limit of the worker's control group, in cores; absent: no limit except its cores"`
	// MemoryBytes is what the worker may use: the machine's memory, or the limit
	// of the worker's control group where that is less.
	MemoryBytes int64 `json:"memory_bytes,omitempty" minimum:"0" doc:"memory the worker may use"`
	// MemoryLimitBytes is the limit of the worker's control group; 0 where there
	// is none below the machine's memory.
	MemoryLimitBytes int64 `json:"memory_limit_bytes,omitempty" minimum:"0" doc:"limit of the worker's control group; absent: all of the machine's memory"`
	// Governor is what chose the cores' frequency when the worker started; empty
	// where the kernel does not control it.
	Governor string   `json:"governor,omitempty" maxLength:"64" doc:"CPU frequency governor when the worker started"`
	GPUs     []string `json:"gpus,omitempty" maxItems:"64" doc:"name of each GPU"`
	// GPUMemoryBytes is how much memory each of them has, in the same order; 0 where
	// its driver does not tell.
	GPUMemoryBytes []int64 `json:"gpu_memory_bytes,omitempty" maxItems:"64" doc:"memory of each GPU, in the order of gpus; 0: not known"`
	// GPUPowerCapWatts is the least of the power limits of its GPUs when the
	// worker started; 0 where each may draw what it was made for.
	GPUPowerCapWatts float64 `json:"gpu_power_cap_watts,omitempty" minimum:"0" maximum:"100000" doc:"least power limit of its GPUs when the worker started; absent: none is below its default"`
	// Knobs are the system parameters that this worker can set by itself.
	Knobs []string `json:"knobs,omitempty" maxItems:"64" doc:"system parameters that the worker can set by itself"`
	// Threads is how many threads the worker's own environment gives its commands, such
	// as by OMP_NUM_THREADS; 0 where it does not say.
	Threads int `json:"threads,omitempty" minimum:"0" maximum:"4096" doc:"threads that the worker's environment gives its commands; absent: it does not say"`
	// EnergyMethod is how this worker obtains joules.
	EnergyMethod string `json:"energy_method,omitempty" maxLength:"255"`
}

// Type names machines that are alike: what a workload does on one of them it
// does on the others. Machines with another processor, number of cores, limit of
// time or memory, governor, GPUs or power cap are of another type. A limit that
// is not there is not named.
func (m Machine) Type() string {
	parts := []string{m.CPUModel, strconv.Itoa(m.Cores) + " cores"}
	if m.CPUQuota > 0 {
		parts = append(parts, rounded(m.CPUQuota)+" cores of time")
	}
	if m.MemoryLimitBytes > 0 {
		parts = append(parts, rounded(float64(m.MemoryLimitBytes)/(1<<30))+" GiB")
	}
	if m.Governor != "" {
		parts = append(parts, "governor "+m.Governor)
	}
	parts = append(parts, m.GPUs...)
	if m.GPUPowerCapWatts > 0 {
		parts = append(parts, "cap "+rounded(m.GPUPowerCapWatts)+" W")
	}
	return strings.Join(parts, ", ")
}

// rounded has two digits behind the point, at most.
func rounded(value float64) string {
	return strconv.FormatFloat(math.Round(100*value)/100, 'f', -1, 64)
}

// Probe is what a probing task took on a worker's machine (I. Rocha's thesis,
// section 3.3.1): the same work on every machine, so that their seconds and
// joules can be compared before any trial ran there.
type Probe struct {
	// Workload is the task's name, such as "k-means-compute".
	Workload string `json:"workload" minLength:"1" maxLength:"64" doc:"name of the probing task"`
	// Setting is what was set of the machine, as "cpu_governor=powersave"; empty:
	// nothing, as trials find it that set nothing.
	Setting string `json:"setting,omitempty" maxLength:"128" doc:"system parameter that was set, as NAME=VALUE; absent: none"`
	// Seconds of wall clock, and joules as trials are charged with them.
	Seconds float64 `json:"seconds" exclusiveMinimum:"0" maximum:"86400"`
	Joules  float64 `json:"joules" exclusiveMinimum:"0" maximum:"1000000000"`
	// Method is how the joules were obtained: what starts with "estimate" is one.
	Method string `json:"method" minLength:"1" maxLength:"255" doc:"how the joules were obtained: what starts with estimate is one"`
}
