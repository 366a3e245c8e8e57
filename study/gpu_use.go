package study

import (
	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/trial"
)

// gpuUseFaults says what is wrong with what a worker saw of a trial's GPUs.
func gpuUseFaults(use *trial.GPUUse) []problem.Field {
	if use == nil {
		return nil
	}
	var faults []problem.Field
	if !(use.Utilization >= 0 && use.Utilization <= 1) {
		faults = append(faults, problem.Field{Path: "gpu_use.utilization", Value: use.Utilization, Message: "must be a number from 0 to 1"})
	}
	if !(use.Seconds >= 0 && use.Seconds <= maxSeconds) {
		faults = append(faults, problem.Field{Path: "gpu_use.seconds", Value: use.Seconds, Message: "must be a number from 0 to 1e9"})
	}
	if use.MemoryBytes < 0 {
		faults = append(faults, problem.Field{Path: "gpu_use.memory_bytes", Value: use.MemoryBytes, Message: "must be at least 0"})
	}
	if use.GPUMemoryBytes < 0 {
		faults = append(faults, problem.Field{Path: "gpu_use.gpu_memory_bytes", Value: use.GPUMemoryBytes, Message: "must be at least 0"})
	}
	return faults
}
