package profiler

import (
	"github.com/tandem-tune/tandem/profiler/proc"
	"time"
)

// leastSpan is the shortest span a load is told of: over a shorter one the
// kernel's ticks are too coarse.
const leastSpan = time.Second

// Load is how busy the whole machine was over a span.
type Load struct {
	// CPUUtilization is the share of all cores' time that was used, 0 to 1.
	CPUUtilization float64
	// MemoryUtilization is the share of the memory that is in use now, 0 to 1.
	MemoryUtilization float64
	// Watts are those of the processors, and of the GPUs where they are metered, on
	// average.
	Watts float64
	// Method is how the watts were obtained: "rapl", "rapl+nvml", or "estimate: ..."
	// with the assumption.
	Method string
}

// Gauge tells the load of the machine from one reading to the next. It is for one
// goroutine.
type Gauge struct {
	meter *Meter
	last  gaugeReading
	load  Load
	known bool
}

type gaugeReading struct {
	at             time.Time
	busy, all      float64 // seconds of CPU time
	cpu, gpu       float64 // joules
	cpuErr, gpuErr error
}

// Gauge begins to watch the machine.
func (m *Meter) Gauge() *Gauge { return &Gauge{meter: m, last: m.reading()} }

func (m *Meter) reading() gaugeReading {
	now := gaugeReading{at: time.Now()}
	now.busy, now.all = proc.MachineSeconds(m.host)
	if m.cpu != nil {
		now.cpu, now.cpuErr = m.cpu.Joules(now.at)
	}
	if m.gpu != nil {
		now.gpu, now.gpuErr = joulesOf(m.gpu, allOf(m.gpu))
	}
	return now
}

// Read returns the load since the last reading, or the same again if that was
// less than a second ago. It answers false as long as there is none, and where
// the kernel does not tell.
func (g *Gauge) Read() (Load, bool) {
	if time.Since(g.last.at) < leastSpan {
		return g.load, g.known
	}
	before, now := g.last, g.meter.reading()
	g.last = now
	g.load, g.known = g.meter.between(before, now)
	return g.load, g.known
}

// between is the load from one reading to the other.
func (m *Meter) between(before, now gaugeReading) (Load, bool) {
	seconds, all := now.at.Sub(before.at).Seconds(), now.all-before.all
	if !(seconds > 0) || !(all > 0) {
		return Load{}, false
	}
	busy := max(0, now.busy-before.busy)
	load := Load{CPUUtilization: min(1, busy/all)}
	if total, available, err := proc.Memory(m.host); err == nil {
		load.MemoryUtilization = float64(total-available) / float64(total)
	}
	cpu := m.cpu != nil && before.cpuErr == nil && now.cpuErr == nil
	gpu := m.gpu != nil && before.gpuErr == nil && now.gpuErr == nil
	if cpu {
		load.Watts = (now.cpu - before.cpu) / seconds
	} else {
		load.Watts = busy/seconds*m.options.WattsPerCore + all/seconds*m.options.IdleWattsPerCore
	}
	if gpu {
		load.Watts += (now.gpu - before.gpu) / seconds
	}
	switch {
	case cpu && gpu:
		load.Method = m.source() + "+nvml"
	case cpu:
		load.Method = m.source()
	case gpu:
		load.Method = m.model() + " (CPU); nvml (GPU)"
	default:
		load.Method = m.model()
	}
	return load, true
}
