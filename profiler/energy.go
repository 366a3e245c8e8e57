package profiler

import (
	"cmp"
	"errors"
	"fmt"
	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/profiler/rapl"
	"runtime"
	"sync"
	"time"
)

// The model behind an estimate, unless the worker's owner says otherwise or the processor
// is known ([processors]): what a busy core adds and what a core costs at rest. They are
// round numbers, taken from no measurement; a real core may differ by a factor of three to
// six. Use them to compare trials, not to pay bills.
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
	// Origin says where these come from, if not from the machine's owner.
	Origin string
	// Cores is the number of cores the slots share (0: all of this process's),
	// Slots how many trials run at once (0: one).
	Cores, Slots int
	// External is a meter of the whole machine, GPUs included, which replaces all
	// others; nil: none. Who opened it closes it.
	External External
	// Elastic says that Slots is only the most there can be: what the cores use
	// at rest is then split between the trials that really run.
	Elastic bool
}

// External is a power meter of the whole machine.
type External interface {
	Name() string
	// Joules is what the machine took since the meter was opened until then, which is now.
	Joules(until time.Time) (float64, error)
}

// counter sums up the joules of the machine without its GPUs, or with them.
type counter interface {
	Joules(until time.Time) (float64, error)
	Close()
}

// external is such a meter as a counter.
type external struct{ External }

func (external) Close() {}

// Meter measures energy. Open one for the life of the process; it is safe for
// concurrent use.
type Meter struct {
	options MeterOptions
	host    proc.Host
	cpu     counter   // nil: estimated
	named   string    // what it is called; empty: rapl
	gpu     gpuReader // nil: none
	mutex   sync.Mutex
	open    int
	// rest is the sum over time of one trial's part of the machine, in seconds,
	// up to restAt.
	rest   float64
	restAt time.Time
	users  []int // of each GPU: how many open windows may use it
}

// OpenMeter finds the best sources of this machine. Without any it estimates.
func OpenMeter(options MeterOptions) *Meter {
	switch busy, rest, origin := AssumedWatts(options.Root); {
	case options.WattsPerCore > 0 || options.IdleWattsPerCore > 0:
		options.Origin = cmp.Or(options.Origin, "as its owner says")
		options.WattsPerCore = cmp.Or(max(options.WattsPerCore, 0), DefaultWattsPerCore)
		options.IdleWattsPerCore = cmp.Or(max(options.IdleWattsPerCore, 0), DefaultIdleWattsPerCore)
	default:
		options.WattsPerCore, options.IdleWattsPerCore, options.Origin = busy, rest, origin
	}
	options.Cores = cmp.Or(max(options.Cores, 0), runtime.NumCPU())
	options.Slots = cmp.Or(max(options.Slots, 0), 1)
	m := &Meter{options: options, host: proc.NewHost(options.Root), restAt: time.Now()}
	if options.External != nil {
		m.cpu, m.named = external{options.External}, "meter "+options.External.Name()
		return m
	}
	if cpu, err := rapl.Open(m.host); err == nil {
		m.cpu = cpu
	}
	if gpu, err := openGPUs(); err == nil {
		// Old GPUs have no energy counter: then theirs is not in the sum, and
		// the method does not name them.
		if _, err := joulesOf(gpu, allOf(gpu)); err == nil {
			m.use(gpu)
		} else {
			gpu.close()
		}
	}
	return m
}

func (m *Meter) use(gpu gpuReader) { m.gpu, m.users = gpu, make([]int, len(gpu.devices())) }

// Close releases what the meter holds open.
func (m *Meter) Close() {
	if m.cpu != nil {
		m.cpu.Close()
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
		return "estimate: " + m.source() + " shared by CPU time, nvml shared equally"
	case shared:
		return "estimate: " + m.source() + " shared by CPU time"
	case gpu:
		return m.source() + "+nvml"
	default:
		return m.source()
	}
}

// source is what measures.
func (m *Meter) source() string { return cmp.Or(m.named, "rapl") }

