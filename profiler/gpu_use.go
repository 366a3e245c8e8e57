package profiler

import (
	"errors"
	"fmt"
	"time"
)

// GPUUse is what a GPU does at a moment, and for which processes.
type GPUUse struct {
	// Utilization is the share of the time in which the GPU ran anything, over the
	// driver's last period of at most a second.
	Utilization float64
	// UsedBytes is how much of its memory is taken, with the driver's own part;
	// MemoryBytes is how much it has.
	UsedBytes, MemoryBytes int64
	// Processes are those that hold memory there to compute with, by the numbers
	// that they have for this process.
	Processes []GPUProcess
	// ByProcess is nil where the driver tells the utilization of each process, and
	// else says why not.
	ByProcess error
}

// GPUProcess is a process on a GPU.
type GPUProcess struct {
	PID int
	// MemoryBytes is what it holds; negative where the driver does not tell.
	MemoryBytes int64
	// Utilization is the share of the time in which the GPU ran something for it;
	// 0 where GPUUse.ByProcess says that this is not told.
	Utilization float64
}

// gpuWitness is a gpuReader that tells the processes as well.
type gpuWitness interface {
	gpuReader
	// processes are those that compute there, with the bytes that each holds;
	// bytes are negative where they are not told.
	processes(device int) ([]GPUProcess, error)
	// utilizations are those of processes that ran since the time.
	utilizations(device int, since time.Time) (map[int]float64, error)
	// memory is how much the GPU has, and how much of that is taken, in bytes.
	memory(device int) (total, used int64, err error)
	// utilization is the share of the last period in which it ran anything.
	utilization(device int) (float64, error)
}

// utilizationSpan is how old a process's utilization may be: the driver samples
// them a few times a second.
const utilizationSpan = 2 * time.Second

// gpuMemoryBytes is how much memory the GPU has; 0 where the driver does not tell.
func gpuMemoryBytes(gpus gpuReader, device int) int64 {
	witness, tells := gpus.(gpuWitness)
	if !tells {
		return 0
	}
	total, _, err := witness.memory(device)
	if err != nil {
		return 0
	}
	return total
}

// Use tells what the GPU does now. It is an error where the driver tells neither
// its memory, nor its utilization, nor the processes on it: of a part of that
// nothing follows. It may take some milliseconds, and a driver in trouble may
// not answer at all.
func (c *GPUControl) Use(device int) (GPUUse, error) { return useOf(c.gpus, device, time.Now()) }

func useOf(gpus gpuReader, device int, now time.Time) (use GPUUse, err error) {
	witness, tells := gpus.(gpuWitness)
	if !tells {
		return use, errors.New("the GPUs of this machine do not tell what runs on them")
	}
	if use.MemoryBytes, use.UsedBytes, err = witness.memory(device); err != nil {
		return use, fmt.Errorf("the memory of GPU %d: %w", device, err)
	}
	if use.Utilization, err = witness.utilization(device); err != nil {
		return use, fmt.Errorf("the utilization of GPU %d: %w", device, err)
	}
	if use.Processes, err = witness.processes(device); err != nil {
		return use, fmt.Errorf("the processes of GPU %d: %w", device, err)
	}
	shares, err := witness.utilizations(device, now.Add(-utilizationSpan))
	if err != nil {
		use.ByProcess = fmt.Errorf("the utilization of each process on GPU %d: %w", device, err)
		return use, nil
	}
	for i, one := range use.Processes {
		use.Processes[i].Utilization = min(1, shares[one.PID])
	}
	return use, nil
}

// untold says what the GPUs do not tell of the trials that share one; empty:
// they tell all.
func untold(gpus gpuReader) string {
	for device := range gpus.devices() {
		use, err := useOf(gpus, device, time.Now())
		switch {
		case err != nil:
			return "what trials use of their GPUs is not seen, so that each has its GPUs for itself: " + err.Error()
		case use.ByProcess != nil:
			return "what trials keep busy of a GPU is seen only while one is alone there: " + use.ByProcess.Error()
		}
	}
	return ""
}
