package agent

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/clock"
)

const (
	// gpuInterval is how often the GPUs are looked at that trials use.
	gpuInterval = time.Second
	// longestGPUSpan bounds the time that one look stands for: a driver may have
	// kept us waiting.
	longestGPUSpan = 5 * time.Second
)

// gpuUse is what a run was seen to use of its GPUs since it was taken last.
type gpuUse struct {
	mutex sync.Mutex
	seen  *trial.GPUUse
}

func (u *gpuUse) add(seen trial.GPUUse) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.seen = u.seen.Plus(&seen)
}

// take returns it, and begins anew; nil: nothing was seen.
func (u *gpuUse) take() *trial.GPUUse {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	seen := u.seen
	u.seen = nil
	return seen
}

// peek returns it, to be taken later all the same.
func (u *gpuUse) peek() *trial.GPUUse {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.seen == nil {
		return nil
	}
	seen := *u.seen
	return &seen
}

// gpuMonitor sees what the runs of this worker use of its GPUs.
type gpuMonitor struct {
	driver interface {
		Use(device int) (profiler.GPUUse, error)
	}
	// devices are the GPUs that the worker may use, by their place in its list.
	devices []int
	// lists says that the driver has told processes of ours: where it then tells
	// none, there is none.
	lists bool
}

// watchGPUs looks at the GPUs until the context ends. It has a goroutine of its
// own that nobody waits for, since a driver in trouble may not answer at all.
func (a *Agent) watchGPUs(ctx context.Context) {
	control, err := a.options.openGPUs()
	if err != nil {
		return // there are none, or the worker has said why when it registered
	}
	defer control.Close()
	devices, err := control.Visible(os.Environ())
	if err != nil {
		a.options.Logger.Warn("what trials use of the GPUs is not seen", "error", err)
		return
	}
	monitor := &gpuMonitor{driver: control, devices: devices}
	ticker := time.NewTicker(a.options.gpuInterval)
	defer ticker.Stop()
	for last := clock.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		at := clock.Now()
		span := min(time.Duration(at-last), longestGPUSpan)
		last = at
		if err := monitor.look(a.occupants(len(devices)), span); err != nil && a.news("gpu use") {
			a.options.Logger.Warn("what trials use of the GPUs is not seen; tandem doctor tells more", "error", err)
		}
	}
}

// occupant is a run that may use GPUs.
type occupant struct {
	// places are its GPUs, in the worker's list; given says that they are its
	// trial's, and else it sees all that the worker may use.
	places []int
	given  bool
	// members are its processes.
	members []int
	use     *gpuUse
}

// occupants are the runs that may use some of the worker's GPUs.
func (a *Agent) occupants(count int) []occupant {
	var list []occupant
	for _, r := range a.running() {
		one := occupant{places: r.lease.GPUs, given: r.lease.GPUCount != nil, use: &r.gpu}
		if !one.given {
			for place := range count {
				one.places = append(one.places, place)
			}
		}
		r.mutex.Lock()
		p := r.process
		r.mutex.Unlock()
		if p == nil || p.ended() || len(one.places) == 0 {
			continue
		}
		one.members = p.members(r.seat.subject.mark)
		list = append(list, one)
	}
	return list
}

// look notes what each run uses, for a span of time.
func (m *gpuMonitor) look(occupants []occupant, span time.Duration) error {
	uses := map[int]profiler.GPUUse{}
	for _, one := range occupants {
		for _, place := range one.places {
			if _, asked := uses[place]; asked || place >= len(m.devices) {
				continue
			}
			use, err := m.driver.Use(m.devices[place])
			if err != nil {
				return err
			}
			uses[place] = use
			m.lists = m.lists || slices.ContainsFunc(use.Processes, func(p profiler.GPUProcess) bool { return slices.Contains(one.members, p.PID) })
		}
	}
	for _, one := range occupants {
		if seen, any := m.seenOf(one, occupants, uses); any {
			if seen.Seconds > 0 {
				seen.Seconds = span.Seconds()
			}
			one.use.add(seen)
		}
	}
	return nil
}

// seenOf is what the run uses of its GPUs now, with Seconds above 0 where the
// utilization is among it; any is false where it uses none of them.
func (m *gpuMonitor) seenOf(one occupant, all []occupant, uses map[int]profiler.GPUUse) (seen trial.GPUUse, any bool) {
	seen = trial.GPUUse{Seconds: 1, Alone: true, Method: trial.GPUUseByProcess}
	found := 0
	for _, place := range one.places {
		use, asked := uses[place]
		if !asked {
			continue
		}
		part, there := m.partOf(one, place, use, all)
		if !there {
			continue
		}
		found++
		seen.Utilization += part.Utilization
		seen.Seconds = min(seen.Seconds, part.Seconds)
		seen.Alone = seen.Alone && part.Alone
		if part.Method == trial.GPUUseOfDevice {
			seen.Method = trial.GPUUseOfDevice
		}
		if part.MemoryBytes >= seen.MemoryBytes {
			seen.MemoryBytes, seen.GPUMemoryBytes = part.MemoryBytes, part.GPUMemoryBytes
		}
	}
	among := found
	if one.given {
		among = len(one.places) // those that it leaves idle count
	}
	seen.Utilization /= float64(max(1, among))
	return seen, found > 0
}

// partOf is what the run uses of one GPU; there is false where it is not there.
func (m *gpuMonitor) partOf(one occupant, place int, use profiler.GPUUse, all []occupant) (part trial.GPUUse, there bool) {
	part = trial.GPUUse{GPUMemoryBytes: use.MemoryBytes, Seconds: 1, Alone: true, Method: trial.GPUUseByProcess}
	mine, share, told := 0, 0.0, true
	for _, process := range use.Processes {
		if !slices.Contains(one.members, process.PID) {
			part.Alone = false
			continue
		}
		mine++
		part.MemoryBytes += max(0, process.MemoryBytes)
		share += process.Utilization
		told = told && process.MemoryBytes >= 0
	}
	switch {
	case mine == 0:
		part.Utilization, part.MemoryBytes, part.Method = use.Utilization, use.UsedBytes, trial.GPUUseOfDevice
		return part, m.hasToItself(one, place, use, all)
	case part.Alone:
		part.Utilization = use.Utilization
	case use.ByProcess == nil:
		part.Utilization = min(1, share)
	default:
		part.Seconds = 0
	}
	if part.Alone && !told {
		part.MemoryBytes = use.UsedBytes
	}
	return part, true
}

// hasToItself reports whether what happens on the GPU is the run's, though no
// process of its is told there: the driver tells none of ours at all, as in many
// containers, and no other run was given the GPU.
func (m *gpuMonitor) hasToItself(one occupant, place int, use profiler.GPUUse, all []occupant) bool {
	if m.lists || !one.given || len(use.Processes) > 0 {
		return false
	}
	for _, other := range all {
		if other.use != one.use && slices.Contains(other.places, place) {
			return false
		}
	}
	return true
}