func (m *Meter) model() string {
	model := fmt.Sprintf("estimate: %.4g W per busy core, %.4g W per core at rest", m.options.WattsPerCore, m.options.IdleWattsPerCore)
	if m.options.Origin != "" {
		model += ", " + m.options.Origin
	}
	return model
}

// Sample reads the counters so that none wraps around unseen. Call it at least
// every few minutes while windows are open.
func (m *Meter) Sample() {
	if m.cpu != nil {
		// A failed reading is found again, and told, by the next Lap.
		_, _ = m.cpu.Joules(time.Now())
	}
}

// Window is a running measurement of one process group.
type Window struct {
	meter      *Meter
	cpuSeconds func() float64
	gpus       []int // those it may use
	gpuErr     error // why they are not known
	last       reading
}

type reading struct {
	at               time.Time
	rest             float64
	cpu              float64
	gpus             []float64 // of each GPU of the window
	cpuErr, gpuErr   error
	own, machineBusy float64
}

// Open starts to measure a command with this process's environment. cpuSeconds
// tells the CPU time that the measured processes have used so far; it must not
// fall.
func (m *Meter) Open(cpuSeconds func() float64) *Window { return m.OpenFor(nil, cpuSeconds) }

// OpenFor is [Meter.Open] for a command with an environment of its own, as
// [os/exec.Cmd] has it. The GPUs that its CUDA_VISIBLE_DEVICES does not name are
// not charged to it.
func (m *Meter) OpenFor(environment []string, cpuSeconds func() float64) *Window {
	w := &Window{meter: m, cpuSeconds: cpuSeconds}
	if m.gpu != nil {
		w.gpus, w.gpuErr = visibleGPUs(environment, m.gpu.devices())
	}
	m.count(w, 1)
	w.last = w.read()
	return w
}

// Close ends the measurement.
func (w *Window) Close() { w.meter.count(w, -1) }

// count adds a window to those among which energy is split, or takes it out.
func (m *Meter) count(w *Window, by int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.advance(time.Now())
	m.open += by
	for _, gpu := range w.gpus {
		m.users[gpu] += by
	}
}

// advance adds up what part of the machine a trial has. The caller holds the
// mutex.
func (m *Meter) advance(at time.Time) {
	parts := m.options.Slots
	if m.options.Elastic {
		parts = max(1, m.open)
	}
	m.rest += at.Sub(m.restAt).Seconds() / float64(parts)
	m.restAt = at
}

func (m *Meter) restOf(at time.Time) float64 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.advance(at)
	return m.rest
}

func (w *Window) read() reading {
	now := reading{at: time.Now(), own: w.cpuSeconds()}
	now.rest = w.meter.restOf(now.at)
	if w.meter.cpu != nil {
		now.cpu, now.cpuErr = w.meter.cpu.Joules(now.at)
		now.machineBusy = proc.BusySeconds(w.meter.host)
	}
	now.gpuErr = w.gpuErr
	for _, gpu := range w.gpus {
		joules, err := w.meter.gpu.joules(gpu)
		now.gpus, now.gpuErr = append(now.gpus, joules), errors.Join(now.gpuErr, err)
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
	measuredGPU := len(w.gpus) > 0 && before.gpuErr == nil && now.gpuErr == nil
	energy := Energy{Method: m.method(measuredCPU, measuredGPU)}
	if measuredCPU {
		energy.Joules = (now.cpu - before.cpu) * m.share(own, now.machineBusy-before.machineBusy)
	} else {
		energy.Joules = own*m.options.WattsPerCore + (now.rest-before.rest)*m.options.IdleWattsPerCore*float64(m.options.Cores)
	}
	if measuredGPU {
		for i, gpu := range w.gpus {
			energy.Joules += (now.gpus[i] - before.gpus[i]) / float64(m.sharingGPU(gpu))
		}
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

// sharingGPU is how many trials a GPU's energy is split between now: those that
// may use it.
func (m *Meter) sharingGPU(gpu int) int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.options.Slots == 1 {
		return 1
	}
	return max(1, m.users[gpu])
}
