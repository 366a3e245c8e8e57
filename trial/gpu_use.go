package trial

// The ways in which a [GPUUse] was observed.
const (
	// GPUUseByProcess is by the driver's own account of each process.
	GPUUseByProcess = "process"
	// GPUUseOfDevice is of the whole GPU, which the trial had to itself: its
	// memory has the driver's own part in it.
	GPUUseOfDevice = "device"
)

// GPUUse is what a trial was seen to use of a GPU while it held memory there. A
// trial with several GPUs has their mean utilization, and the memory of the one
// on which it held most.
type GPUUse struct {
	// Utilization is the mean share of the time in which the GPU ran something for
	// the trial. It says nothing where Seconds is 0.
	Utilization float64 `json:"utilization" minimum:"0" maximum:"1" doc:"mean share of the time in which the GPU ran something for the trial"`
	// MemoryBytes is the most that it held of one GPU's memory; GPUMemoryBytes is
	// how much that GPU has.
	MemoryBytes    int64 `json:"memory_bytes" minimum:"0" doc:"the most that it held of one GPU's memory"`
	GPUMemoryBytes int64 `json:"gpu_memory_bytes,omitempty" minimum:"0" doc:"how much memory that GPU has"`
	// Seconds is for how long the utilization was observed; 0 where only memory was,
	// since the driver does not tell apart what runs on a shared GPU.
	Seconds float64 `json:"seconds" minimum:"0" maximum:"1000000000" doc:"for how long the utilization was observed; 0: only memory was"`
	// Alone says that nothing else was on its GPUs in those seconds.
	Alone bool `json:"alone" doc:"nothing else was on its GPUs meanwhile"`
	// Method is how it was observed: GPUUseByProcess or GPUUseOfDevice.
	Method string `json:"method,omitempty" enum:"process,device" doc:"process: by the driver's account of each process; device: of the whole GPU, which it had to itself"`
}

// Plus adds what another span showed. What was seen alone goes before what was
// seen beside others, who may have held the trial up: then only the memory of
// the latter counts. Both may be nil: nothing was seen.
func (u *GPUUse) Plus(other *GPUUse) *GPUUse {
	switch {
	case other == nil:
		return u
	case u == nil:
		sum := *other
		return &sum
	}
	sum, lesser := *u, *other
	if lesser.tells(sum) {
		sum, lesser = lesser, sum
	}
	if lesser.Alone == sum.Alone && sum.Seconds+lesser.Seconds > 0 {
		whole := sum.Seconds + lesser.Seconds
		sum.Utilization = min(1, sum.Utilization*(sum.Seconds/whole)+lesser.Utilization*(lesser.Seconds/whole))
		sum.Seconds = whole
		if lesser.Method == GPUUseOfDevice {
			sum.Method = GPUUseOfDevice // in part
		}
	}
	if lesser.MemoryBytes > sum.MemoryBytes {
		sum.MemoryBytes, sum.GPUMemoryBytes = lesser.MemoryBytes, lesser.GPUMemoryBytes
	}
	return &sum
}

// tells reports whether the utilization of this one stands in for the other's.
func (u GPUUse) tells(other GPUUse) bool {
	if other.Seconds == 0 || u.Seconds == 0 {
		return u.Seconds > 0
	}
	return u.Alone && !other.Alone
}
