package profiler

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

// The model behind an estimate, unless the worker's owner says otherwise: what
// a busy core adds and what a core costs at rest. They are round numbers for a
// server core of the last decade, taken from no measurement of this machine; a
// real one may differ by a factor of three. Use them to compare trials, not to
// pay bills.
const (
	DefaultWattsPerCore     = 10.0
	DefaultIdleWattsPerCore = 1.0
)

// Energy is what a span of training consumed, and how that was obtained:
// "rapl", "rapl+nvml", or "estimate: ..." with the assumption.
type Energy struct {
	Joules float64
	Method string
}

// MeterOptions say what to measure. The zero value is this machine, one trial
// at a time.
type MeterOptions struct {
	// Root is prefixed to the paths of the kernel's files; "/" when empty.
	Root string
	// WattsPerCore and IdleWattsPerCore replace the defaults when above 0.
	WattsPerCore, IdleWattsPerCore float64
	// Cores is the number of cores the slots share (0: all of this process's),
	// Slots how many trials run at once (0: one).
	Cores, Slots int
}

// Meter measures energy. Open one for the life of the process; it is safe for
// concurrent use.
type Meter struct {
	options MeterOptions
	host    host
	cpu     *cpuCounter // nil: estimated
	gpu     gpuCounter  // nil: none
	mutex   sync.Mutex
	open    int
}

// gpuCounter reads what all GPUs of the machine consumed since some start.
type gpuCounter interface {
	joules() (float64, error)
	names() []string
	close()
}

// OpenMeter finds the best sources of this machine. Without any it estimates.
func OpenMeter(options MeterOptions) *Meter {
	if options.WattsPerCore <= 0 {
		options.WattsPerCore = DefaultWattsPerCore
	}
	if options.IdleWattsPerCore <= 0 {
		options.IdleWattsPerCore = DefaultIdleWattsPerCore
	}
	options.Cores = orElse(options.Cores, runtime.NumCPU())
	options.Slots = orElse(options.Slots, 1)
	m := &Meter{options: options, host: newHost(options.Root)}
	if cpu, err := openCPUCounter(m.host); err == nil {
		m.cpu = cpu
	}
	if gpu, err := openGPUs(); err == nil {
		// Old GPUs have no energy counter: then theirs is not in the sum, and
		// the method does not name them.
		if _, err := gpu.joules(); err == nil {
			m.gpu = gpu
		} else {
			gpu.close()
		}
	}
	return m
}

func orElse(value, otherwise int) int {
	if value <= 0 {
		return otherwise
	}
	return value
}

// Close releases what the meter holds open.
func (m *Meter) Close() {
	if m.cpu != nil {
		m.cpu.close()
	}
	if m.gpu != nil {
		m.gpu.close()
	}
}

// Method is how energies of this meter are obtained, as far as that is known
// beforehand.
func (m *Meter) Method() string { return m.method(m.cpu != nil, m.gpu != nil) }

func (m *Meter) method(cpu, gpu bool) string {
	shared := m.options.Slots > 1
	switch {
	case !cpu && gpu:
		return m.model() + " (CPU); nvml (GPU)"
	case !cpu:
		return m.model()
	case gpu && shared:
		return "estimate: rapl shared by CPU time, nvml shared equally"
	case shared:
		return "estimate: rapl shared by CPU time"
	case gpu:
		return "rapl+nvml"
	default:
		return "rapl"
	}
}

func (m *Meter) model() string {
	return fmt.Sprintf("estimate: %g W per busy core, %g W per core at rest", m.options.WattsPerCore, m.options.IdleWattsPerCore)
}

// Sample reads the counters so that none wraps around unseen. Call it at least
// every few minutes while windows are open.
func (m *Meter) Sample() {
	if m.cpu != nil {
		// A failed reading is found again, and told, by the next Lap.
		_, _ = m.cpu.joules()
	}
}

// Window is a running measurement of one process group.
type Window struct {
	meter      *Meter
	cpuSeconds func() float64
	last       reading
}

type reading struct {
	at               time.Time
	cpu, gpu         float64
	cpuErr, gpuErr   error
	own, machineBusy float64
}

// Open starts to measure. cpuSeconds tells the CPU time that the measured
// processes have used so far; it must not fall.
func (m *Meter) Open(cpuSeconds func() float64) *Window {
	m.mutex.Lock()
	m.open++
	m.mutex.Unlock()
	w := &Window{meter: m, cpuSeconds: cpuSeconds}
	w.last = w.read()
	return w
}

// Close ends the measurement.
func (w *Window) Close() {
	w.meter.mutex.Lock()
	defer w.meter.mutex.Unlock()
	w.meter.open--
}

func (w *Window) read() reading {
	now := reading{at: time.Now(), own: w.cpuSeconds()}
	if w.meter.cpu != nil {
		now.cpu, now.cpuErr = w.meter.cpu.joules()
		now.machineBusy = busySeconds(w.meter.host)
	}
	if w.meter.gpu != nil {
		now.gpu, now.gpuErr = w.meter.gpu.joules()
	}
	return now
}

// Lap returns what was consumed since the window was opened or since the last
// Lap. A meter that cannot be read in between is replaced by the estimate.
func (w *Window) Lap() Energy {
	m, before := w.meter, w.last
	now := w.read()
	w.last = now
	own := max(0, now.own-before.own)
	measuredCPU := m.cpu != nil && before.cpuErr == nil && now.cpuErr == nil
	measuredGPU := m.gpu != nil && before.gpuErr == nil && now.gpuErr == nil
	energy := Energy{Method: m.method(measuredCPU, measuredGPU)}
	if measuredCPU {
		energy.Joules = (now.cpu - before.cpu) * m.share(own, now.machineBusy-before.machineBusy)
	} else {
		cores := float64(m.options.Cores) / float64(m.options.Slots)
		energy.Joules = own*m.options.WattsPerCore + now.at.Sub(before.at).Seconds()*m.options.IdleWattsPerCore*cores
	}
	if measuredGPU {
		energy.Joules += (now.gpu - before.gpu) / float64(m.sharing())
	}
	return energy
}

// share is which part of the packages' energy a trial is charged with: all of
// it when it has the machine for itself, else its part of the CPU time that
// was used.
func (m *Meter) share(own, busy float64) float64 {
	if m.options.Slots == 1 {
		return 1
	}
	if busy <= 0 {
		return 1 / float64(m.sharing())
	}
	return min(1, own/busy)
}

// sharing is how many trials the machine's energy is split between now.
func (m *Meter) sharing() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.options.Slots == 1 {
		return 1
	}
	return max(1, m.open)
}
