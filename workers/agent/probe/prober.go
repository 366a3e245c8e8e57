// Package probe finds what a machine is good for: it runs the probing tasks, keeps
// what they took, and says what trials can be measured with.
package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/agent/knob"
	"github.com/tandem-tune/tandem/workers/workload"
)

// Mode says when a worker runs the probing tasks.
type Mode string

const (
	// Never runs none; the server hears of none.
	Never Mode = "never"
	// Once runs them on a machine on which they never ran like this, and
	// tells the server of what is kept on others.
	Once Mode = "once"
	// Always runs them whenever a worker starts.
	Always Mode = "always"
)

// String is the mode as a flag has it.
func (m *Mode) String() string { return string(*m) }

// Set reads a flag.
func (m *Mode) Set(text string) error {
	if !slices.Contains([]Mode{Never, Once, Always}, Mode(text)) {
		return fmt.Errorf("%q is no time for probing: never, once or always", text)
	}
	*m = Mode(text)
	return nil
}

// Type lists the modes for the help of a flag.
func (*Mode) Type() string { return "once|never|always" }

const (
	// Span is how long a worker repeats a task to time it.
	Span = 100 * time.Millisecond
	// quotaSpan is that for a control group with a quota of time: it is ten of
	// the periods in which the kernel deals it out.
	quotaSpan = time.Second
	// repeats is how often a task is timed; the fastest counts, as whatever
	// else runs can only make it slower.
	repeats = 3
	// disturbed is the share of the cores' time above which others disturb.
	disturbed = 0.25
	// memoryFactor is how many times a task's memory the worker must have.
	memoryFactor = 4
)

// Prober runs the probing tasks on this machine.
type Prober struct {
	Mode Mode
	// File keeps what the tasks took.
	File     string
	Machine  protocol.Machine
	Controls *knob.Controls
	Meter    profiler.MeterOptions
	Tasks    []workload.Task
	// Busy is the time that the worker's cores were in use by anybody, and that
	// they had.
	Busy func() (busy, all float64)
	// Span is how long a task is repeated to be timed.
	Span   time.Duration
	Logger *slog.Logger
}

// setting is a system parameter that is set while a task runs; the zero value:
// none.
type setting struct {
	knob  string
	value space.Value
}

func (d setting) String() string {
	if d.knob == "" {
		return ""
	}
	return d.knob + "=" + d.value.String()
}

// settings are what the tasks run at: first with nothing set, then at each
// extreme that the worker may choose for the cores. reasons says what it may not
// choose, and why.
func (p Prober) settings() (list []setting, reasons []string) {
	list = []setting{{}}
	_, governorErr := p.Controls.Available(system.CPUGovernor)
	_, frequencyErr := p.Controls.Available(system.CPUFrequencyMHz)
	if governorErr == nil {
		// They hold the lowest and the highest frequency (section 3.3.1).
		for _, governor := range []string{"powersave", "performance"} {
			if governor != p.Machine.Governor && p.Controls.HasGovernor(governor) {
				list = append(list, setting{system.CPUGovernor, space.String(governor)})
			}
		}
	}
	if low, high, known := p.Controls.Frequencies(); known && frequencyErr == nil {
		for _, mhz := range []int64{low, (low + high) / 2} {
			list = append(list, setting{system.CPUFrequencyMHz, space.Int(mhz)})
		}
	}
	switch {
	case governorErr != nil && frequencyErr != nil && governorErr.Error() == frequencyErr.Error():
		reasons = append(reasons, fmt.Sprintf("%s and %s are left as they are: %v", system.CPUGovernor, system.CPUFrequencyMHz, governorErr))
	default:
		for knob, err := range map[string]error{system.CPUGovernor: governorErr, system.CPUFrequencyMHz: frequencyErr} {
			if err != nil {
				reasons = append(reasons, fmt.Sprintf("%s is left as it is: %v", knob, err))
			}
		}
		slices.Sort(reasons)
	}
	if _, err := p.Controls.Available(system.GPUPowerWatts); err == nil {
		reasons = append(reasons, system.GPUPowerWatts+" is left as it is: the probing tasks use no GPU, so trials have to show what a cap does")
	}
	return list, reasons
}

