package gpu

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/clock"
)

const (
	// Interval is how often the GPUs are looked at that trials use.
	Interval = time.Second
	// longestSpan bounds the time that one look stands for: a driver may have
	// kept us waiting.
	longestSpan = 5 * time.Second
)

// Use is what a run was seen to use of its GPUs since it was taken last.
type Use struct {
	mutex sync.Mutex
	seen  *trial.GPUUse
}

func (u *Use) add(seen trial.GPUUse) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.seen = u.seen.Plus(&seen)
}

// Take returns it, and begins anew; nil: nothing was seen.
func (u *Use) Take() *trial.GPUUse {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	seen := u.seen
	u.seen = nil
	return seen
}

// Peek returns it, to be taken later all the same.
func (u *Use) Peek() *trial.GPUUse {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.seen == nil {
		return nil
	}
	seen := *u.seen
	return &seen
}

// monitor sees what the runs of this worker use of its GPUs.
type monitor struct {
	driver interface {
		Use(device int) (profiler.GPUUse, error)
	}
	// devices are the GPUs that the worker may use, by their place in its list.
	devices []int
	// lists says that the driver has told processes of ours: where it then tells
	// none, there is none.
	lists bool
}

// Watch says how the GPUs are looked at.
type Watch struct {
	Open func() (Control, error)
	// Every is the time between two looks.
	Every time.Duration
	// Occupants are the runs that may use some of the worker's GPUs, of which
	// there are so many.
	Occupants func(count int) []Occupant
	Logger    *slog.Logger
}

// Run looks at the GPUs until the context ends. It has a goroutine of its
// own that nobody waits for, since a driver in trouble may not answer at all.
func (w Watch) Run(ctx context.Context) {
	control, err := w.Open()
	if err != nil {
		return // there are none, or the worker has said why when it registered
	}
	defer control.Close()
	devices, err := control.Visible(os.Environ())
	if err != nil {
		w.Logger.Warn("what trials use of the GPUs is not seen", "error", err)
		return
	}
	monitor, warned := &monitor{driver: control, devices: devices}, false
	ticker := time.NewTicker(w.Every)
	defer ticker.Stop()
	for last := clock.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		at := clock.Now()
		span := min(time.Duration(at-last), longestSpan)
		last = at
		if err := monitor.look(w.Occupants(len(devices)), span); err != nil && !warned {
			w.Logger.Warn("what trials use of the GPUs is not seen; tandem doctor tells more", "error", err)
			warned = true
		}
	}
}

// Occupant is a run that may use GPUs.
type Occupant struct {
	// Places are its GPUs, in the worker's list; given says that they are its
	// trial's, and else it sees all that the worker may use.
	Places []int
	Given  bool
	// Members are its processes.
	Members []int
	Use     *Use
}

// look notes what each run uses, for a span of time.
func (m *monitor) look(occupants []Occupant, span time.Duration) error {
	uses := map[int]profiler.GPUUse{}
	for _, one := range occupants {
		for _, place := range one.Places {
			if _, asked := uses[place]; asked || place >= len(m.devices) {
				continue
			}
			use, err := m.driver.Use(m.devices[place])
			if err != nil {
				return err
			}
			uses[place] = use
			m.lists = m.lists || slices.ContainsFunc(use.Processes, func(p profiler.GPUProcess) bool { return slices.Contains(one.Members, p.PID) })
		}
	}
	for _, one := range occupants {
		if seen, any := m.seenOf(one, occupants, uses); any {
			if seen.Seconds > 0 {
				seen.Seconds = span.Seconds()
			}
			one.Use.add(seen)
		}
	}
	return nil
}

// seenOf is what the run uses of its GPUs now, with Seconds above 0 where the
// utilization is among it; any is false where it uses none of them.
func (m *monitor) seenOf(one Occupant, all []Occupant, uses map[int]profiler.GPUUse) (seen trial.GPUUse, any bool) {
	seen = trial.GPUUse{Seconds: 1, Alone: true, Method: trial.GPUUseByProcess}
	found := 0
	for _, place := range one.Places {
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
	if one.Given {
		among = len(one.Places) // those that it leaves idle count
	}
	seen.Utilization /= float64(max(1, among))
	return seen, found > 0
}

// partOf is what the run uses of one GPU; there is false where it is not there.
func (m *monitor) partOf(one Occupant, place int, use profiler.GPUUse, all []Occupant) (part trial.GPUUse, there bool) {
	part = trial.GPUUse{GPUMemoryBytes: use.MemoryBytes, Seconds: 1, Alone: true, Method: trial.GPUUseByProcess}
	mine, share, told := 0, 0.0, true
	for _, process := range use.Processes {
		if !slices.Contains(one.Members, process.PID) {
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
func (m *monitor) hasToItself(one Occupant, place int, use profiler.GPUUse, all []Occupant) bool {
	return !m.lists && one.Given && len(use.Processes) == 0 && !slices.ContainsFunc(all, func(other Occupant) bool {
		return other.Use != one.Use && slices.Contains(other.Places, place)
	})
}
