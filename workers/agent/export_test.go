package agent

import (
	"sync/atomic"
	"time"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/workers/agent/agenttest"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
	"github.com/tandem-tune/tandem/workers/workload"
)

// WithProbingTask gives the agent one small probing task, counts its runs, and
// has others keep so much of the cores' time busy meanwhile.
func (o Options) WithProbingTask(runs *atomic.Int64, others float64) Options {
	o.tasks = []workload.Task{{Name: "small", Prepare: func() func(int) float64 {
		return func(int) float64 {
			runs.Add(1)
			return 0
		}
	}}}
	asked := 0.0
	o.coreSeconds = func() (busy, all float64) {
		asked++
		return asked * 1000 * others, asked * 1000
	}
	return o
}

// WithLostGPU gives the agent a machine whose only GPU has fallen off the bus.
func (o Options) WithLostGPU() Options {
	o.openGPUs = func() (gpu.Control, error) { return agenttest.LostGPUs{GPUs: agenttest.NewGPUs(1)}, nil }
	return o
}

// WithGPU gives the agent a GPU that tells what it is used for, and is looked at
// all the time.
func (o Options) WithGPU(use func() profiler.GPUUse) Options {
	one := agenttest.NewGPUs(1)
	one.Look = func(int) (profiler.GPUUse, error) { return use(), nil }
	o.openGPUs, o.gpuInterval = func() (gpu.Control, error) { return one, nil }, 5*time.Millisecond
	return o
}