// runTasks returns what the tasks took. reasons says which did not run, and why. It is
// an error if others kept the cores busy meanwhile; what it took is returned all
// the same.
func (p Prober) runTasks(ctx context.Context) (found []protocol.Probe, reasons []string, err error) {
	settings, reasons := p.settings()
	meter := profiler.OpenMeter(p.Meter)
	defer meter.Close()
	defer debug.FreeOSMemory() // the tasks' data
	ownBefore := ownSeconds()
	busyBefore, allBefore := p.Busy()
	for _, task := range p.Tasks {
		if limit := p.Machine.MemoryBytes; limit > 0 && limit < memoryFactor*task.Bytes {
			reasons = append(reasons, fmt.Sprintf("%s did not run: it wants a machine with %d MiB, the worker may use %d", task.Name, memoryFactor*task.Bytes>>20, limit>>20))
			continue
		}
		work := task.Prepare()
		for _, setting := range settings {
			if ctx.Err() != nil {
				return nil, reasons, ctx.Err()
			}
			one, err := p.at(meter, setting, work)
			if err != nil {
				reasons = append(reasons, fmt.Sprintf("%s did not run at %v: %v", task.Name, setting, err))
				continue
			}
			one.Workload, one.Setting = task.Name, setting.String()
			found = append(found, one)
		}
	}
	busyAfter, allAfter := p.Busy()
	others := busyAfter - busyBefore - (ownSeconds() - ownBefore)
	if all := allAfter - allBefore; all > 0 && others > disturbed*all {
		err = fmt.Errorf("others kept %.0f%% of the cores' time busy meanwhile, more than %.0f%%", 100*others/all, 100*disturbed)
	}
	return found, reasons, err
}

// at does the work with the setting in force and takes that back.
func (p Prober) at(meter *profiler.Meter, setting setting, work func(threads int) float64) (protocol.Probe, error) {
	if setting.knob != "" {
		s := &knob.Subject{}
		if err := p.Controls.Set(s, setting.knob, setting.value); err != nil {
			return protocol.Probe{}, err
		}
		defer p.Controls.Unset(s, setting.knob)
	}
	window := meter.Open(ownSeconds)
	defer window.Close()
	span, repeats := p.Span, repeats
	if p.Machine.CPUQuota > 0 {
		span, repeats = max(span, quotaSpan), 1
	}
	var best protocol.Probe
	for range repeats {
		window.Lap()
		runs, begun := 0, time.Now()
		for runs == 0 || time.Since(begun) < span {
			work(max(1, p.Machine.Cores))
			runs++
		}
		took := time.Since(begun).Seconds() / float64(runs)
		energy := window.Lap()
		if !(energy.Joules > 0) {
			return best, errors.New("the energy meter did not move")
		}
		if best.Seconds == 0 || took < best.Seconds {
			best = protocol.Probe{Seconds: took, Joules: energy.Joules / float64(runs), Method: energy.Method}
		}
	}
	return best, nil
}

// ownSeconds is the CPU time that this process has used.
func ownSeconds() float64 {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// kind names machines and settings whose probes can be compared: with another
// kind, the tasks have to run again.
func (p Prober) kind() string {
	settings, _ := p.settings()
	parts := []string{p.Machine.Type(), p.Machine.EnergyMethod}
	for _, setting := range settings {
		parts = append(parts, setting.String())
	}
	return strings.Join(parts, "; ")
}

// Machine is the machine in the protocol's words, without what a worker adds.
func Machine(machine profiler.Machine) protocol.Machine {
	return protocol.Machine{
		CPUModel: machine.CPUModel, Cores: machine.Cores, CPUQuota: machine.CPUQuota,
		MemoryBytes: machine.MemoryBytes, MemoryLimitBytes: machine.MemoryLimitBytes,
		Governor: machine.Governor, GPUs: machine.GPUs, GPUMemoryBytes: machine.GPUMemoryBytes, GPUPowerCapWatts: machine.GPUPowerCapWatts,
	}
}
